//! `rankgate eval`: what real searches say of a change.

use std::process::ExitCode;

use crate::error::Result;

mod duration;
mod export;
mod gate;
mod known;
mod number;
mod prune;
pub(super) mod qrels;
pub(super) mod replay;

/// Work with captured searches, and hold a change against them
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    Export(export::Args),
    Prune(prune::Args),
    Replay(replay::Args),
    Gate(gate::Args),
    Qrels(qrels::Args),
}

/// Runs it.
pub fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Export(args) => export::run(args),
        Command::Prune(args) => prune::run(args),
        Command::Replay(args) => replay::run(args),
        Command::Gate(args) => gate::run(args),
        Command::Qrels(args) => qrels::run(args),
    }
}
