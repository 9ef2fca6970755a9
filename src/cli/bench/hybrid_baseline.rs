//! `rankgate bench hybrid-baseline`: how the product's own way to search does, kept and compared.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::apart::measured;
use super::candidates::{finish, of_project, temporary};
use super::diff;
use crate::benchmarks::artefact::latest;
use crate::benchmarks::candidates::{ASK, Artefact, Delta, Kind, Points, Spec, delta, folder, jobs};
use crate::cli::{json, line, print, working_folder};
use crate::error::{Error, Result};
use crate::settings::Settings;

/// Documents beyond the first ten whose places in each stage are kept: enough to say which stage lost one.
const EXPLAINED: usize = 20;

/// Measure a balanced search as the settings have it over the fixtures
///
/// The cases are the baseline, adversarial and multilingual ones of fixtures/queries.json. A stage that did not run
/// fails the whole.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rankgate bench hybrid-baseline --write
  rankgate bench hybrid-baseline --delta")]
pub struct Args {
    /// Keep the result as a new dated artefact in fixtures/hybrid-baseline.
    #[arg(long)]
    write: bool,
    /// Compare with the latest artefact, or the one of --baseline.
    #[arg(long)]
    delta: bool,
    /// The artefact to compare with.
    #[arg(long, value_name = "FILE", requires = "delta")]
    baseline: Option<PathBuf>,
    /// Queries whose changes are shown.
    #[arg(long, value_name = "N", default_value_t = 10, requires = "delta")]
    limit: usize,
    /// Print one JSON document (schemas/bench-candidates.schema.json; with --delta schemas/bench-delta.schema.json).
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub fn run(args: Args) -> Result<ExitCode> {
    let project = working_folder()?;
    let kept = folder(&project, Kind::HybridBaseline);
    let before = if args.delta { Some(before(args.baseline.as_deref(), &kept)?) } else { None };
    let settings = Settings::load(&project)?;
    let (facts, mut sets) = of_project(&project)?;
    sets.retain(|set| set.name != ASK);
    let specs = [Spec::of(&settings)];
    let indexes = temporary()?;
    let mut jobs = jobs(&project.join("fixtures/corpus"), indexes.path(), &settings, &specs, &sets);
    jobs.iter_mut().for_each(|job| job.explained = EXPLAINED);
    let artefact = Artefact::new(Kind::HybridBaseline, facts, &sets, measured(&jobs, &specs)?);
    let to = args.write.then_some(kept.as_path());
    let Some((name, before)) = before else { return finish(&artefact, to, args.json) };
    let delta = delta(&name, &before, &artefact)?;
    print(&if args.json { json(&delta) } else { delta_page(&delta, args.limit) })?;
    if let Some(to) = to {
        let page = crate::benchmarks::candidates::page(&artefact);
        let path = crate::benchmarks::artefact::write(to, &artefact.value(), &page)?;
        eprintln!("kept as {}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// The artefact to compare with, and its name: read first, as measuring takes a while.
fn before(named: Option<&Path>, kept: &Path) -> Result<(String, Artefact)> {
    let none = || {
        Error::not_found(format!("{}: there is no artefact to compare with", kept.display()))
            .with_hint("make one with --write, or name one with --baseline")
    };
    let path = match named {
        Some(path) => path.to_path_buf(),
        None if !kept.is_dir() => return Err(none()),
        None => latest(kept)?.ok_or_else(none)?,
    };
    Ok((path.display().to_string(), Artefact::read(&path)?))
}

fn delta_page(delta: &Delta, limit: usize) -> String {
    let mut text = format!("Against {}\n", line(&delta.baseline));
    // Writing to a String cannot fail.
    delta.notes.iter().for_each(|note| _ = writeln!(text, "note: {note}"));
    let _ = writeln!(
        text,
        "\n{:<14} {:>9} {:>10} {:>9} {:>7}",
        "points", "recall@5", "recall@10", "ndcg@10", "mrr"
    );
    for (set, Points { recall_5, recall_10, ndcg_10, mrr }) in &delta.points {
        let _ = writeln!(text, "{set:<14} {recall_5:>+9.2} {recall_10:>+10.2} {ndcg_10:>+9.2} {mrr:>+7.2}");
    }
    let ratios: Vec<String> =
        delta.p95_ratio.iter().map(|(stage, ratio)| format!("{stage} {ratio:.2}")).collect();
    let _ = writeln!(text, "\np95, times: {}\n", ratios.join(", "));
    text + &diff::page(&delta.changes, limit)
}
