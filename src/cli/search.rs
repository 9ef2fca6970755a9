//! `rankgate search`.

use std::process::ExitCode;

use crate::error::Result;

/// search
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// xsearch
    Xsearch,
}

/// Runs it.
pub fn run(_: Command) -> Result<ExitCode> {
    Ok(ExitCode::SUCCESS)
}
