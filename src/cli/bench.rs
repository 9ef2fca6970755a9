//! `rankgate bench`: baselines for the gate, and benchmarks whose results are kept.

use std::process::ExitCode;

use crate::error::Result;

pub(super) mod cjk_lexical;
pub(super) mod publish;

/// Make baselines, and compare models and methods
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    CjkLexical(cjk_lexical::Args),
    Publish(publish::Args),
}

/// Runs it.
pub fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::CjkLexical(args) => cjk_lexical::run(args),
        Command::Publish(args) => publish::run(args),
    }
}
