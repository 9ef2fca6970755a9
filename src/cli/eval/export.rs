//! `rankgate eval export`: captured searches as lines of JSON.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use super::super::{capture, escape, leave};
use super::duration;
use crate::corpus::write_file;
use crate::error::{Error, Result};
use crate::record::{Captured, FileKind, Tool};
use crate::store::captures::{Captures, Wanted};

/// Bytes of a file that show what it is; a row may be long.
const BEGINNING: u64 = 1 << 20;

/// Print captured searches, newest first, one JSON object a line
///
/// The format is version 1 of captured searches, as `rankgate eval replay` and `rankgate bench publish` read it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rankgate eval export --since 7d --to captured.ndjson
  rankgate eval export --tool query --limit 200 | head")]
pub struct Args {
    /// Only searches of this last while: digits and one of ms, s, m, h, d.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    since: Option<Duration>,
    /// How many at most, up to 100,000.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    /// Only searches of this command: ask, query, search or vsearch.
    #[arg(long, value_name = "NAME", value_parser = tool)]
    tool: Option<Tool>,
    /// Write to a file, whole or not at all, instead of stdout. An earlier export is replaced, no other file.
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

fn tool(name: &str) -> Result<Tool, String> {
    let all = [Tool::Ask, Tool::Query, Tool::Search, Tool::Vsearch];
    all.into_iter().find(|tool| tool.name() == name).ok_or_else(|| "not ask, query, search or vsearch".into())
}

/// Runs it.
pub fn run(args: Args) -> Result<ExitCode> {
    let wanted =
        Wanted { since: args.since.map(duration::before_now), limit: Some(args.limit), tool: args.tool };
    let captures = Captures::open_existing(&capture::database()?)?;
    let count = match &args.to {
        Some(path) => to_file(captures.as_ref(), &wanted, path)?,
        None => to_stdout(captures.as_ref(), &wanted)?,
    };
    let _ = writeln!(io::stderr(), "{count} captured searches exported");
    Ok(ExitCode::SUCCESS)
}

fn to_stdout(captures: Option<&Captures>, wanted: &Wanted) -> Result<u64> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut count = 0;
    let failed = |e: io::Error| {
        if e.kind() == io::ErrorKind::BrokenPipe {
            leave()
        }
        Error::io("write", Path::new("stdout"), e)
    };
    if let Some(captures) = captures {
        captures.each(wanted, |row| {
            count += 1;
            write(&mut out, &row).map_err(failed)
        })?;
    }
    out.flush().map_err(failed)?;
    Ok(count)
}

/// Fails when `path` is a file with anything else in it than an earlier export.
fn replaceable(path: &Path) -> Result<()> {
    let there = path.metadata().is_ok_and(|there| there.is_file() && there.len() > 0);
    if !there {
        return Ok(());
    }
    let mut beginning = Vec::new();
    let read = File::open(path).and_then(|file| file.take(BEGINNING).read_to_end(&mut beginning));
    read.map_err(|e| Error::io("read", path, e))?;
    if FileKind::of(&String::from_utf8_lossy(&beginning)) == Some(FileKind::Captured) {
        return Ok(());
    }
    Err(Error::usage(format!("{}: holds no captured searches, and would be replaced", path.display()))
        .with_hint("choose another file"))
}

fn to_file(captures: Option<&Captures>, wanted: &Wanted, path: &Path) -> Result<u64> {
    replaceable(path)?;
    let mut count = 0;
    let mut unreadable = None;
    let written = write_file(path, "captured searches", |out| {
        let Some(captures) = captures else { return Ok(()) };
        let rows = captures.each(wanted, |row| {
            count += 1;
            write(out, &row).map_err(|e| Error::io("write the captured searches", path, e))
        });
        rows.map_err(|e| {
            unreadable = Some(e);
            io::Error::other("see above")
        })
    });
    match unreadable {
        Some(error) => Err(error),
        None => written.map(|()| count),
    }
}

fn write(out: &mut impl Write, row: &Captured) -> io::Result<()> {
    out.write_all(escape(&serde_json::to_string(row)?).as_bytes())?;
    out.write_all(b"\n")
}
