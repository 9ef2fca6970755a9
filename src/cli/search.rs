//! `rankgate search`, `vsearch` and `query`: one text, one ranking.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::corpus::Ranking;
use crate::error::Result;
use crate::pipeline::expansion::SEPARATOR;
use crate::pipeline::{Expand, Pipeline, Request};
use crate::settings::{self, Fusion, Settings, Thoroughness};
use crate::store::cache::Cache;
use crate::trace::{Stage, Trace};

/// The three ways to search.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Search by words (BM25)
    ///
    /// "a phrase" must occur as it stands, -word and -"a phrase" exclude, real-time and DEC-0054 are compounds.
    /// Documents with all the words come first; if none has them all, those with the most telling ones.
    Search(Args),
    /// Search by meaning (embeddings)
    Vsearch(Args),
    /// Search by words and meaning, fused and reranked
    ///
    /// Parts that begin with term:, intent: or hyde: go to one lane only: words, meaning, or the embedding of a
    /// hypothetical answer. With --thorough the query is expanded first: other words and other questions are searched
    /// beside it, unless the request has such parts of its own or the plain search is sure of its answer.
    Query(QueryArgs),
}

/// What every search takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to look for. A text that begins with a hyphen goes behind `--`.
    #[arg(required = true)]
    text: Vec<String>,
    /// How many documents to show.
    #[arg(long, short = 'n', default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Only documents of this collection.
    #[arg(long, value_name = "NAME")]
    collection: Option<String>,
    /// The index folder. Default: the one in RANKGATE_HOME.
    #[arg(long, value_name = "DIR")]
    index: Option<PathBuf>,
    /// Show what each stage did and what it gave each document.
    #[arg(long)]
    explain: bool,
    /// Print one JSON document (schemas/search.schema.json).
    #[arg(long)]
    json: bool,
}

/// What a hybrid search takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rankgate query \"how do I end the contract early\"
  rankgate query --thorough --explain \"how do I end the contract early\"
  rankgate query \"close account\" \"term: termination clause\" \"hyde: The contract ends on 30 days' notice.\"")]
pub struct QueryArgs {
    #[command(flatten)]
    common: Args,
    /// Words only, nothing reranked; no model is loaded.
    #[arg(long, conflicts_with_all = ["thorough", "fusion", "graph", "expander"])]
    fast: bool,
    /// Expand the query first, and rerank more documents.
    #[arg(long)]
    thorough: bool,
    /// Search for nothing beside the query.
    #[arg(long, conflicts_with = "expander")]
    no_expand: bool,
    /// Expand the query, and by whom. Default: with --thorough by the model, where there is one.
    #[arg(long, value_enum)]
    expander: Option<ExpanderArg>,
    /// How words and meaning become one list. Default: the setting, else adaptive.
    #[arg(long, value_enum)]
    fusion: Option<FusionArg>,
    /// Leave the fused list as it is.
    #[arg(long)]
    no_rerank: bool,
    /// Follow links one hop from the best documents.
    #[arg(long)]
    graph: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum FusionArg {
    /// Weighted by how much the collection's words say about the query.
    Adaptive,
    /// Reciprocal rank fusion.
    Rrf,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum ExpanderArg {
    /// The language model of the preset.
    Model,
    /// Rules: telling words alone, other spellings, abbreviations.
    Lexical,
}

/// What a search prints with `--json`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// Version of this format.
    version: u32,
    /// `search`, `vsearch` or `query`.
    command: &'static str,
    /// The text as typed.
    query: String,
    /// The documents, best first.
    hits: Ranking,
    /// What ran, in order.
    trace: Trace,
}

/// Runs it.
pub fn run(command: Command) -> Result<ExitCode> {
    let settings = Settings::load(&super::working_folder()?)?;
    let (name, args, (hits, trace)) = match &command {
        Command::Search(args) => ("search", args, open(args, &settings, false)?.search(&plain(args))?),
        Command::Vsearch(args) => ("vsearch", args, open(args, &settings, true)?.vsearch(&plain(args))?),
        Command::Query(args) => ("query", &args.common, hybrid(args, &settings)?),
    };
    let output = Output { version: 1, command: name, query: args.text.join(" "), hits, trace };
    if let Some(why) = output.trace.stage("expansion").and_then(|stage| stage.fields.get("error")) {
        eprintln!("note: the query was searched as it stands, it could not be expanded: {}", short(why));
    }
    super::print(&if args.json { super::json(&output) } else { page(&output, args.explain) })?;
    Ok(ExitCode::SUCCESS)
}

fn open(args: &Args, settings: &Settings, vectors: bool) -> Result<Pipeline> {
    let dir = super::index_folder(args.index.as_deref())?;
    let pipeline = if vectors {
        let cache = Cache::open(&settings::home()?.join("cache.db"))?;
        Pipeline::open(&dir, settings, Some(Arc::new(cache)))?
    } else {
        Pipeline::with_models(&dir, &settings.search, None, None)?
    };
    super::capture::attach(pipeline, settings)
}

fn plain(args: &Args) -> Request {
    with_common(Request::new(args.text.join(" ")), args)
}

fn with_common(mut request: Request, args: &Args) -> Request {
    request.limit = args.limit as usize;
    request.collection.clone_from(&args.collection);
    request.snippets = true;
    request
}

fn hybrid(args: &QueryArgs, settings: &Settings) -> Result<(Ranking, Trace)> {
    let mut request = with_common(Request::parse(&args.common.text)?, &args.common);
    request.fusion = args.fusion.map(|fusion| match fusion {
        FusionArg::Adaptive => Fusion::Adaptive,
        FusionArg::Rrf => Fusion::Rrf,
    });
    request.rerank = !args.no_rerank;
    request.graph = args.graph.then_some(true);
    request.expand = match (args.no_expand, args.expander) {
        (true, _) => Some(Expand::Never),
        (_, Some(ExpanderArg::Model)) => Some(Expand::Model),
        (_, Some(ExpanderArg::Lexical)) => Some(Expand::Lexical),
        (false, None) => None,
    };
    let level = match (args.fast, args.thorough) {
        (true, _) => Thoroughness::Fast,
        (_, true) => Thoroughness::Thorough,
        _ => settings.search.thoroughness,
    };
    request.thoroughness = Some(level);
    open(&args.common, settings, level != Thoroughness::Fast)?.query(&request)
}

fn page(output: &Output, explain: bool) -> String {
    let mut text = String::new();
    if output.hits.hits.is_empty() {
        text.push_str("no document matches\n");
    }
    let several = output.hits.hits.windows(2).any(|pair| pair[0].collection != pair[1].collection);
    // Writing to a String cannot fail.
    for (i, hit) in output.hits.hits.iter().enumerate() {
        let collection = if several { format!("{}: ", hit.collection) } else { String::new() };
        let _ = writeln!(
            text,
            "{:>2}. {collection}{}  {}  {:.4}",
            i + 1,
            super::line(&hit.docid),
            hit.hash,
            hit.score
        );
        if !hit.title.is_empty() {
            let _ = writeln!(text, "    {}", super::line(&hit.title));
        }
        if !hit.snippet.is_empty() {
            let _ = writeln!(text, "    {}", hit.snippet);
        }
        if explain {
            for evidence in &hit.evidence {
                let _ = writeln!(
                    text,
                    "      {:<17} rank {:>3}  score {:>9.4}  adds {:>8.4}",
                    evidence.stage, evidence.rank, evidence.score, evidence.contribution
                );
            }
        }
    }
    if explain {
        text.push_str(&output.trace.stage("expansion").map(beside).unwrap_or_default());
        text.push_str(&stages(&output.trace));
    }
    text
}

/// What each stage did.
pub(super) fn stages(trace: &Trace) -> String {
    let mut text = String::from("\nstages\n");
    for stage in &trace.stages {
        let indent = 2 + 2 * stage.depth as usize;
        // Writing to a String cannot fail.
        let _ = write!(text, "{:indent$}{} {:.1} ms", "", stage.name, stage.took_ms);
        for (name, value) in &stage.fields {
            let _ = write!(text, "  {name}={}", short(value));
        }
        text.push('\n');
    }
    text
}

/// What was searched beside the query, or why nothing was.
fn beside(expansion: &Stage) -> String {
    let field = |name: &str| expansion.fields.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut text = format!("\nsearched beside the query (expander: {})\n", field("expander"));
    for (label, name) in [
        ("words", "lexical"),
        ("meaning", "vector"),
        ("answer", "hyde"),
        ("nothing", "skipped"),
        ("nothing", "error"),
    ] {
        for variant in field(name).split(SEPARATOR).filter(|variant| !variant.is_empty()) {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  {label:<8} {variant}");
        }
    }
    text
}

/// A field for the eye: three decimals, and as much of a fingerprint as tells two apart.
fn short(value: &Value) -> String {
    match value {
        Value::Number(number) if number.is_f64() => format!("{:.3}", number.as_f64().unwrap_or_default()),
        Value::String(text) if text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit()) => {
            text[..12].into()
        }
        other => other.to_string(),
    }
}
