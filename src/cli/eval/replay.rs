//! `rankgate eval replay`: did a change move what captured searches return?

use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::number::{factor, share};
use crate::error::{Error, Result, exit};
use crate::gate::{Breach, stale};
use crate::models;
use crate::pipeline::Pipeline;
use crate::record::diff::RankedDiff;
use crate::record::{Captured, ReplaySummary, ReplayTally, ReplayedRow, captured};
use crate::replay::{Options, Replayer, by_meaning};
use crate::settings::{self, Settings};
use crate::store::cache::Cache;

mod page;

/// Rows between two lines of progress.
const STEP: usize = 25;

/// Run captured searches again and compare the answers
///
/// Every search is run as it was captured: by words, by meaning or both, with its limit, collection and expansion.
/// What cannot be run so is left out and named. Without a --fail option the exit code is 0 however much has moved;
/// with one it is 1 when a figure is missed or could not be measured, a search failed, or more rows than
/// --max-skipped were left out; 2 says that nothing was replayed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rankgate eval replay --against captured.ndjson
  rankgate eval replay --against captured.ndjson --limit 50 --top-regressions 20
  rankgate eval replay --against team.baseline.ndjson --fail-under-jaccard 0.85 --fail-under-top1 0.85")]
pub struct Args {
    /// Captured searches, one JSON object a line: an export or a baseline.
    #[arg(long, value_name = "FILE")]
    against: PathBuf,
    /// Replay only so many rows, from the top of the file: of an export, the newest.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// How many of the searches that changed most are shown, with what became of their documents.
    #[arg(long, value_name = "K", default_value_t = 5)]
    top_regressions: u32,
    /// The index folder. Default: the one in RANKGATE_HOME.
    #[arg(long, value_name = "DIR")]
    index: Option<PathBuf>,
    /// Print one JSON document (schemas/replay.schema.json).
    #[arg(long)]
    json: bool,
    /// Show all that changed; with --json, every row.
    #[arg(long)]
    verbose: bool,
    /// Least mean Jaccard coefficient, from 0 to 1.
    #[arg(long, value_name = "0..1", value_parser = share)]
    fail_under_jaccard: Option<f64>,
    /// Least share of searches whose first document stays, from 0 to 1.
    #[arg(long, value_name = "0..1", value_parser = share)]
    fail_under_top1: Option<f64>,
    /// Most that searches may take, as a multiple of the captured latency.
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    fail_over_latency: Option<f64>,
    /// With a --fail option: most rows that may be left out, because they cannot be run as they were.
    #[arg(long, value_name = "N", default_value_t = 0)]
    max_skipped: usize,
}

/// What `replay` prints with `--json`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "rankgate eval replay")]
pub(in crate::cli) struct Output {
    /// Version of this format.
    version: u32,
    /// All rows together.
    summary: ReplaySummary,
    /// What was demanded and does not hold.
    breaches: Vec<Breach>,
    /// Why rows were left out or failed.
    not_replayed: Vec<NotReplayed>,
    /// The rows that changed most, worst first.
    regressions: Vec<Regression>,
    /// What differs from when the rows were captured, and what is not known of it.
    notes: Vec<String>,
    /// Every row; with `--verbose` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    results: Option<Vec<Row>>,
}

/// Rows that were not replayed for one reason.
#[derive(Debug, Serialize, JsonSchema)]
struct NotReplayed {
    /// Whether they failed; else they were left out.
    errored: bool,
    /// Why.
    reason: String,
    /// How many.
    rows: usize,
    /// The query of the first one.
    first_query: String,
}

/// A row and what became of its documents.
#[derive(Debug, Serialize, JsonSchema)]
struct Regression {
    #[serde(flatten)]
    row: Row,
    /// The documents that left, entered and moved.
    diff: RankedDiff,
}

/// A row with its measures; they are null where it was not replayed.
#[derive(Debug, Serialize, JsonSchema)]
struct Row {
    #[serde(flatten)]
    row: ReplayedRow,
    /// Share of common documents.
    jaccard: Option<f64>,
    /// Whether the first document stayed.
    top1_match: Option<bool>,
    /// Rank-biased overlap, p = 0.9.
    rank_biased_overlap: Option<f64>,
    /// Latency now over latency as captured, where both were measured.
    latency_ratio: Option<f64>,
}

impl From<&ReplayedRow> for Row {
    fn from(row: &ReplayedRow) -> Self {
        Self {
            jaccard: row.jaccard(),
            top1_match: row.top1_match(),
            rank_biased_overlap: row.rank_biased_overlap(),
            latency_ratio: row.latencies().map(|(captured, now)| now / captured),
            row: row.clone(),
        }
    }
}

/// Runs it.
pub fn run(args: Args) -> Result<ExitCode> {
    let rows = captured::read(&args.against)?;
    let mut rows = rows.map(|row| row.map(|(_, row)| row)).collect::<Result<Vec<Captured>>>()?;
    if rows.is_empty() {
        let what = format!("{}: there are no captured searches in it", args.against.display());
        return Err(Error::input(what).with_hint("capture some searches, then export them"));
    }
    let all = rows.len();
    rows.truncate(args.limit.map_or(all, |limit| limit as usize));
    let of = if rows.len() < all { format!(" of {all}") } else { String::new() };
    let pipeline = open(args.index.as_deref(), &rows)?;
    eprintln!("Replaying {}{of} captured queries…", rows.len());

    let replayer = Replayer::new(&pipeline, Options::default());
    let results = rows.iter().zip(1..).map(|(row, number)| {
        let result = replayer.replay(row);
        if number % STEP == 0 && number < rows.len() {
            eprintln!("  ...{number}/{}", rows.len());
        }
        result
    });
    let results: Vec<ReplayedRow> = results.collect();
    let notes = stale(&rows.iter().collect(), &pipeline.fingerprints()?).all_notes();
    let tally: ReplayTally = results.iter().collect();
    let summary = tally.summary();
    let output = Output {
        version: 1,
        breaches: breaches(&args, &summary, &tally),
        not_replayed: not_replayed(&results),
        regressions: regressions(&replayer, &rows, &results, args.top_regressions as usize),
        notes,
        results: args.verbose.then(|| results.iter().map(Row::from).collect()),
        summary,
    };
    crate::cli::print(&if args.json {
        crate::cli::json(&output)
    } else {
        page::page(&output, args.verbose)
    })?;
    if output.summary.rows_replayed == 0 {
        let what = format!("{}: none of its {} rows could be replayed", args.against.display(), rows.len());
        return Err(Error::input(what).with_hint("the reasons are in the output"));
    }
    Ok(ExitCode::from(if output.breaches.is_empty() { exit::PASS } else { exit::GATE_FAILED }))
}

/// The pipeline that `rows` need: without models where all of them are by words. It does not capture.
///
/// Where a model is missing, the note on stderr says so, and the pipeline can do what needs none.
pub(super) fn open<'a>(
    index: Option<&Path>,
    rows: impl IntoIterator<Item = &'a Captured>,
) -> Result<Pipeline> {
    let settings = Settings::load(&crate::cli::working_folder()?)?;
    let dir = crate::cli::index_folder(index)?;
    let default = settings.search.thoroughness;
    if !rows.into_iter().any(|row| by_meaning(row, default)) {
        return Pipeline::with_models(&dir, &settings.search, None, None);
    }
    let cache = Some(Arc::new(Cache::open(&settings::home()?.join("cache.db"))?));
    let found = models::embedder(&settings.models, cache.clone())
        .and_then(|embedder| Ok((embedder, models::reranker(&settings.models, cache)?)));
    let (embedder, reranker) = match found {
        Ok((embedder, reranker)) => (Some(embedder), reranker),
        Err(error) => {
            eprintln!("note: searches by meaning are left out: {}", error.report());
            (None, None)
        }
    };
    Pipeline::with_models(&dir, &settings.search, embedder, reranker)
}

fn breaches(args: &Args, summary: &ReplaySummary, tally: &ReplayTally) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let mut check = |metric: &str, observed: Option<f64>, threshold: Option<f64>, wanted: Ordering| {
        let Some(threshold) = threshold else { return };
        let holds = |observed: f64| [wanted, Ordering::Equal].contains(&observed.total_cmp(&threshold));
        if !observed.is_some_and(holds) {
            let metric = metric.to_string();
            breaches.push(Breach { metric, observed, threshold: Some(threshold), error_tail: None });
        }
    };
    check("mean_jaccard", summary.mean_jaccard, args.fail_under_jaccard, Ordering::Greater);
    check("top1_stability_rate", summary.top1_stability_rate, args.fail_under_top1, Ordering::Greater);
    check("latency_ratio", summary.latency_ratio, args.fail_over_latency, Ordering::Less);
    // The figures of the rows that survive say nothing about those that failed or were left out.
    let demanding = [args.fail_under_jaccard, args.fail_under_top1, args.fail_over_latency];
    let faults = [("rows_errored", &tally.errored, 0), ("rows_skipped", &tally.skipped, args.max_skipped)];
    for (metric, faults, most) in faults.into_iter().filter(|(_, faults, most)| faults.count > *most) {
        if demanding.iter().any(Option::is_some) {
            breaches.push(Breach {
                metric: metric.into(),
                observed: Some(faults.count as f64),
                threshold: Some(most as f64),
                error_tail: Some(faults.first.clone()),
            });
        }
    }
    breaches
}

/// The reasons, in the order in which they first occur.
fn not_replayed(results: &[ReplayedRow]) -> Vec<NotReplayed> {
    let mut reasons: Vec<NotReplayed> = Vec::new();
    for row in results {
        let (errored, reason) = match (&row.skip_reason, &row.error_message) {
            (Some(reason), _) => (false, reason),
            (None, Some(message)) => (true, message),
            (None, None) => continue,
        };
        match reasons.iter_mut().find(|known| known.errored == errored && known.reason == *reason) {
            Some(known) => known.rows += 1,
            None => reasons.push(NotReplayed {
                errored,
                reason: reason.clone(),
                rows: 1,
                first_query: row.query.clone(),
            }),
        }
    }
    reasons
}

/// The rows with the fewest common documents, then those whose order changed most; none that is as it was.
fn regressions(
    replayer: &Replayer<'_>,
    rows: &[Captured],
    results: &[ReplayedRow],
    most: usize,
) -> Vec<Regression> {
    let mut changed: Vec<(f64, f64, usize)> = Vec::new();
    for (index, row) in results.iter().enumerate() {
        let Some((common, alike)) = row.jaccard().zip(row.rank_biased_overlap()) else { continue };
        if row.changed() {
            changed.push((common, alike, index));
        }
    }
    changed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let shown = changed.into_iter().take(most).map(|(_, _, index)| {
        let row = &results[index];
        let diff = replayer.diff(&rows[index]).unwrap_or_else(|error| {
            // What was measured must not be lost for it.
            eprintln!("note: where `{}` lost documents is not known: {}", row.query, error.report());
            let [captured, current] = [&row.captured_slugs, &row.current_slugs];
            RankedDiff::between(captured.iter().map(String::as_str), current.iter().map(String::as_str))
        });
        Regression { row: Row::from(row), diff }
    });
    shown.collect()
}
