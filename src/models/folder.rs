//! Where models lie on disk, and how a file gets there: written beside, verified, renamed.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::corpus::hex;
use crate::error::{Error, ErrorKind, Result};
use crate::models::progress::note;
use crate::settings;

/// The folder with one folder a model: `RANKGATE_MODELS`, else `models` in `RANKGATE_HOME`. It can be copied
/// to another machine as it is.
///
/// Fails when no home folder is known.
pub fn models_folder() -> Result<PathBuf> {
    match std::env::var_os("RANKGATE_MODELS").filter(|folder| !folder.is_empty()) {
        Some(folder) => std::path::absolute(&folder).map_err(|e| Error::io("resolve", Path::new(&folder), e)),
        None => Ok(settings::home()?.join("models")),
    }
}

/// Holds a model against other processes that want to fetch it; released on drop, or when the process dies.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits until no other process fetches the model `name` into `models`.
    pub(super) fn wait(models: &Path, name: &str) -> Result<Self> {
        fs::create_dir_all(models).map_err(|e| Error::io("create the folder", models, e))?;
        let path = models.join(format!(".{name}.lock"));
        let file = File::options().create(true).append(true).open(&path);
        let file = file.map_err(|e| Error::io("open the lock", &path, e))?;
        if let Err(fs::TryLockError::WouldBlock) = file.try_lock() {
            note(&format!("waiting for another process that fetches {name}"));
        }
        file.lock().map_err(|e| Error::io("take the lock", &path, e))?;
        Ok(Self { _file: file })
    }
}

/// Bytes and SHA-256 of a file.
pub(super) fn fingerprint(path: &Path) -> Result<(u64, String)> {
    let mut file = File::open(path).map_err(|e| Error::io("read", path, e))?;
    let mut sink = Hashing { to: io::sink(), hasher: Sha256::new(), size: 0 };
    io::copy(&mut file, &mut sink).map_err(|e| Error::io("read", path, e))?;
    Ok((sink.size, hex(&sink.hasher.finalize())))
}

/// Writes `from` to `to` by way of a temporary file beside it, which replaces `to` once it is complete, on
/// disk and accepted by `check` (bytes, SHA-256).
pub(super) fn install(
    from: &mut dyn Read,
    to: &Path,
    check: impl FnOnce(u64, &str) -> Result<()>,
) -> Result<()> {
    let folder = to.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|e| Error::io("create the folder", folder, e))?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".partial-");
    #[cfg(unix)] // readable for whom the umask allows: a models folder may be shared
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let temporary = builder.tempfile_in(folder).map_err(|e| Error::io("write into the folder", folder, e))?;
    let mut sink = Hashing { to: temporary, hasher: Sha256::new(), size: 0 };
    io::copy(from, &mut sink).map_err(|e| match e.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
            Error::new(ErrorKind::Model, format!("{}: the source is damaged", to.display())).with_source(e)
        }
        _ => Error::io("write", to, e),
    })?;
    check(sink.size, &hex(&sink.hasher.finalize()))?;
    sink.to.as_file().sync_all().map_err(|e| Error::io("write", to, e))?;
    sink.to.persist(to).map_err(|e| Error::io("write", to, e.error))?;
    Ok(())
}

/// Removes what a killed process left in `folder`. The caller holds the folder's lock.
pub(super) fn remove_partial(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(".partial-") {
            // Left-overs cost space, not correctness.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Hashes what passes through.
struct Hashing<W> {
    to: W,
    hasher: Sha256,
    size: u64,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
