//! `rankgate eval`: what captured searches say of a change.

use std::process::ExitCode;

use crate::error::Result;

pub(super) mod replay;

/// Run captured searches again and hold them against what they returned
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    Replay(replay::Args),
}

/// Runs it.
pub fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Replay(args) => replay::run(args),
    }
}
