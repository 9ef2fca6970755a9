//! `rankgate doctor`: what is set, what is there, and whether it is whole.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use schemars::JsonSchema;
use serde::Serialize;

use crate::error::{Error, Result, exit};
use crate::settings::{CaptureState, Origin, Settings};
use crate::store::captures::FailureReason;

mod checks;

/// Check settings, capture, models, the index and the databases
///
/// Exits with 1 when a check fails. Nothing is fetched. An index whose lexical side was left half-written is mended, as
/// every search does.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Hash the files of the models again; otherwise their sizes must do.
    #[arg(long)]
    verify: bool,
    /// The index folder. Default: the one in RANKGATE_HOME.
    #[arg(long, value_name = "DIR")]
    index: Option<PathBuf>,
    /// Print one JSON document (schemas/doctor.schema.json).
    #[arg(long)]
    json: bool,
}

/// What `doctor` prints with `--json`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "rankgate doctor")]
pub(super) struct Output {
    /// Version of this format.
    version: u32,
    /// The worst of the checks.
    status: Status,
    /// What is kept of searches.
    capture: Capture,
    /// The checks.
    checks: Vec<Check>,
    /// Every setting in force and where it comes from.
    settings: Vec<Origin>,
}

/// What is kept of searches.
#[derive(Debug, Serialize, JsonSchema)]
struct Capture {
    #[serde(flatten)]
    state: CaptureState,
    /// The database.
    file: PathBuf,
    /// How many searches it holds; null when it cannot be read.
    searches: Option<u64>,
    /// How many searches of the last 24 hours could not be kept, by reason.
    failures: BTreeMap<FailureReason, u64>,
}

/// One thing that was looked at.
#[derive(Debug, Serialize, JsonSchema)]
struct Check {
    /// What.
    name: String,
    /// How it is.
    status: Status,
    /// What was found.
    message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Status {
    /// As it should be.
    Ok,
    /// Usable; someone should know.
    Warn,
    /// Broken.
    Fail,
}

impl Check {
    fn new(name: impl Into<String>, status: Status, message: impl Into<String>) -> Self {
        Self { name: name.into(), status, message: message.into(), hint: None }
    }

    fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// A check that ended with an error, which says what to do.
    fn failed(name: impl Into<String>, error: &Error) -> Self {
        Self::new(name, Status::Fail, error.report())
    }
}

/// Runs it. Fails when the settings cannot be read or no folder of user data is known.
pub fn run(args: Args) -> Result<ExitCode> {
    let folder = super::working_folder()?;
    let output = examine(&args, &folder)?;
    super::print(&if args.json { super::json(&output) } else { page(&output) })?;
    Ok(ExitCode::from(if output.status == Status::Fail { exit::GATE_FAILED } else { exit::PASS }))
}

fn examine(args: &Args, folder: &Path) -> Result<Output> {
    let settings = Settings::load(folder)?;
    let index = super::index_folder(args.index.as_deref())?;
    let (capture, mut found) = checks::capture(&settings)?;
    found.extend(checks::models(&settings, args.verify));
    found.push(checks::index(&index, &settings));
    found.extend(checks::stores(folder, &index)?);
    Ok(Output {
        version: 1,
        status: found.iter().map(|check| check.status).max().unwrap_or(Status::Ok),
        capture,
        checks: found,
        settings: Settings::origins(folder)?,
    })
}

fn page(output: &Output) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    // Writing to a String cannot fail.
    for check in &output.checks {
        let status = match check.status {
            Status::Ok => "ok  ",
            Status::Warn => "warn",
            Status::Fail => "FAIL",
        };
        let _ = writeln!(text, "{status}  {}: {}", check.name, super::line(&check.message));
        if let Some(hint) = &check.hint {
            let _ = writeln!(text, "      {}", super::line(hint));
        }
    }
    text.push_str("\nsettings\n");
    for Origin { key, value, origin } in &output.settings {
        let value = if value.is_null() { "not set".into() } else { value.to_string() };
        let _ = writeln!(text, "  {key} = {}  ({origin})", super::line(&value));
    }
    text
}
