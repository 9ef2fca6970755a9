//! `rankgate bench`: baselines for the gate, and benchmarks whose results are kept.

use std::process::ExitCode;

use crate::error::Result;

mod apart;
pub(super) mod candidates;
pub(super) mod cjk_lexical;
pub(super) mod diff;
pub(super) mod hybrid_baseline;
pub(super) mod publish;

/// Make baselines, and compare models and methods
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    Publish(publish::Args),
    Candidates(candidates::Args),
    CjkLexical(cjk_lexical::Args),
    HybridBaseline(hybrid_baseline::Args),
    Diff(diff::Args),
    #[command(hide = true)]
    Measure(apart::Args),
}

/// Runs it.
pub fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Publish(args) => publish::run(args),
        Command::Candidates(args) => candidates::run(args),
        Command::CjkLexical(args) => cjk_lexical::run(args),
        Command::HybridBaseline(args) => hybrid_baseline::run(args),
        Command::Diff(args) => diff::run(args),
        Command::Measure(args) => apart::run(args),
    }
}
