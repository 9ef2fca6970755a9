//! `rankgate eval qrels`: how well are known queries answered?

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Serialize;

use super::known::{self, Answers, Known};
use super::number::share;
use crate::corpus::Judgments;
use crate::error::{Result, exit};
use crate::gate::Retrieved;
use crate::gate::qrels::{KnownQuery, SourceSlug};
use crate::metrics::stats::{self, Interval};
use crate::metrics::{ndcg_at, precision_at, recall_at, reciprocal_rank};

/// Measure how well known queries are answered
///
/// Figures are means over the queries that could be searched for, as trec_eval computes them over the first k
/// documents. Where the file says which documents were judged, judged@k is the share of them among those found: below
/// --min-judged the other figures rest on guesses and are marked, and --fail-under decides nothing.
///
/// Exit code 0, or 1 when a figure is below its --fail-under; 2 when a search failed, or --fail-under cannot decide.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rankgate eval qrels --qrels team.qrels.json
  rankgate eval qrels --qrels qrels.txt --queries topics.tsv --mode bm25 -k 5 --fail-under recall=0.8")]
pub struct Args {
    /// Queries with a known answer: the gate's JSON, a queries.json, a BEIR folder, or TREC judgments.
    #[arg(long, value_name = "FILE")]
    qrels: PathBuf,
    #[command(flatten)]
    known: Known,
    /// Least value of a metric: `recall=0.8`; may be repeated.
    #[arg(long, value_name = "METRIC=0..1")]
    fail_under: Vec<Floor>,
    /// Print one JSON document (schemas/eval-qrels.schema.json).
    #[arg(long)]
    json: bool,
}

/// What is measured of a query, by name; all from 0 to 1.
const METRICS: [&str; 7] =
    ["precision", "recall", "ndcg", "mrr", "first_relevant", "expected_top1", "judged"];

#[derive(Debug, Clone)]
struct Floor {
    metric: &'static str,
    value: f64,
}

impl FromStr for Floor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').ok_or("write METRIC=FLOOR, such as recall=0.8")?;
        let metric = METRICS.into_iter().find(|metric| *metric == name);
        let metric = metric.ok_or_else(|| format!("metrics are {}", METRICS.join(", ")))?;
        Ok(Self { metric, value: share(value)? })
    }
}

/// What `eval qrels` prints with `--json`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "rankgate eval qrels")]
pub(in crate::cli) struct Output {
    /// Version of this format.
    version: u32,
    /// The file of known queries.
    qrels: String,
    /// How they were searched for.
    mode: &'static str,
    /// How many documents count.
    k: u32,
    /// All queries.
    queries_total: usize,
    /// Queries whose search failed; they are in no mean.
    queries_errored: usize,
    /// Whether enough of the documents found were judged for the means to say something; null when the file does not
    /// say who was judged.
    reliable: Option<bool>,
    /// Means by metric; a metric that is defined for no query is left out.
    metrics: BTreeMap<&'static str, Mean>,
    /// What a reader should know: queries that say nothing, documents that are not in the index.
    notes: Vec<String>,
    /// Every query, in the order of the file.
    queries: Vec<Row>,
    /// What is below its --fail-under, or why nothing was decided.
    reasons: Vec<String>,
}

/// A mean over queries.
#[derive(Debug, Serialize, JsonSchema)]
struct Mean {
    /// Its value.
    mean: f64,
    /// 95 % bootstrap interval.
    interval: Option<Interval>,
    /// Over how many queries.
    queries: usize,
}

/// One query.
#[derive(Debug, Serialize, JsonSchema)]
struct Row {
    /// Its id.
    id: String,
    /// Its text.
    query: String,
    /// Its values by metric.
    metrics: BTreeMap<&'static str, f64>,
    /// Why its search failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Runs it.
pub fn run(args: Args) -> Result<ExitCode> {
    let mut queries = args.known.read(&args.qrels)?;
    let pipeline = known::open(args.known.index.as_deref(), args.known.mode.needs_vectors())?;
    let answers =
        args.known.retrieve(&pipeline, &mut queries).map_err(|e| e.context(args.qrels.display()))?;
    let output = measure(&args, answers);
    let min_judged = args.known.min_judged;
    crate::cli::print(&if args.json { crate::cli::json(&output) } else { page(&output, min_judged) })?;
    let undecided = output.reliable == Some(false) && !args.fail_under.is_empty();
    Ok(ExitCode::from(if output.queries_errored > 0 || undecided {
        exit::ERROR
    } else if output.reasons.is_empty() {
        exit::PASS
    } else {
        exit::GATE_FAILED
    }))
}

fn measure(args: &Args, Answers { results, notes, .. }: Answers<'_>) -> Output {
    let k = args.known.k as usize;
    let rows: Vec<Row> = results.iter().map(|(query, found)| row(query, found, k)).collect();
    let mut metrics = BTreeMap::new();
    for metric in METRICS {
        let values: Vec<f64> = rows.iter().filter_map(|row| row.metrics.get(metric).copied()).collect();
        if let Some(mean) = stats::mean(&values) {
            let interval = stats::bootstrap_mean_ci(&values, 0.95, 1000, 42);
            metrics.insert(metric, Mean { mean, interval, queries: values.len() });
        }
    }
    let errored = rows.iter().filter(|row| row.error.is_some()).count();
    let reliable = metrics.get("judged").map(|judged: &Mean| judged.mean >= args.known.min_judged);
    Output {
        version: 1,
        qrels: args.qrels.display().to_string(),
        mode: args.known.mode.name(),
        k: args.known.k,
        queries_total: rows.len(),
        queries_errored: errored,
        reliable,
        reasons: reasons(args, &metrics, reliable),
        metrics,
        notes,
        queries: rows,
    }
}

fn reasons(args: &Args, metrics: &BTreeMap<&'static str, Mean>, reliable: Option<bool>) -> Vec<String> {
    if args.fail_under.is_empty() {
        return Vec::new();
    }
    let (path, k) = (args.qrels.display(), args.known.k);
    if let Some(judged) = metrics.get("judged").filter(|_| reliable == Some(false)) {
        return vec![format!(
            "nothing is decided: judged@{k} {:.3} is below {:.3}, judge more documents or accept that with --min-judged ({path})",
            judged.mean, args.known.min_judged
        )];
    }
    let missed = |floor: &Floor| match metrics.get(floor.metric) {
        Some(value) if value.mean >= floor.value => None,
        Some(value) => Some(format!(
            "{}@{k} {:.4} is below its floor {:.4} ({path})",
            floor.metric, value.mean, floor.value
        )),
        None => {
            Some(format!("{}@{k} was not measured, its floor is {:.4} ({path})", floor.metric, floor.value))
        }
    };
    args.fail_under.iter().filter_map(missed).collect()
}

fn row(query: &KnownQuery, found: &Retrieved, k: usize) -> Row {
    let (id, text) = (query.id.clone(), query.query.clone());
    let keys = match found {
        Ok(keys) => keys,
        Err(error) => return Row { id, query: text, metrics: BTreeMap::new(), error: Some(error.clone()) },
    };
    // A source and a slug as one text: the sign between them is in neither.
    let name = |key: &SourceSlug| format!("{}\0{}", key.source_id, key.slug);
    let known = query.relevant.iter().chain(query.judged.iter().flatten()).chain(query.grades.keys());
    let judgments: Judgments = known.map(|key| (name(key), query.grade(key))).collect();
    let names: Vec<String> = keys.iter().map(name).collect();
    let ranking = || names.iter().map(String::as_str);
    let share = |yes: bool| f64::from(u8::from(yes));
    let first = keys.first();
    let values = [
        ("precision", precision_at(k, ranking(), &judgments)),
        ("recall", recall_at(k, ranking(), &judgments)),
        ("ndcg", ndcg_at(k, ranking(), &judgments)),
        ("mrr", reciprocal_rank(ranking(), &judgments)),
        ("first_relevant", Some(share(first.is_some_and(|key| query.relevant.contains(key))))),
        ("expected_top1", query.expected_top1.as_ref().map(|expected| share(first == Some(expected)))),
        ("judged", query.judged_share(keys, k)),
    ];
    let metrics = values.into_iter().filter_map(|(metric, value)| Some((metric, value?))).collect();
    Row { id, query: text, metrics, error: None }
}

fn page(output: &Output, min_judged: f64) -> String {
    let mut text = format!(
        "{}: {} queries, {} errored, mode {}, k = {}\n\n",
        output.qrels, output.queries_total, output.queries_errored, output.mode, output.k
    );
    let mark = if output.reliable == Some(false) { "  ?" } else { "" };
    // Writing to a String cannot fail.
    for (metric, Mean { mean, interval, queries }) in
        METRICS.iter().filter_map(|metric| Some((metric, output.metrics.get(metric)?)))
    {
        let name = format!("{metric}@{}", output.k);
        let interval = interval.map(|i| format!("  [{:.3}, {:.3}]", i.low, i.high)).unwrap_or_default();
        let mark = if *metric == "judged" { "" } else { mark };
        let _ = writeln!(text, "  {name:<18} {mean:.4}{interval}  over {queries}{mark}");
    }
    if output.reliable == Some(false) {
        let _ = writeln!(
            text,
            "\n? rests on guesses: fewer than {:.0} % of the documents found were judged",
            100.0 * min_judged
        );
    }
    for note in &output.notes {
        let _ = writeln!(text, "\nnote: {}", crate::cli::line(note));
    }
    for row in output.queries.iter().filter_map(|row| Some((&row.id, row.error.as_ref()?))).take(5) {
        let _ = writeln!(text, "\nquery `{}` failed: {}", crate::cli::line(row.0), crate::cli::line(row.1));
    }
    for reason in &output.reasons {
        let _ = writeln!(text, "\nFAIL {reason}");
    }
    text
}
