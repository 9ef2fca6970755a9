//! `rankgate score`: how well does retrieval work on a corpus with judgments?

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::corpus::{self, Hit, JudgedQuery, Ranking, trec};
use crate::error::{Error, ErrorKind, Result};
use crate::pipeline::index::names_hash;
use crate::pipeline::{Pipeline, Request};
use crate::settings::{self, Fusion, Settings, Thoroughness};
use crate::trace::Trace;

mod figures;

use figures::Figures;
pub(super) use figures::Output;

/// Score retrieval on a corpus with judgments
///
/// The corpus is a BEIR folder (corpus.jsonl, queries.jsonl, qrels.tsv or qrels/test.tsv), or a folder of
/// Markdown with a queries.json. It is indexed once under RANKGATE_HOME and kept up to date by content.
/// Figures are means over the queries that have a relevant document, as trec_eval computes them.
///
/// With --from-run nothing is searched: stored rankings (TREC runs, as --run-out writes them) are scored under the
/// judgments of --queries, which may have changed since.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rankgate score --corpus scifact
  rankgate score --corpus docs --queries judged.json --mode bm25 --mode hybrid --json
  rankgate score --corpus scifact --mode hybrid --run-out hybrid.run
  rankgate score --from-run hybrid.run --from-run old.run --queries scifact")]
#[command(group = clap::ArgGroup::new("rankings").required(true).args(["corpus", "from_run"]))]
pub struct Args {
    /// The folder with the documents.
    #[arg(long, value_name = "DIR")]
    corpus: Option<PathBuf>,
    /// Score this stored run instead of searching; repeat it for several.
    #[arg(long, value_name = "FILE", requires = "queries", conflicts_with_all = ["mode", "run_out", "index"])]
    from_run: Vec<PathBuf>,
    /// The judged queries: a queries.json, or a BEIR folder. Default: those of the corpus folder.
    #[arg(long, value_name = "FILE|DIR")]
    queries: Option<PathBuf>,
    /// What to score; repeat it for several. Default: bm25, vector and hybrid.
    #[arg(long, value_enum)]
    mode: Vec<Mode>,
    /// Documents of each query that count.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Write the rankings as a TREC run; needs exactly one mode.
    #[arg(long, value_name = "FILE")]
    run_out: Option<PathBuf>,
    /// Index folder to use instead of the one kept for this corpus.
    #[arg(long, value_name = "DIR")]
    index: Option<PathBuf>,
    /// Print one JSON document (schemas/score.schema.json).
    #[arg(long)]
    json: bool,
}

/// A way to retrieve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Mode {
    /// Words only.
    Bm25,
    /// Embeddings only.
    Vector,
    /// Both lanes, fused and reranked as set: what `rankgate query` does.
    Hybrid,
    /// Both lanes, adaptive fusion, nothing reranked.
    HybridNoRerank,
    /// Both lanes by plain reciprocal rank fusion, nothing reranked.
    Rrf,
    /// What `rankgate query --fast` does: words only.
    Fast,
    /// The same as hybrid.
    Balanced,
    /// What `rankgate query --thorough` does: expanded, by the model of the preset if there is one; more reranked.
    Thorough,
}

impl Mode {
    const DEFAULT: [Self; 3] = [Self::Bm25, Self::Vector, Self::Hybrid];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Bm25 => "bm25",
            Self::Vector => "vector",
            Self::Hybrid => "hybrid",
            Self::HybridNoRerank => "hybrid-no-rerank",
            Self::Rrf => "rrf",
            Self::Fast => "fast",
            Self::Balanced => "balanced",
            Self::Thorough => "thorough",
        }
    }

    pub(super) fn needs_vectors(self) -> bool {
        !matches!(self, Self::Bm25 | Self::Fast)
    }

    pub(super) fn run(self, pipeline: &Pipeline, mut request: Request) -> Result<(Ranking, Trace)> {
        request.thoroughness = Some(match self {
            Self::Fast => Thoroughness::Fast,
            Self::Thorough => Thoroughness::Thorough,
            _ => Thoroughness::Balanced,
        });
        if matches!(self, Self::HybridNoRerank | Self::Rrf) {
            request.rerank = false;
            request.fusion = Some(if self == Self::Rrf { Fusion::Rrf } else { Fusion::Adaptive });
        }
        match self {
            Self::Bm25 => pipeline.search(&request),
            Self::Vector => pipeline.vsearch(&request),
            _ => pipeline.query(&request),
        }
    }
}

/// Runs it.
pub fn run(args: Args) -> Result<ExitCode> {
    super::apart(&[("--run-out", args.run_out.as_deref())], &[("--queries", args.queries.as_deref())])?;
    let (output, order) = match &args.corpus {
        Some(corpus) => searched(&args, corpus)?,
        None => stored(&args)?,
    };
    super::print(&if args.json { super::json(&output) } else { figures::table(&output, &order) })?;
    Ok(ExitCode::SUCCESS)
}

/// The figures of searches, and their order.
fn searched(args: &Args, corpus: &Path) -> Result<(Output, Vec<String>)> {
    let modes = if args.mode.is_empty() { Mode::DEFAULT.to_vec() } else { args.mode.clone() };
    if args.run_out.is_some() && modes.len() != 1 {
        return Err(
            Error::usage("--run-out writes the rankings of one mode").with_hint("give exactly one --mode")
        );
    }
    let cases = judged_queries(args.queries.as_deref().unwrap_or(corpus))?;
    let vectors = modes.iter().any(|mode| mode.needs_vectors());
    let pipeline = open(args, corpus, vectors)?;
    let cases = pipeline.index().resolve_hashes(cases)?;

    note_absent(&cases, &pipeline)?;
    let mut figures = BTreeMap::new();
    for &mode in &modes {
        let scored = score(&pipeline, &cases, mode, args.limit)?;
        if let Some(path) = &args.run_out {
            let rankings =
                cases.iter().zip(&scored.rankings).map(|(case, ranking)| (case.query.id.as_str(), ranking));
            trec::write_run(path, &trec::Run::from_rankings(mode.name(), rankings)?)?;
        }
        figures.insert(mode.name().to_string(), scored.figures);
    }
    let output = Output {
        version: 1,
        corpus: Some(corpus.display().to_string()),
        documents: Some(pipeline.documents()?),
        queries: cases.len(),
        limit: args.limit,
        embedder: pipeline.embedder().filter(|_| vectors).map(|e| e.fingerprint().to_string()),
        modes: figures,
    };
    Ok((output, modes.iter().map(|mode| mode.name().to_string()).collect()))
}

/// The figures of stored runs, and their order.
fn stored(args: &Args) -> Result<(Output, Vec<String>)> {
    let source = args.queries.as_deref().ok_or_else(|| Error::usage("--from-run needs --queries"))?;
    let cases = judged_queries(source)?;
    if let Some(case) = cases.iter().find(|case| names_hash(case)) {
        let what = format!("{}: query `{}` names a document by its hash", source.display(), case.query.id);
        return Err(Error::input(what).with_hint("write docids, as the run has them"));
    }
    let mut modes = BTreeMap::new();
    for path in &args.from_run {
        let run = trec::read_run(path)?;
        let rankings: Vec<Ranking> =
            cases.iter().map(|case| ranking(&run, &case.query.id, args.limit as usize)).collect();
        let missing: Vec<&str> =
            cases.iter().map(|case| case.query.id.as_str()).filter(|id| run.ranking(id).is_none()).collect();
        if missing.len() == cases.len() {
            return Err(Error::input(format!("{}: ranks none of the judged queries", path.display()))
                .with_hint(format!("{} has ids such as `{}`", source.display(), missing[0])));
        }
        if let Some(first) = missing.first() {
            eprintln!(
                "note: {}: {} judged queries have no ranking and count as missed, first `{first}`",
                path.display(),
                missing.len()
            );
        }
        modes.insert(path.display().to_string(), Figures::new(&cases, &rankings, None));
    }
    let order = args.from_run.iter().map(|path| path.display().to_string()).collect();
    let queries = cases.len();
    Ok((
        Output {
            version: 1,
            corpus: None,
            documents: None,
            queries,
            limit: args.limit,
            embedder: None,
            modes,
        },
        order,
    ))
}

/// The first `limit` documents of a query of a stored run; none where it has no ranking.
fn ranking(run: &trec::Run, query: &str, limit: usize) -> Ranking {
    let mut seen = HashSet::new();
    let hits = run.ranking(query).into_iter().flatten().filter(|(docid, _)| seen.insert(*docid)).take(limit);
    Ranking {
        hits: hits.map(|(docid, score)| Hit { docid: docid.into(), score, ..Hit::default() }).collect(),
    }
}

/// The queries to score: those with a relevant document, in the order of their file.
fn judged_queries(source: &Path) -> Result<Vec<JudgedQuery>> {
    let mut cases = corpus::judged_queries(source)?;
    let all = cases.len();
    cases.retain(|case| case.judgments.values().any(|&grade| grade > 0));
    if cases.is_empty() {
        return Err(Error::input(format!(
            "{}: none of {all} queries has a relevant document",
            source.display()
        )));
    }
    Ok(cases)
}

/// Says which relevant documents cannot be found because the corpus has no such document: a part of a corpus, or a
/// typing error.
fn note_absent(cases: &[JudgedQuery], pipeline: &Pipeline) -> Result<()> {
    let docids: HashSet<String> = pipeline.index().docids()?.into_iter().collect();
    let relevant: BTreeSet<&String> = cases
        .iter()
        .flat_map(|case| case.judgments.iter().filter(|(_, grade)| **grade > 0))
        .map(|(docid, _)| docid)
        .collect();
    let absent: Vec<&String> = relevant.iter().filter(|id| !docids.contains(**id)).copied().collect();
    if absent.len() == relevant.len() {
        let what = format!("no relevant document is in the corpus, as `{}`", absent[0]);
        return Err(Error::input(what).with_hint("docids are paths within the folder of --corpus"));
    }
    if let Some(first) = absent.first() {
        eprintln!(
            "note: {} relevant documents are not in the corpus and count as missed, first `{first}`",
            absent.len()
        );
    }
    Ok(())
}

/// The pipeline over the corpus, indexed first as far as it changed.
fn open(args: &Args, corpus: &Path, vectors: bool) -> Result<Pipeline> {
    let settings = Settings::load(&super::working_folder()?)?;
    let dir = match &args.index {
        Some(dir) => dir.clone(),
        None => kept_index(corpus, vectors)?,
    };
    Pipeline::over(corpus, &dir, &settings, None, vectors)
}

/// Where the index of a scored corpus is kept: by name, and by a hash of the path, as names repeat.
fn kept_index(folder: &Path, vectors: bool) -> Result<PathBuf> {
    let folder = folder.canonicalize().map_err(|e| Error::io("read", folder, e))?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let hash = corpus::hex(&Sha256::digest(folder.as_os_str().as_encoded_bytes())[..4]);
    let kind = if vectors { "" } else { "-words" };
    Ok(settings::home()?.join("score").join(format!("{name}-{hash}{kind}")))
}

struct Scored {
    rankings: Vec<Ranking>,
    figures: Figures,
}

fn score(pipeline: &Pipeline, cases: &[JudgedQuery], mode: Mode, limit: u32) -> Result<Scored> {
    let bar = super::progress(cases.len() as u64, mode.name());
    // The first search of a process loads models: not what a query costs.
    if let Some(case) = cases.first() {
        mode.run(pipeline, Request::from(&case.query))?;
    }
    let mut rankings = Vec::with_capacity(cases.len());
    let mut took = Vec::with_capacity(cases.len());
    let mut failed = Vec::new();
    for case in cases {
        let request = Request::from(&case.query).limit(limit as usize);
        let start = Instant::now();
        let (ranking, trace) =
            mode.run(pipeline, request).map_err(|e| e.context(format_args!("query `{}`", case.query.id)))?;
        failed.extend(trace.stage("expansion").and_then(|stage| stage.fields.get("error")).cloned());
        took.push(start.elapsed().as_secs_f64() * 1e3);
        rankings.push(ranking);
        bar.inc(1);
    }
    bar.finish_and_clear();
    if let Some(first) = failed.first().and_then(Value::as_str) {
        let what = format!("{} of {} expansions failed, first: {first}", failed.len(), cases.len());
        // Nothing but plain queries was searched: the figures would be of another mode.
        if failed.len() == cases.len() {
            return Err(Error::new(ErrorKind::Model, what)
                .with_hint(format!("see `rankgate models list`, or score without --mode {}", mode.name())));
        }
        eprintln!("note: {what}");
    }
    let mut figures = Figures::new(cases, &rankings, Some(&took));
    figures.failed_expansions = (mode == Mode::Thorough).then_some(failed.len());
    Ok(Scored { figures, rankings })
}
