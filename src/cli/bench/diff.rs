//! `rankgate bench diff`: what became of the rankings of one file in another.

use std::fmt::Write;
use std::process::ExitCode;

use crate::benchmarks::rankings::{Changes, Rankings, compare};
use crate::cli::changed::{brief, lines};
use crate::cli::{json, line, print};
use crate::error::Result;

/// Compare the rankings of two files, query by query
///
/// A file is an artefact of `bench candidates` (FILE#candidate) or `bench hybrid-baseline`, a TREC run, or captured
/// searches (an export or a baseline). Which stage lost a document is said where the second file is an artefact that
/// knows. The exit code is 0 whatever differs.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rankgate bench diff fixtures/hybrid-baseline/2026-01-31.json fixtures/hybrid-baseline/2026-02-07.json
  rankgate bench diff 2026-01-31.json#bm25 2026-01-31.json#multilingual-e5-small/rrf/none --query q07
  rankgate bench diff old.run new.run --limit 3")]
pub struct Args {
    /// The rankings before.
    #[arg(value_name = "A")]
    a: String,
    /// The rankings after.
    #[arg(value_name = "B")]
    b: String,
    /// Only this query, by its id (of captured searches by its text); repeat it for several.
    #[arg(long, value_name = "ID")]
    query: Vec<String>,
    /// Queries that are shown, those that changed most first; with --json too.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Print one JSON document (schemas/bench-diff.schema.json).
    #[arg(long)]
    json: bool,
}

/// Queries that people are shown.
const SHOWN: usize = 10;

/// Runs it.
pub fn run(args: Args) -> Result<ExitCode> {
    let mut changes = compare(&Rankings::read(&args.a)?, &Rankings::read(&args.b)?, &args.query)?;
    print(&if args.json {
        changes.changed.truncate(args.limit.unwrap_or(usize::MAX));
        json(&changes)
    } else {
        page(&changes, args.limit.unwrap_or(SHOWN))
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The changes as text, of at most `limit` queries.
pub(super) fn page(changes: &Changes, limit: usize) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "{} queries compared to depth {}: {} unchanged, {} changed; {} only in A, {} only in B",
        changes.compared,
        changes.depth,
        changes.unchanged,
        changes.compared - changes.unchanged,
        changes.only_a.len(),
        changes.only_b.len()
    );
    let _ = writeln!(
        text,
        "Mean Jaccard@{}: {:.3}, mean RBO (p 0.9): {:.3}",
        changes.depth, changes.mean_jaccard, changes.mean_rank_biased_overlap
    );
    if !changes.knows_stages && !changes.changed.is_empty() {
        let _ = writeln!(text, "{} does not say which stage lost a document", line(&changes.b));
    }
    for changed in changes.changed.iter().take(limit) {
        let about = changed.text.as_ref().map(|text| format!("  \"{}\"", brief(text))).unwrap_or_default();
        let _ = writeln!(text, "\n{}  jaccard={:.2}{about}", brief(&changed.query), changed.jaccard);
        text += &lines(&changed.diff, "    ", None);
    }
    let more = changes.changed.len().saturating_sub(limit);
    if more > 0 {
        let _ = writeln!(text, "\n… {more} more queries changed (--limit)");
    }
    text
}
