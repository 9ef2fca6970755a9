//! The checks.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::super::capture as recording;
use super::{Capture, Check, Status};
use crate::error::{Error, ErrorKind, Result};
use crate::models;
use crate::models::inventory::{self, ModelStatus, State};
use crate::pipeline::index::IndexReader;
use crate::record::utc;
use crate::settings::{self, Settings};
use crate::store;
use crate::store::captures::{Captures, FailureReason};

/// How far back failures of capture are looked for.
const LATELY: Duration = Duration::from_secs(24 * 3_600);

/// Whether searches are captured, how many there are, how many could not be kept.
pub(super) fn capture(settings: &Settings) -> Result<(Capture, Vec<Check>)> {
    let state = settings.eval.capture_state();
    let file = recording::database()?;
    let since = utc(SystemTime::now().checked_sub(LATELY).unwrap_or(SystemTime::UNIX_EPOCH));
    let counts = Captures::open_existing(&file).and_then(|captures| match captures {
        Some(captures) => Ok((captures.count()?, captures.failures(&since)?)),
        None => Ok((0, BTreeMap::new())),
    });
    let on = if state.on { "on" } else { "off" };
    let scrub = if settings.eval.scrub_pii { "" } else { ", personal data is kept" };
    let mut checks = Vec::new();
    let (searches, failures) = match counts {
        Ok((searches, failures)) => {
            let message = format!("{on} ({}){scrub}; {searches} searches in {}", state.why, file.display());
            checks.push(Check::new("capture", Status::Ok, message));
            checks.push(capture_failures(&failures));
            (Some(searches), failures)
        }
        Err(error) => {
            checks.push(Check::failed("capture", &error));
            (None, BTreeMap::new())
        }
    };
    Ok((Capture { state, file, searches, failures }, checks))
}

/// `2 busy, 1 other`, most frequent first.
fn capture_failures(failures: &BTreeMap<FailureReason, u64>) -> Check {
    let mut by_count: Vec<_> = failures.iter().collect();
    by_count.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let list: Vec<String> =
        by_count.iter().map(|(reason, count)| format!("{count} {}", reason.name())).collect();
    match failures.values().sum::<u64>() {
        0 => Check::new("capture failures", Status::Ok, "none in the last 24 hours"),
        total => Check::new(
            "capture failures",
            Status::Warn,
            format!("{total} searches of the last 24 hours were not kept: {}", list.join(", ")),
        ),
    }
}

/// The models that the settings need, and damaged ones that they do not.
pub(super) fn models(settings: &Settings, verify: bool) -> Vec<Check> {
    let found = if verify { inventory::verify(&settings.models) } else { inventory::list(&settings.models) };
    match found {
        Ok(models) => models.iter().filter_map(model).collect(),
        Err(error) => vec![Check::failed("models", &error)],
    }
}

fn model(model: &ModelStatus) -> Option<Check> {
    let name = format!("model {}", model.name);
    let fetch = format!("rankgate models fetch {}", model.name);
    match (model.state, model.configured) {
        (State::Damaged, configured) => {
            let status = if configured { Status::Fail } else { Status::Warn };
            Some(Check::new(name, status, format!("damaged: {}", model.problems.join(", "))).hint(fetch))
        }
        (_, false) => None,
        (State::Missing, true) => {
            let message = "not on this machine; it is fetched when it is first needed";
            Some(Check::new(name, Status::Warn, message).hint(fetch))
        }
        (State::Present, true) => Some(Check::new(name, Status::Ok, "present")),
        (State::Verified, true) => Some(Check::new(name, Status::Ok, "present, every file hashed")),
    }
}

/// Whether the index opens and its vectors are those of the embedder.
pub(super) fn index(dir: &Path, settings: &Settings) -> Check {
    match health(dir, settings) {
        Ok(message) => Check::new("index", Status::Ok, message),
        Err(error) => {
            let missing = error.kind() == ErrorKind::NotFound;
            Check {
                status: if missing { Status::Warn } else { Status::Fail },
                ..Check::failed("index", &error)
            }
        }
    }
}

fn health(dir: &Path, settings: &Settings) -> Result<String> {
    let index = IndexReader::open(dir)?;
    let differ = index.verify_words()?;
    if !differ.is_empty() {
        let what = format!("{}: files differ from their checksums: {}", dir.display(), differ.join(", "));
        return Err(
            Error::input(what).with_hint("delete the folder `lexical` in it: the next search makes it anew")
        );
    }
    let collections = index.collections()?;
    let documents: u64 = collections.iter().map(|(_, count)| count).sum();
    let names: Vec<&str> = collections.iter().map(|(name, _)| name.as_str()).collect();
    let vectors = match index.model() {
        Some(model) => {
            let embedder = models::embedder(&settings.models, None)?;
            format!("{} vectors by {}", index.vectors(&*embedder)?.len(), model.name)
        }
        None => "no vectors, it is for searches by words".into(),
    };
    Ok(format!("{documents} documents in {} ({vectors}); {}", names.join(", "), dir.display()))
}

/// Whether the databases that are there are whole.
pub(super) fn stores(project: &Path, index: &Path) -> Result<Vec<Check>> {
    let files = [
        recording::database()?,
        settings::home()?.join("cache.db"),
        index.join(store::index::DB_FILE),
        store::history::data_dir(project).join("history.db"),
    ];
    let check = |file: &Path| {
        let name = format!("database {}", file.display());
        match store::integrity(file) {
            Ok(problems) if problems.is_empty() => Check::new(name, Status::Ok, "whole"),
            Ok(problems) => Check::new(name, Status::Fail, problems.join("; "))
                .hint("move the file away: it is made anew, without what it held"),
            Err(error) => Check::failed(name, &error),
        }
    };
    Ok(files.iter().filter(|file| file.exists()).map(|file| check(file)).collect())
}
