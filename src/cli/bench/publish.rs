//! `rankgate bench publish`: baselines for the gate.

use std::path::PathBuf;
use std::process::ExitCode;

use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::{json, print};
use crate::error::{Error, Result};
use crate::record::baseline::{Floors, Header, PublishOptions, Published, publish};

/// Freeze captured searches into a baseline
///
/// The same searches give the same bytes, in whatever order they come. Rows in which personal data is found are
/// refused; a baseline that others can read should be made of invented searches only.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rankgate bench publish --from captured.ndjson --to team.baseline.ndjson --dedupe")]
pub struct Args {
    /// Captured searches, one JSON object a line.
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// The baseline to write; its folder has to be there.
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// What to call it. Default: the file's name without `.baseline.ndjson`.
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// Replace a file that is there.
    #[arg(long)]
    force: bool,
    /// Keep rows in which personal data was found.
    #[arg(long)]
    allow_pii: bool,
    /// Of searches that occur more than once keep the first: the newest of an export.
    #[arg(long)]
    dedupe: bool,
    /// Leave out searches that cannot be run again as they were: whose text lost personal data, whose expansion is not
    /// in their row …
    #[arg(long)]
    skip_unreplayable: bool,
    /// Least mean Jaccard coefficient that a gate accepts.
    #[arg(long, value_name = "0..1", default_value_t = Floors::default().jaccard)]
    threshold_jaccard: f64,
    /// Least share of searches whose first document stays.
    #[arg(long, value_name = "0..1", default_value_t = Floors::default().top1)]
    threshold_top1: f64,
    /// Most that searches may take, as a multiple of the captured latency.
    #[arg(long, value_name = "FACTOR", default_value_t = Floors::default().latency_multiplier)]
    threshold_latency_multiplier: f64,
    /// Print one JSON document (schemas/bench-publish.schema.json).
    #[arg(long)]
    json: bool,
}

/// What `publish` prints with `--json`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "rankgate bench publish")]
pub(in crate::cli) struct Output {
    /// Version of this format.
    version: u32,
    /// The baseline, as an absolute path.
    output_path: PathBuf,
    /// What people call it.
    label: String,
    /// SHA-256 of the sorted query hashes.
    source_hash: String,
    /// SHA-256 of the rows.
    rows_hash: Option<String>,
    /// How many rows it has.
    row_count: u64,
    /// How many were left out, because they cannot be run again as they were.
    rows_left_out: usize,
    /// Mean latency of the rows that state one.
    baseline_mean_latency_ms: Option<f64>,
    /// What a gate demands.
    thresholds: Floors,
}

/// Runs it.
pub fn run(args: Args) -> Result<ExitCode> {
    let options = PublishOptions {
        label: args.label,
        force: args.force,
        allow_pii: args.allow_pii,
        dedupe: args.dedupe,
        skip_unreplayable: args.skip_unreplayable,
        floors: Floors {
            jaccard: args.threshold_jaccard,
            top1: args.threshold_top1,
            latency_multiplier: args.threshold_latency_multiplier,
        },
    };
    let Published { header, left_out } = publish(&args.from, &args.to, &options)?;
    let path = std::path::absolute(&args.to).map_err(|e| Error::io("resolve", &args.to, e))?;
    print(&if args.json { json(&output(header, left_out, path)) } else { page(&header, left_out, &path) })?;
    Ok(ExitCode::SUCCESS)
}

fn output(header: Header, rows_left_out: usize, output_path: PathBuf) -> Output {
    Output {
        version: 1,
        output_path,
        label: header.label,
        source_hash: header.source_hash,
        rows_hash: header.rows_hash,
        row_count: header.row_count,
        rows_left_out,
        baseline_mean_latency_ms: header.baseline_mean_latency_ms,
        thresholds: header.thresholds,
    }
}

fn page(header: &Header, left_out: usize, path: &std::path::Path) -> String {
    let latency = header.baseline_mean_latency_ms.map_or("unknown".into(), |mean| format!("{mean:.1} ms"));
    let left_out = if left_out > 0 { format!(", {left_out} left out") } else { String::new() };
    let Floors { jaccard, top1, latency_multiplier } = header.thresholds;
    format!(
        "{}\n  label    {}\n  rows     {}{left_out}\n  queries  {}\n  latency  {latency} at the mean\n  \
         gate     jaccard {jaccard}, top-1 {top1}, latency {latency_multiplier} times\n",
        path.display(),
        header.label,
        header.row_count,
        &header.source_hash[..16],
    )
}
