//! `rankgate eval prune`: removes captured searches.

use std::process::ExitCode;
use std::time::Duration;

use super::super::capture;
use super::duration;
use crate::error::Result;
use crate::store::captures::{Captures, Older};

/// Remove captured searches
///
/// What is removed is overwritten. `--older-than 0d` removes everything.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Remove what is older than this: digits and one of ms, s, m, h, d.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    older_than: Duration,
    /// Only count.
    #[arg(long)]
    dry_run: bool,
}

/// Runs it.
pub fn run(args: Args) -> Result<ExitCode> {
    let cut = duration::before_now(args.older_than);
    // A clock that was set back leaves rows of the future; everything means those, too.
    let older = if args.older_than.is_zero() { Older::All } else { Older::Than(cut.clone()) };
    let removed = match Captures::open_existing(&capture::database()?)? {
        Some(mut captures) => captures.prune(&older, args.dry_run)?,
        None => 0,
    };
    let verb = if args.dry_run { "would remove" } else { "removed" };
    super::super::print(&format!("{verb} {removed} captured searches from before {cut}\n"))?;
    Ok(ExitCode::SUCCESS)
}
