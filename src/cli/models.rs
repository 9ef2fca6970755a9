//! `rankgate models`.

use std::process::ExitCode;

use crate::error::Result;

/// models
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// xmodels
    Xmodels,
}

/// Runs it.
pub fn run(_: Command) -> Result<ExitCode> {
    Ok(ExitCode::SUCCESS)
}
