//! `rankgate bench`: baselines for the gate, and benchmarks whose results are kept.

use std::process::ExitCode;

use crate::error::Result;

pub(super) mod publish;

/// Make baselines, and compare models and methods
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    Publish(publish::Args),
}

/// Runs it.
pub fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Publish(args) => publish::run(args),
    }
}
