//! The program: one file a subcommand. Each has `Args` (what was typed) and `run(Args) -> Result<ExitCode>`.

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::error::{Result, exit};

mod index;
mod metrics;
mod models;
mod score;
mod search;

/// Retrieval evals as cargo tests: index, search, score and gate.
#[derive(Debug, Parser)]
#[command(name = "rankgate", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(subcommand)]
    Models(models::Command),
    Index(index::Args),
    Metrics(metrics::Args),
    Score(score::Args),
    #[command(flatten)]
    Search(search::Command),
}

/// Parses the command line, runs it, prints an error on stderr and returns the exit code.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.command {
        Command::Models(command) => models::run(command),
        Command::Index(args) => index::run(args),
        Command::Metrics(args) => metrics::run(args),
        Command::Score(args) => score::run(args),
        Command::Search(command) => search::run(command),
    };
    result.unwrap_or_else(|error| {
        // A closed pipe (`rankgate … | head`) is the reader's choice, not a failure.
        let _ = writeln!(std::io::stderr(), "error: {}", error.report());
        ExitCode::from(exit::ERROR)
    })
}

/// Writes `text` to stdout; a closed pipe ends the program quietly.
fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(i32::from(exit::PASS)),
        other => other.map_err(|e| crate::error::Error::io("write", std::path::Path::new("stdout"), e)),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
