//! `rankgate eval`: what captured searches say of a change.

use std::process::ExitCode;

use crate::error::Result;

mod gate;
mod known;
pub(super) mod qrels;
pub(super) mod replay;

/// Run captured searches again and hold them against what they returned
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    Gate(gate::Args),
    Qrels(qrels::Args),
    Replay(replay::Args),
}

/// Runs it.
pub fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Gate(args) => gate::run(args),
        Command::Qrels(args) => qrels::run(args),
        Command::Replay(args) => replay::run(args),
    }
}
