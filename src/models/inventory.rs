//! What is on the machine: the catalogue's models and those of the settings, looked over or hashed again.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use super::catalogue::{self, Entry, GENERATOR, RUNTIME};
use super::fake::HASH;
use super::fetch::{self, Trust};
use super::folder::{fingerprint, models_folder};
use super::{check, hub};
use crate::error::Result;
use crate::settings::{CustomModel, ModelRole, ModelSettings, Preset};

/// Whether a model can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Never fetched, or not completely.
    Missing,
    /// Every file has its size. Their hashes were compared when they came.
    Present,
    /// Every file was hashed again just now and is what it was.
    Verified,
    /// A file is not what it was; `problems` names it.
    Damaged,
}

/// One model, as `rankgate models list` shows it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ModelStatus {
    /// Its name in settings and on the command line.
    pub name: String,
    /// `runtime`, `embedder`, `cross-encoder` or `generator`.
    pub role: &'static str,
    /// SPDX identifier; `see hub` for a model of the settings.
    pub licence: String,
    /// Where it comes from.
    pub source: String,
    /// Bytes on disk; `None` while that is unknown.
    pub size: Option<u64>,
    /// Whether the settings use it.
    pub configured: bool,
    /// Whether it can be used.
    pub state: State,
    /// What is wrong with its files, one line each.
    pub problems: Vec<String>,
    /// Its folder.
    pub folder: PathBuf,
}

/// Every model of catalogue and settings, by size alone: fast.
///
/// Fails when no home folder is known or a name of the settings cannot be used.
pub fn list(settings: &ModelSettings) -> Result<Vec<ModelStatus>> {
    statuses(settings, Trust::Size)
}

/// Every model of catalogue and settings, with each file that is there hashed again.
pub fn verify(settings: &ModelSettings) -> Result<Vec<ModelStatus>> {
    statuses(settings, Trust::Nothing)
}

/// Fetches the model `name`, of catalogue or settings. Files that are there are hashed again, and a damaged
/// one is replaced. Fails when the name is unknown, and as a fetch fails.
pub fn fetch(name: &str, settings: &ModelSettings) -> Result<ModelStatus> {
    match (settings.custom.get(name), catalogue::find(name)) {
        (Some(custom), _) => {
            let status = custom_status(name, custom, settings, Trust::Nothing)?;
            if status.state == State::Damaged {
                hub::forget(name)?;
            }
            hub::ensure(name, custom, settings)?;
            custom_status(name, custom, settings, Trust::Size)
        }
        (None, Some(entry)) => {
            fetch::ensure(entry, settings, Trust::Nothing, check::vectors)?;
            entry_status(entry, &models_folder()?, settings, Trust::Size)
        }
        (None, None) => Err(catalogue::unknown(name, settings)),
    }
}

/// The catalogue's model that the preset of `settings` runs in this process, in builds that can.
fn local_model(settings: &ModelSettings) -> Option<&'static str> {
    let local = matches!(settings.find_preset(&settings.preset), Ok(Preset::Local));
    (local && cfg!(feature = "local-llm")).then_some(GENERATOR)
}

/// The names of the models that `settings` need: the runtime, the embedder, the reranker if there is one, the
/// generator if it runs here.
pub fn needed(settings: &ModelSettings) -> Vec<String> {
    let runtime = (settings.runtime.is_none()).then(|| RUNTIME.to_string());
    let models = [&settings.embedder, &settings.reranker].into_iter().filter(|n| !n.is_empty() && *n != HASH);
    let generator = local_model(settings).map(String::from);
    runtime.into_iter().chain(models.cloned()).chain(generator).collect()
}

fn statuses(settings: &ModelSettings, trust: Trust) -> Result<Vec<ModelStatus>> {
    let models = models_folder()?;
    let mut statuses = Vec::new();
    for entry in catalogue::entries() {
        statuses.push(entry_status(entry, &models, settings, trust)?);
    }
    for (name, custom) in &settings.custom {
        statuses.push(custom_status(name, custom, settings, trust)?);
    }
    Ok(statuses)
}

fn entry_status(entry: &Entry, models: &Path, settings: &ModelSettings, trust: Trust) -> Result<ModelStatus> {
    let folder = models.join(entry.name);
    let files = entry.files();
    let expected = files.iter().map(|file| (file.name, file.size, file.sha256));
    let (state, problems) = inspect(&folder, expected, trust);
    let wheels: Vec<String> =
        entry.parts.iter().map(|part| format!("{} {}", part.wheel.package, part.wheel.version)).collect();
    Ok(ModelStatus {
        name: entry.name.into(),
        role: entry.role_name(),
        licence: entry.licence.into(),
        source: format!("pip: {}", wheels.join(", ")),
        size: Some(entry.size()),
        configured: needed(settings).iter().any(|name| name == entry.name),
        state,
        problems,
        folder,
    })
}

fn custom_status(
    name: &str,
    custom: &CustomModel,
    settings: &ModelSettings,
    trust: Trust,
) -> Result<ModelStatus> {
    let folder = hub::folder(name)?;
    let manifest = hub::recorded(&folder, custom)?;
    let (state, problems) = match &manifest {
        None => (State::Missing, Vec::new()),
        Some(manifest) => {
            let files = manifest.files.iter();
            inspect(
                &folder,
                files.map(|(name, file)| (name.as_str(), file.size, file.sha256.as_str())),
                trust,
            )
        }
    };
    Ok(ModelStatus {
        name: name.into(),
        role: match custom.role {
            ModelRole::Embedder => "embedder",
            ModelRole::CrossEncoder => "cross-encoder",
        },
        licence: "see hub".into(),
        source: format!("hub: {} at {}", custom.repo, custom.revision),
        size: manifest.map(|manifest| manifest.files.values().map(|file| file.size).sum()),
        configured: needed(settings).iter().any(|needed| needed == name),
        state,
        problems,
        folder,
    })
}

/// Compares the files of `folder` with what they should be: name, bytes, SHA-256.
fn inspect<'a>(
    folder: &Path,
    expected: impl Iterator<Item = (&'a str, u64, &'a str)>,
    trust: Trust,
) -> (State, Vec<String>) {
    let mut problems = Vec::new();
    let mut found = 0;
    for (name, size, sha256) in expected {
        let path = folder.join(name);
        match std::fs::metadata(&path) {
            Err(_) => problems.push(format!("{name} is missing")),
            Ok(file) if file.len() != size => {
                found += 1;
                problems.push(format!("{name} has {} bytes instead of {size}", file.len()));
            }
            Ok(_) if trust == Trust::Nothing => {
                found += 1;
                match fingerprint(&path) {
                    Ok((_, hash)) if hash == sha256 => {}
                    Ok((_, hash)) => {
                        problems.push(format!("{name} has the SHA-256 {hash} instead of {sha256}"))
                    }
                    Err(error) => problems.push(error.report()),
                }
            }
            Ok(_) => found += 1,
        }
    }
    match (found, problems.is_empty(), trust) {
        (0, ..) => (State::Missing, Vec::new()),
        (_, false, _) => (State::Damaged, problems),
        (_, true, Trust::Nothing) => (State::Verified, problems),
        (_, true, Trust::Size) => (State::Present, problems),
    }
}
