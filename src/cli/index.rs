//! `rankgate index`.

use std::process::ExitCode;

use crate::error::Result;

/// index
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs it.
pub fn run(_: Args) -> Result<ExitCode> {
    super::print("")?;
    Ok(ExitCode::SUCCESS)
}
