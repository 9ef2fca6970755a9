//! The program: one file a subcommand. Each has `Args` (what was typed) and `run(Args) -> Result<ExitCode>`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::error::{Error, Result, exit};
use crate::settings;
use crate::text::one_line;

mod ask;
mod bench;
mod capture;
mod changed;
mod doctor;
mod eval;
mod index;
mod metrics;
mod models;
mod schemas;
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
    Ask(ask::Args),
    #[command(subcommand)]
    Bench(bench::Command),
    Doctor(doctor::Args),
    #[command(subcommand)]
    Eval(eval::Command),
    Metrics(metrics::Args),
    Score(score::Args),
    #[command(flatten)]
    Search(search::Command),
    #[command(hide = true)]
    Schemas(schemas::Args),
}

/// Parses the command line, runs it, prints an error on stderr and returns the exit code.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.command {
        Command::Models(command) => models::run(command),
        Command::Bench(command) => bench::run(command),
        Command::Index(args) => index::run(args),
        Command::Ask(args) => ask::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Eval(command) => eval::run(command),
        Command::Metrics(args) => metrics::run(args),
        Command::Score(args) => score::run(args),
        Command::Search(command) => search::run(command),
        Command::Schemas(args) => schemas::run(args),
    };
    capture::drain();
    result.unwrap_or_else(|error| {
        // A closed pipe (`rankgate … | head`) is the reader's choice, not a failure.
        let _ = writeln!(std::io::stderr(), "error: {}", error.report());
        ExitCode::from(exit::ERROR)
    })
}

/// Writes `text` to stdout, without what would steer a terminal; a closed pipe ends the program quietly.
fn print(text: &str) -> Result<()> {
    let text: String = text.chars().filter(|&c| matches!(c, '\n' | '\t') || !steers(c)).collect();
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // Whoever reads wants no more: what the command found out stands, and so does its exit code.
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|e| Error::io("write", Path::new("stdout"), e)),
    }
}

/// Fails when a file that is to be written is one that is read, or another one to be written. Each has the name of its
/// option.
fn apart(written: &[(&str, Option<&Path>)], read: &[(&str, Option<&Path>)]) -> Result<()> {
    // A file that is not there yet is known by its folder. Pipes and terminals may be shared.
    let real = |path: &Path| match path.metadata() {
        Ok(there) => there.is_file().then(|| path.canonicalize().ok()).flatten(),
        Err(_) => {
            let folder =
                path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            Some(folder.canonicalize().ok()?.join(path.file_name()?))
        }
    };
    let known = |files: &[(&str, Option<&Path>)]| -> Vec<(String, PathBuf)> {
        files.iter().filter_map(|(name, path)| Some((name.to_string(), real((*path)?)?))).collect()
    };
    let (written, read) = (known(written), known(read));
    for (at, (option, path)) in written.iter().enumerate() {
        if let Some((other, _)) = read.iter().chain(&written[..at]).find(|(_, other)| other == path) {
            let what = format!("{}: {option} and {other} are the same file", path.display());
            return Err(Error::usage(what).with_hint(format!("choose another file for {option}")));
        }
    }
    Ok(())
}

/// Ends the program, whose reader wants no more. That is no failure.
fn leave() -> ! {
    capture::drain();
    std::process::exit(i32::from(exit::PASS))
}

/// Whether `c` moves or colours what a terminal shows, or turns its direction: documents may hold such characters.
fn steers(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A name or a title that stands in a line of its own.
fn line(text: &str) -> String {
    one_line(text)
}

/// A result as one pretty-printed JSON document with a line's end. What would steer a terminal is escaped.
fn json(value: &impl Serialize) -> String {
    let pretty = serde_json::to_string_pretty(value).expect("results are plain data with text keys");
    escape(&pretty) + "\n"
}

/// JSON in which nothing steers a terminal; it means the same.
fn escape(json: &str) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(json.len() + 1);
    for c in json.chars() {
        match c {
            c if c != '\n' && steers(c) => _ = write!(text, "\\u{:04x}", u32::from(c)),
            c => text.push(c),
        }
    }
    text
}

/// The folder whose `.config/rankgate.toml` counts.
fn working_folder() -> Result<PathBuf> {
    std::env::current_dir().map_err(|e| Error::io("find the working folder", Path::new("."), e))
}

/// The index folder that was named, else the one of the user.
fn index_folder(named: Option<&Path>) -> Result<PathBuf> {
    named.map_or_else(|| Ok(settings::home()?.join("index")), |dir| Ok(dir.to_path_buf()))
}

/// A bar on stderr for `len` steps; nothing is shown where stderr is no terminal.
fn progress(len: u64, name: &str) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix}: {wide_bar} {pos}/{len}, {eta} left");
    ProgressBar::new(len)
        .with_prefix(name.to_string())
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn nothing_steers_the_terminal() {
        let hostile = "a\u{1b}[31m\u{9b}\u{202e}\u{7}b\n";
        let written = super::json(&hostile);
        assert!(!written.trim_end().contains(super::steers), "{written:?}");
        assert_eq!(serde_json::from_str::<String>(&written).expect("is JSON"), hostile);
        assert_eq!(super::line("a\nb"), "a b");
    }

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
