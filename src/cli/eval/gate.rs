//! `rankgate eval gate`: may a change go in?

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::known::{self, Known};
use super::number::{factor, share};
use super::replay;
use crate::corpus::{is_database, write_file};
use crate::error::{Error, ErrorKind, Result, exit};
use crate::gate::qrels::SourceSlug;
use crate::gate::{
    CorrectnessGate, CorrectnessThresholds, GateReport, RegressionGate, RegressionThresholds, Significance,
    Staleness, Verdict, WorstRow, WorstRows, correctness, junit, markdown, regression, stale, worst_queries,
};
use crate::pipeline::Pipeline;
use crate::record::baseline::{Baseline, Floors};
use crate::record::{Captured, ReplayTally};
use crate::replay::{Options, Replayer, by_meaning};
use crate::settings::Settings;

/// Decide whether a change may go in: by a baseline, by known queries, or both
///
/// With --baseline, captured searches are run again and have to return what they returned; thresholds not given here
/// are those of the file. With --qrels, queries with a known answer have to find it. A value equal to its threshold
/// passes; rows and queries that fail are breaches. A baseline of another corpus, index or model is stale and not
/// replayed; known queries are answered all the same.
///
/// In known queries, documents without a source are of the source `default`: the only collection of an index that has
/// one. With several, JSON names the collection as "source_id", and TREC judgments write `collection::docid`.
///
/// Exit code 0: all that was asked holds. 1: something does not. 2: there is no answer (a file that cannot be used,
/// a baseline of another corpus, index or model, too few judged documents, or an inconclusive test).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rankgate eval gate --baseline team.baseline.ndjson
  rankgate eval gate --baseline team.baseline.ndjson --qrels team.qrels.json --significance
  rankgate eval gate --qrels team.qrels.json -k 5 --threshold-recall-at-k 0.8 --junit gate.xml --summary \"$GITHUB_STEP_SUMMARY\"")]
#[command(group = clap::ArgGroup::new("asked").required(true).multiple(true).args(["baseline", "qrels"]))]
pub struct Args {
    /// A baseline, made by `rankgate bench publish`.
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Queries with a known answer: the gate's JSON, a queries.json, a BEIR folder, or TREC judgments.
    #[arg(long, value_name = "FILE")]
    qrels: Option<PathBuf>,
    #[command(flatten)]
    known: Known,
    #[command(flatten)]
    thresholds: Thresholds,
    /// Test whether a miss is more than chance: a paired randomisation test a metric, Holm-corrected. A miss that is
    /// not confirmed is inconclusive. Each test says from which size it "would notice a loss": a smaller one, with as
    /// many queries as these, is missed more often than in one of five runs (the minimum detectable effect).
    #[arg(long)]
    significance: bool,
    /// What an inconclusive test counts as; exit code 2 where this is not given. Too few judgments always are 2.
    #[arg(long, value_enum, value_name = "pass|fail")]
    inconclusive: Option<Inconclusive>,
    /// Compare with a baseline of another corpus, index or model all the same.
    #[arg(long)]
    allow_stale: bool,
    /// How many of the worst queries are shown, with what became of their documents.
    #[arg(long, value_name = "N", default_value_t = 5)]
    worst: u32,
    /// Print one JSON document (schemas/gate.schema.json).
    #[arg(long)]
    json: bool,
    /// Write the answer as JUnit XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Append the answer as Markdown, 60 kB at most: for $GITHUB_STEP_SUMMARY.
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
}

/// What has to be reached.
#[derive(Debug, clap::Args)]
struct Thresholds {
    /// Least mean Jaccard coefficient of a replay. Default: that of the baseline.
    #[arg(long, value_name = "0..1", value_parser = share)]
    threshold_jaccard: Option<f64>,
    /// Least share of replayed searches whose first document stays. Default: that of the baseline.
    #[arg(long, value_name = "0..1", value_parser = share)]
    threshold_top1: Option<f64>,
    /// Most that replayed searches may take, as a multiple of the captured latency. Default: that of the baseline. It
    /// says little where each search was captured by a program of its own, which loaded the models first.
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    threshold_latency_multiplier: Option<f64>,
    /// Most rows of a baseline that may be left out, because they cannot be run as they were.
    #[arg(long, value_name = "N", default_value_t = 0)]
    max_skipped: usize,
    /// Least mean recall of known queries among the first k.
    #[arg(long, value_name = "0..1", value_parser = share, default_value_t = CorrectnessThresholds::default().recall_at_k)]
    threshold_recall_at_k: f64,
    /// Least share of known queries whose first document is relevant.
    #[arg(long, value_name = "0..1", value_parser = share, default_value_t = CorrectnessThresholds::default().first_relevant_hit)]
    threshold_first_relevant_hit: f64,
    /// Least share of known queries whose first document is the expected one, among those that expect one.
    #[arg(long, value_name = "0..1", value_parser = share, default_value_t = CorrectnessThresholds::default().expected_top1)]
    threshold_expected_top1: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Inconclusive {
    /// Exit code 0.
    Pass,
    /// Exit code 1.
    Fail,
}

/// Runs it.
pub fn run(args: Args) -> Result<ExitCode> {
    let (junit, summary) = (args.junit.as_deref(), args.summary.as_deref());
    crate::cli::apart(
        &[("--junit", junit), ("--summary", summary)],
        &[
            ("--baseline", args.baseline.as_deref()),
            ("--qrels", args.qrels.as_deref()),
            ("--queries", args.known.queries.as_deref()),
        ],
    )?;
    for (option, path) in [("--junit", junit), ("--summary", summary)] {
        if let Some(path) = path.filter(|path| is_database(path)) {
            return Err(Error::usage(format!("{}: {option} would replace a database", path.display()))
                .with_hint("choose another file"));
        }
    }
    let decided = decide(&args);
    // An error belongs into the reports of a job as well: a job without a report looks like one that passed.
    let (xml, page) = match &decided {
        Ok(report) => {
            let tolerated = args.inconclusive == Some(Inconclusive::Pass)
                && !report.correctness_gate.unjudged()
                && !report.regression_gate.is_refused();
            (junit::junit(report, tolerated), markdown::markdown(report))
        }
        Err(error) => (junit::junit_error(error), markdown::markdown_error(error)),
    };
    let written = write(&args, &xml, &page);
    let report = match decided {
        Ok(report) => report,
        Err(error) => {
            if let Err(second) = written {
                eprintln!("note: {}", second.report());
            }
            return Err(error);
        }
    };
    crate::cli::print(&if args.json { crate::cli::json(&report) } else { report.text() })?;
    let code = code(&args, &report);
    if report.regression_gate.is_refused() {
        // What is beside it was answered and printed.
        eprintln!("error: {}", refusal(&report.regression_gate));
    }
    match written {
        // A breach is a breach, whether or not its report could be written.
        Err(error) if code == exit::GATE_FAILED => eprintln!("error: {}", error.report()),
        other => other?,
    }
    Ok(ExitCode::from(code))
}

fn code(args: &Args, report: &GateReport) -> u8 {
    if report.regression_gate.is_refused() && report.verdict != Verdict::Fail {
        return exit::ERROR;
    }
    match (report.verdict, args.inconclusive) {
        (Verdict::Pass, _) => exit::PASS,
        (Verdict::Fail, _) => exit::GATE_FAILED,
        (Verdict::Inconclusive, _) if report.correctness_gate.unjudged() => exit::ERROR,
        (Verdict::Inconclusive, Some(Inconclusive::Pass)) => exit::PASS,
        (Verdict::Inconclusive, Some(Inconclusive::Fail)) => exit::GATE_FAILED,
        (Verdict::Inconclusive, None) => exit::ERROR,
    }
}

/// Why a baseline was not replayed.
fn refusal(gate: &RegressionGate) -> String {
    let staleness = Staleness { differences: gate.stale.clone(), notes: Vec::new() };
    let error = staleness.refusal(gate.baseline_path.as_deref().unwrap_or_default());
    error.map(|error| error.report()).unwrap_or_default()
}

fn write(args: &Args, xml: &str, page: &str) -> Result<()> {
    let junit = args
        .junit
        .as_ref()
        .map_or(Ok(()), |path| write_file(path, "JUnit report", |out| out.write_all(xml.as_bytes())));
    let summary = args.summary.as_ref().map_or(Ok(()), |path| append(path, page));
    junit.and(summary)
}

/// Adds a page to a file, as a block of its own, in one write.
fn append(path: &Path, page: &str) -> Result<()> {
    let add = || {
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        let gap = if file.metadata()?.len() > 0 { "\n\n" } else { "" };
        file.write_all(format!("{gap}{page}").as_bytes())
    };
    add().map_err(|e| Error::io("append the summary", path, e))
}

/// Reads all that was named before anything is searched, then answers both questions, whatever the first says.
fn decide(args: &Args) -> Result<GateReport> {
    let mut baseline = args.baseline.as_deref().map(Baseline::open).transpose()?;
    let mut queries = args.qrels.as_deref().map(|path| args.known.read(path)).transpose()?;
    let significance = args.significance.then(Significance::default);
    let vectors = queries.is_some() && args.known.mode.needs_vectors();
    let index = args.known.index.as_deref();
    let pipeline = match &mut baseline {
        Some(baseline) if !vectors => replay::open(index, &first_by_meaning(baseline)?)?,
        _ => known::open(index, vectors)?,
    };
    let regression = match (&mut baseline, &args.baseline) {
        (Some(baseline), Some(path)) => {
            Some(of_baseline(args, baseline, path, &pipeline, significance.as_ref())?)
        }
        _ => None,
    };
    let correctness = match (&mut queries, &args.qrels) {
        (Some(queries), Some(path)) => {
            let k = args.known.k as usize;
            let answers = args.known.retrieve(&pipeline, queries).map_err(|e| e.context(path.display()))?;
            let thresholds = args.thresholds.correctness(args.known.min_judged);
            let mut gate = correctness(&answers.results, k, thresholds, significance.as_ref())?;
            gate.notes.extend(answers.notes);
            gate.qrels_path = Some(path.display().to_string());
            let name = |key: &SourceSlug| key.name(answers.several);
            gate.worst = worst_queries(&answers.results, k, args.worst as usize, name);
            Some::<CorrectnessGate>(gate)
        }
        _ => None,
    };
    if !pipeline.index().is_current()? {
        let what = format!("{}: the index was changed while the gate ran", pipeline.index().dir().display());
        return Err(Error::new(ErrorKind::Busy, what).with_hint("run it again"));
    }
    GateReport::new(regression, correctness, significance)
}

/// The first row that cannot be run without a model.
fn first_by_meaning(baseline: &mut Baseline) -> Result<Option<Captured>> {
    let default = Settings::load(&crate::cli::working_folder()?)?.search.thoroughness;
    for row in baseline.rows()? {
        let (row, _) = row?;
        if by_meaning(&row, default) {
            return Ok(Some(row));
        }
    }
    Ok(None)
}

/// Replays a baseline row by row: of each, only figures are kept, and the rows themselves of the few worst.
fn of_baseline(
    args: &Args,
    baseline: &mut Baseline,
    path: &Path,
    pipeline: &Pipeline,
    significance: Option<&Significance>,
) -> Result<RegressionGate> {
    let name = path.display().to_string();
    let staleness = stale(&baseline.header.fingerprints, &pipeline.fingerprints()?);
    if !staleness.differences.is_empty() && !args.allow_stale {
        return Ok(RegressionGate { baseline_path: Some(name), ..RegressionGate::refused(staleness) });
    }
    let thresholds = args.thresholds.regression(baseline.header.thresholds);
    let replayer = Replayer::new(pipeline, Options::default());
    let (mut tally, mut worst) = (ReplayTally::default(), WorstRows::new(args.worst as usize));
    let bar = crate::cli::progress(baseline.header.row_count, "replay");
    for row in baseline.rows()? {
        let (captured, _) = row?;
        let replayed = replayer.replay(&captured);
        tally.add(&replayed);
        worst.add(captured, replayed);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let mut gate = regression(&tally, thresholds, significance)?;
    for (captured, replayed) in worst.into_rows() {
        // The verdict stands without it.
        let diff =
            replayed.replayed().then(|| replayer.diff(&captured)).transpose().unwrap_or_else(|error| {
                gate.notes.push(format!("no diff of `{}`: {error}", captured.query));
                None
            });
        gate.worst.push(WorstRow::new(&replayed, diff));
    }
    gate.baseline_path = Some(name);
    gate.notes.extend(baseline.notes());
    Ok(gate.with_staleness(staleness))
}

impl Thresholds {
    /// What is given here goes before what the baseline carries.
    fn regression(&self, carried: Floors) -> RegressionThresholds {
        let floors = Floors {
            jaccard: self.threshold_jaccard.unwrap_or(carried.jaccard),
            top1: self.threshold_top1.unwrap_or(carried.top1),
            latency_multiplier: self.threshold_latency_multiplier.unwrap_or(carried.latency_multiplier),
        };
        RegressionThresholds { floors, max_skipped: self.max_skipped }
    }

    fn correctness(&self, judged_at_k: f64) -> CorrectnessThresholds {
        CorrectnessThresholds {
            recall_at_k: self.threshold_recall_at_k,
            first_relevant_hit: self.threshold_first_relevant_hit,
            expected_top1: self.threshold_expected_top1,
            judged_at_k,
        }
    }
}
