//! Models of the settings: any repository of the Hugging Face hub with an ONNX model and `tokenizer.json`.
//!
//! Nothing is known of such a model beforehand. The first fetch records the SHA-256 of every file, and from
//! then on they are as pinned as those of the catalogue.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hf_hub::api::sync::{ApiBuilder, ApiError, ApiRepo};
use hf_hub::{Cache, Repo, RepoType};
use serde::{Deserialize, Serialize};

use super::fake::HASH;
use super::folder::{Lock, fingerprint, install, models_folder, remove_partial};
use super::onnx::Files;
use super::progress::Progress;
use super::{catalogue, logits, vectors};
use crate::error::{Error, ErrorKind, Result};
use crate::settings::{CustomModel, ModelRole, ModelSettings};

const TOKENIZER: &str = "tokenizer.json";
const MANIFEST: &str = "manifest.json";
const MANIFEST_VERSION: u32 = 1;
/// How long the hub may take to say anything at all.
const PATIENCE: Duration = Duration::from_secs(30);

/// What was fetched: `manifest.json` in the model's folder, written last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The format's version, 1.
    pub version: u32,
    /// The repository, the revision and the file that were asked for.
    pub repo: String,
    /// See `repo`.
    pub revision: String,
    /// See `repo`.
    pub file: String,
    /// The commit that `revision` was, or empty for files of a local folder.
    pub commit: String,
    /// Components of a vector; 1 for a cross-encoder.
    pub dims: usize,
    /// File name → what it was when it came.
    pub files: BTreeMap<String, Recorded>,
}

/// Size and hash of a file when it was fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// Bytes.
    pub size: u64,
    /// Lower-case hexadecimal.
    pub sha256: String,
}

impl CustomModel {
    /// The model's file name in its folder: the last part of `file`.
    pub(super) fn file_name(&self) -> &str {
        self.file.rsplit('/').next().unwrap_or(&self.file)
    }
}

/// The folder of the configured model `name`. Fails when the name cannot be a folder's.
pub(super) fn folder(name: &str) -> Result<PathBuf> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
        return Err(Error::usage(format!("[models.custom.\"{name}\"]: not a name for a folder"))
            .with_hint("use letters, digits, `-`, `_` and `.`"));
    }
    if name == HASH || catalogue::find(name).is_some() {
        return Err(Error::usage(format!("[models.custom.{name}]: the catalogue has a model of that name"))
            .with_hint("choose another name"));
    }
    Ok(models_folder()?.join(name))
}

/// What was recorded of the model in `folder`: `None` when it was never fetched completely, or was fetched
/// from elsewhere than `custom` says. Fails when the manifest is of a newer version.
pub(super) fn recorded(folder: &Path, custom: &CustomModel) -> Result<Option<Manifest>> {
    let path = folder.join(MANIFEST);
    let Ok(text) = fs::read_to_string(&path) else { return Ok(None) };
    let version = serde_json::from_str::<serde_json::Value>(&text).ok().and_then(|v| v["version"].as_u64());
    if version.is_some_and(|version| version > u64::from(MANIFEST_VERSION)) {
        return Err(Error::new(
            ErrorKind::Version,
            format!("{}: written by a newer rankgate", path.display()),
        )
        .with_hint("update rankgate, or delete the folder to fetch the model again"));
    }
    // A manifest that does not parse was not written by a fetch that finished.
    let manifest: Option<Manifest> = serde_json::from_str(&text).ok();
    Ok(manifest.filter(|known| {
        (&known.repo, &known.revision, &known.file) == (&custom.repo, &custom.revision, &custom.file)
    }))
}

/// What was recorded, if every file is still there with its size.
fn complete(folder: &Path, custom: &CustomModel) -> Result<Option<Manifest>> {
    Ok(recorded(folder, custom)?.filter(|known| {
        known
            .files
            .iter()
            .all(|(name, file)| fs::metadata(folder.join(name)).is_ok_and(|found| found.len() == file.size))
    }))
}

/// Makes the next [`ensure`] fetch the model `name` again.
pub(super) fn forget(name: &str) -> Result<()> {
    let path = folder(name)?.join(MANIFEST);
    fs::remove_file(&path).map_err(|e| Error::io("remove", &path, e))
}

/// The model's manifest, fetched if it is not complete. Safe in several processes at once.
pub(super) fn ensure(name: &str, custom: &CustomModel, settings: &ModelSettings) -> Result<Manifest> {
    let folder = folder(name)?;
    if let Some(manifest) = complete(&folder, custom)? {
        return Ok(manifest);
    }
    let models = models_folder()?;
    let _lock = Lock::wait(&models, name)?;
    if let Some(manifest) = complete(&folder, custom)? {
        return Ok(manifest); // by the process that held the lock
    }
    let fetch = HubFetch { name, custom, settings, work: models.join(format!(".{name}.work")) };
    fetch.run(&folder).map_err(|e| e.context(format!("model `{name}`")))
}

struct HubFetch<'a> {
    name: &'a str,
    custom: &'a CustomModel,
    settings: &'a ModelSettings,
    work: PathBuf,
}

impl HubFetch<'_> {
    fn run(&self, folder: &Path) -> Result<Manifest> {
        let ready = self.work.join("ready");
        remove_partial(folder);
        remove_partial(&ready);
        let commit = if self.take_local(&ready)? {
            String::new()
        } else if self.settings.offline {
            return Err(self.offline(folder));
        } else {
            self.download(&ready)?
        };
        let dims = self.probe(&ready)?;
        let mut files = BTreeMap::new();
        fs::create_dir_all(folder).map_err(|e| Error::io("create the folder", folder, e))?;
        let entries = fs::read_dir(&ready).map_err(|e| Error::io("read the folder", &ready, e))?;
        for entry in entries.flatten() {
            let (size, sha256) = fingerprint(&entry.path())?;
            let to = folder.join(entry.file_name());
            fs::rename(entry.path(), &to).map_err(|e| Error::io("write", &to, e))?;
            files.insert(entry.file_name().to_string_lossy().into_owned(), Recorded { size, sha256 });
        }
        let CustomModel { repo, revision, file, .. } = self.custom.clone();
        let manifest = Manifest { version: MANIFEST_VERSION, repo, revision, file, commit, dims, files };
        let json = serde_json::to_string_pretty(&manifest)
            .map_err(|e| Error::new(ErrorKind::Internal, MANIFEST).with_source(e))?;
        install(&mut json.as_bytes(), &folder.join(MANIFEST), |_, _| Ok(()))?;
        let _ = fs::remove_dir_all(&self.work);
        Ok(manifest)
    }

    /// Takes model and tokenizer from `NAME/` of the local folder.
    fn take_local(&self, ready: &Path) -> Result<bool> {
        let Some(local) = self.settings.local_folder.as_ref().map(|local| local.join(self.name)) else {
            return Ok(false);
        };
        let model = self.custom.file_name();
        if !local.join(model).is_file() || !local.join(TOKENIZER).is_file() {
            return Ok(false);
        }
        for name in [model.to_string(), TOKENIZER.into()].into_iter().chain(external_data(model)) {
            let from = local.join(&name);
            match File::open(&from) {
                Ok(mut file) => install(&mut file, &ready.join(&name), |_, _| Ok(()))?,
                Err(_) if name != model && name != TOKENIZER => {}
                Err(e) => return Err(Error::io("read", &from, e)),
            }
        }
        Ok(true)
    }

    /// Downloads from the hub into `ready`; returns the commit.
    fn download(&self, ready: &Path) -> Result<String> {
        let CustomModel { repo, revision, .. } = self.custom;
        // The hub's client would wait for ever.
        reach(&format!("{}/api/models/{repo}/revision/{revision}", endpoint()), token(), PATIENCE)
            .map_err(|e| self.failed("the repository", ApiError::RequestError(Box::new(e))))?;
        let mut api = ApiBuilder::from_cache(Cache::new(self.work.join("hub")))
            .with_endpoint(endpoint())
            .with_retries(3)
            .with_progress(false);
        api = api.with_token(token());
        let api = api.build().map_err(|e| self.failed("the hub", e))?;
        let repo = |revision: &str| {
            api.repo(Repo::with_revision(self.custom.repo.clone(), RepoType::Model, revision.into()))
        };
        let info = repo(&self.custom.revision).info().map_err(|e| self.failed("the repository", e))?;
        let siblings: Vec<&str> = info.siblings.iter().map(|sibling| sibling.rfilename.as_str()).collect();
        // All files of one commit, even while someone pushes.
        let repo = repo(&info.sha);
        let mut wanted = vec![self.named(&siblings, &self.custom.file)?];
        wanted.extend(siblings.iter().filter(|name| external_data(&self.custom.file).any(|d| d == **name)));
        let beside = match self.custom.file.rsplit_once('/') {
            Some((folder, _)) => format!("{folder}/{TOKENIZER}"),
            None => TOKENIZER.into(),
        };
        let tokenizer = if siblings.contains(&beside.as_str()) { &beside } else { TOKENIZER };
        wanted.push(self.named(&siblings, tokenizer)?);
        for file in wanted {
            self.download_file(&api, &repo, file, ready)?;
        }
        Ok(info.sha)
    }

    fn download_file(
        &self,
        api: &hf_hub::api::sync::Api,
        repo: &ApiRepo,
        file: &str,
        ready: &Path,
    ) -> Result<()> {
        let failed = |e| self.failed(&format!("`{file}`"), e);
        let metadata = api.metadata(&repo.url(file)).map_err(failed)?;
        let bar = Bar { label: format!("fetching {file} of {}", self.custom.repo), bar: None, done: 0 };
        let downloaded = repo.download_with_progress(file, bar).map_err(failed)?;
        let mut from = File::open(&downloaded).map_err(|e| Error::io("read", &downloaded, e))?;
        let name = file.rsplit('/').next().unwrap_or(file);
        // Large files have their SHA-256 as entity tag; of others the size is known.
        let pinned = Some(metadata.etag()).filter(|tag| tag.len() == 64);
        let installed = install(&mut from, &ready.join(name), |size, sha256| {
            if size == metadata.size() as u64 && pinned.is_none_or(|pinned| pinned == sha256) {
                return Ok(());
            }
            Err(Error::new(
                ErrorKind::Network,
                format!("`{file}` came damaged: {size} bytes of {}", metadata.size()),
            )
            .with_hint("fetch it again; it starts anew"))
        });
        if installed.is_err() {
            let _ = fs::remove_dir_all(self.work.join("hub"));
        }
        installed
    }

    fn named<'a>(&self, siblings: &[&'a str], file: &str) -> Result<&'a str> {
        siblings.iter().find(|name| **name == file).copied().ok_or_else(|| {
            let alike: Vec<&str> = siblings
                .iter()
                .filter(|name| name.ends_with(".onnx") || name.ends_with(TOKENIZER))
                .copied()
                .collect();
            let has = if alike.is_empty() { "none that could be used".into() } else { alike.join(", ") };
            Error::not_found(format!("{} has no `{file}`", self.custom.repo))
                .with_hint(format!("set `file` in [models.custom.{}]; the repository has {has}", self.name))
        })
    }

    /// Loads the fetched model and runs one text: a model that cannot be used is refused now, not in a search.
    fn probe(&self, ready: &Path) -> Result<usize> {
        let files = Files {
            name: self.name.into(),
            model: ready.join(self.custom.file_name()),
            tokenizer: ready.join(TOKENIZER),
            max_tokens: self.custom.max_tokens,
        };
        match self.custom.role {
            ModelRole::Embedder => vectors::probe(files, self.settings),
            ModelRole::CrossEncoder => logits::probe(files, self.settings).map(|()| 1),
        }
    }

    fn offline(&self, folder: &Path) -> Error {
        Error::new(ErrorKind::Network, "is not on this machine and the network is forbidden (offline)").with_hint(
            format!(
                "run `rankgate models fetch {}` on a machine with network and copy its models folder to {}, or unset \
                 RANKGATE_OFFLINE",
                self.name,
                folder.parent().unwrap_or(folder).display()
            ),
        )
    }

    fn failed(&self, what: &str, error: ApiError) -> Error {
        let status = match &error {
            ApiError::RequestError(e) => match **e {
                ureq::Error::StatusCode(status) => Some(status),
                _ => None,
            },
            _ => None,
        };
        let subject = format!("{what} of {} at {}", self.custom.repo, endpoint());
        let (kind, text, hint) = match (status, &error) {
            (Some(401 | 403), _) => (
                ErrorKind::Network,
                "access refused",
                "set HF_TOKEN, and accept the model's terms on its page",
            ),
            (Some(404), _) => (ErrorKind::NotFound, "not found", "check `repo`, `revision` and `file`"),
            (_, ApiError::IoError(e)) if e.kind() == std::io::ErrorKind::StorageFull => {
                (ErrorKind::Io, "the disk is full", "free some space and run it again, it resumes")
            }
            (_, ApiError::InvalidResume) => {
                let _ = fs::remove_dir_all(self.work.join("hub"));
                (ErrorKind::Network, "the partial download is damaged", "run it again, it starts anew")
            }
            _ => (
                ErrorKind::Network,
                "cannot be fetched",
                "check the network and HF_ENDPOINT, and run it again: it resumes",
            ),
        };
        Error::new(kind, format!("{subject}: {text}")).with_source(error.to_string()).with_hint(hint)
    }
}

/// Fails when nobody at `url` answers `within` this time. What the answer is does not matter.
fn reach(url: &str, token: Option<String>, within: Duration) -> std::result::Result<(), ureq::Error> {
    let config = ureq::Agent::config_builder()
        .timeout_connect(Some(within))
        .timeout_recv_response(Some(within))
        .http_status_as_error(false)
        .build();
    let mut request = ureq::Agent::from(config).get(url);
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    request.call().map(drop)
}

/// Where a graph's weights may lie beside it.
fn external_data(model: &str) -> impl Iterator<Item = String> {
    [format!("{model}_data"), format!("{model}.data")].into_iter()
}

fn endpoint() -> String {
    let set = std::env::var("HF_ENDPOINT").ok().filter(|url| !url.is_empty());
    set.map_or("https://huggingface.co".into(), |url| url.trim_end_matches('/').to_string())
}

/// `HF_TOKEN`, else what the hub's own program stored at login.
fn token() -> Option<String> {
    let set = std::env::var("HF_TOKEN").ok().filter(|token| !token.trim().is_empty());
    set.map(|token| token.trim().to_string()).or_else(|| Cache::from_env().token())
}

/// Lets the hub's client drive our progress bar.
struct Bar {
    label: String,
    bar: Option<Progress>,
    done: u64,
}

impl hf_hub::api::Progress for Bar {
    fn init(&mut self, size: usize, _: &str) {
        // Called again on each retry; the bar goes on.
        self.done = 0;
        self.bar.get_or_insert_with(|| Progress::start(&self.label, size as u64));
    }

    fn update(&mut self, size: usize) {
        self.done += size as u64;
        if let Some(bar) = &self.bar {
            bar.set(self.done);
        }
    }

    fn finish(&mut self) {
        self.bar = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_that_never_answers_is_given_up() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/api", silent.local_addr().expect("is bound"));
        let error = reach(&url, None, Duration::from_millis(50)).expect_err("says nothing");
        assert!(matches!(error, ureq::Error::Timeout(_)), "{error}");
    }
}
