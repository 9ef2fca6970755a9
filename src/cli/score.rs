//! `rankgate score`: how well does retrieval work on a corpus with judgments?

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::corpus::{self, JudgedQuery, Judgments, Ranking, trec};
use crate::error::{Error, ErrorKind, Result};
use crate::metrics::{self, stats};
use crate::pipeline::{Pipeline, Request};
use crate::settings::{self, Fusion, Settings, Thoroughness};
use crate::trace::Trace;

/// Score retrieval on a corpus with judgments
///
/// The corpus is a BEIR folder (corpus.jsonl, queries.jsonl, qrels.tsv or qrels/test.tsv), or a folder of
/// Markdown with a queries.json. It is indexed once under RANKGATE_HOME and kept up to date by content.
/// Figures are means over the queries that have a relevant document, as trec_eval computes them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rankgate score --corpus scifact
  rankgate score --corpus docs --queries judged.json --mode bm25 --mode hybrid --json
  rankgate score --corpus scifact --mode hybrid --run-out hybrid.run")]
pub struct Args {
    /// The folder with the documents.
    #[arg(long, value_name = "DIR")]
    corpus: PathBuf,
    /// The judged queries: a queries.json, or a BEIR folder. Default: those of the corpus folder.
    #[arg(long, value_name = "FILE|DIR")]
    queries: Option<PathBuf>,
    /// What to score; repeat it for several. Default: bm25, vector and hybrid.
    #[arg(long, value_enum)]
    mode: Vec<Mode>,
    /// Documents retrieved for each query.
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
    /// Both lanes, adaptive fusion and reranking: what `rankgate query` does.
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

/// What `rankgate score --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// Version of this format.
    version: u32,
    /// The corpus folder as given.
    corpus: String,
    /// Documents in the index.
    documents: u64,
    /// Queries with at least one relevant document; the others are not scored.
    queries: usize,
    /// Documents retrieved for each query.
    limit: u32,
    /// Fingerprint of the embedder that ran; absent when only words were used.
    #[serde(skip_serializing_if = "Option::is_none")]
    embedder: Option<String>,
    /// Figures by mode.
    modes: BTreeMap<&'static str, Figures>,
}

/// The figures of one mode: means over the queries, each in [0, 1], and milliseconds a query.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Figures {
    #[serde(rename = "recall@5")]
    recall_5: f64,
    #[serde(rename = "recall@10")]
    recall_10: f64,
    #[serde(rename = "recall@100")]
    recall_100: f64,
    #[serde(rename = "ndcg@10")]
    ndcg_10: f64,
    mrr: f64,
    map: f64,
    /// 95 % bootstrap interval of ndcg@10 over the queries.
    #[serde(rename = "ndcg@10_ci")]
    ndcg_10_ci: [f64; 2],
    p50_ms: f64,
    p95_ms: f64,
    /// Queries whose expansion failed, so that the plain query was searched; absent where nothing is expanded.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_expansions: Option<usize>,
}

/// Runs it.
pub fn run(args: Args) -> Result<ExitCode> {
    let modes = if args.mode.is_empty() { Mode::DEFAULT.to_vec() } else { args.mode.clone() };
    if args.run_out.is_some() && modes.len() != 1 {
        return Err(
            Error::usage("--run-out writes the rankings of one mode").with_hint("give exactly one --mode")
        );
    }
    let cases = judged_queries(&args)?;
    let vectors = modes.iter().any(|mode| mode.needs_vectors());
    let pipeline = open(&args, vectors)?;
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
        figures.insert(mode.name(), scored.figures);
    }
    let output = Output {
        version: 1,
        corpus: args.corpus.display().to_string(),
        documents: pipeline.documents()?,
        queries: cases.len(),
        limit: args.limit,
        embedder: pipeline.embedder().filter(|_| vectors).map(|e| e.fingerprint().to_string()),
        modes: figures,
    };
    super::print(&if args.json { super::json(&output) } else { table(&output, &modes) })?;
    Ok(ExitCode::SUCCESS)
}

/// The queries to score: those with a relevant document, in the order of their file.
fn judged_queries(args: &Args) -> Result<Vec<JudgedQuery>> {
    let source = args.queries.as_ref().unwrap_or(&args.corpus);
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
    let relevant = cases.iter().flat_map(|case| case.judgments.iter().filter(|(_, grade)| **grade > 0));
    let absent: BTreeSet<&String> =
        relevant.map(|(docid, _)| docid).filter(|id| !docids.contains(*id)).collect();
    if let Some(first) = absent.first() {
        eprintln!(
            "note: {} relevant documents are not in the corpus and count as missed, first `{first}`",
            absent.len()
        );
    }
    Ok(())
}

/// The pipeline over the corpus, indexed first as far as it changed.
fn open(args: &Args, vectors: bool) -> Result<Pipeline> {
    let settings = Settings::load(&super::working_folder()?)?;
    let dir = match &args.index {
        Some(dir) => dir.clone(),
        None => kept_index(&args.corpus, vectors)?,
    };
    Pipeline::over(&args.corpus, &dir, &settings, None, vectors)
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
    let mut figures = figures(cases, &rankings, took);
    figures.failed_expansions = (mode == Mode::Thorough).then_some(failed.len());
    Ok(Scored { figures, rankings })
}

fn figures(cases: &[JudgedQuery], rankings: &[Ranking], took: Vec<f64>) -> Figures {
    // Every case has a relevant document, so every measure is defined.
    let each = |measure: &dyn Fn(&Ranking, &Judgments) -> Option<f64>| -> Vec<f64> {
        cases.iter().zip(rankings).filter_map(|(case, ranking)| measure(ranking, &case.judgments)).collect()
    };
    let mean =
        |measure: &dyn Fn(&Ranking, &Judgments) -> Option<f64>| stats::mean(&each(measure)).unwrap_or(0.0);
    let ndcg = each(&|ranking, judged| metrics::ndcg_at(10, ranking.docids(), judged));
    let interval = stats::bootstrap_mean_ci(&ndcg, 0.95, 1000, 42);
    let percentile = |p| stats::percentile(&took, p).unwrap_or(0.0);
    Figures {
        recall_5: mean(&|ranking, judged| metrics::recall_at(5, ranking.docids(), judged)),
        recall_10: mean(&|ranking, judged| metrics::recall_at(10, ranking.docids(), judged)),
        recall_100: mean(&|ranking, judged| metrics::recall_at(100, ranking.docids(), judged)),
        ndcg_10: stats::mean(&ndcg).unwrap_or(0.0),
        mrr: mean(&|ranking, judged| metrics::reciprocal_rank(ranking.docids(), judged)),
        map: mean(&|ranking, judged| metrics::average_precision(ranking.docids(), judged)),
        ndcg_10_ci: interval.map_or([0.0; 2], |interval| [interval.low, interval.high]),
        p50_ms: percentile(50.0),
        p95_ms: percentile(95.0),
        failed_expansions: None,
    }
}

fn table(output: &Output, modes: &[Mode]) -> String {
    let mut text = format!(
        "{}: {} documents, {} queries, {} retrieved each\n\n",
        output.corpus, output.documents, output.queries, output.limit
    );
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "{:<17} {:>8} {:>9} {:>10}  {:<22} {:>6} {:>6}  {:>7} {:>7}",
        "mode", "recall@5", "recall@10", "recall@100", "ndcg@10 (95 %)", "mrr", "map", "p50 ms", "p95 ms"
    );
    for mode in modes {
        let f = &output.modes[mode.name()];
        let ndcg = format!("{:.4} [{:.3}, {:.3}]", f.ndcg_10, f.ndcg_10_ci[0], f.ndcg_10_ci[1]);
        let _ = writeln!(
            text,
            "{:<17} {:>8.4} {:>9.4} {:>10.4}  {:<22} {:>6.4} {:>6.4}  {:>7.1} {:>7.1}",
            mode.name(),
            f.recall_5,
            f.recall_10,
            f.recall_100,
            ndcg,
            f.mrr,
            f.map,
            f.p50_ms,
            f.p95_ms
        );
    }
    text
}
