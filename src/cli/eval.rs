//! `rankgate eval`: what real searches teach.

use std::process::ExitCode;

use crate::error::Result;

mod duration;
mod export;
mod prune;

/// Work with captured searches
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    Export(export::Args),
    Prune(prune::Args),
}

/// Runs it.
pub fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Export(args) => export::run(args),
        Command::Prune(args) => prune::run(args),
    }
}
