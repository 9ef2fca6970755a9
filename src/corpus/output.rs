//! Writes results to files: whole or not at all.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;

use crate::error::{Error, Result};

/// Writes what `write` puts out to `path`: to a temporary file beside it, then renamed over it, so that a file that
/// was there stays until the new one is complete, which gets its permissions. A link is followed; a device or a pipe
/// is written to as it is.
///
/// `what` says what it is, for errors: `run`, `record`. Fails when the folder is not there or the disk refuses.
pub fn write_file(
    path: &Path,
    what: &str,
    write: impl FnOnce(&mut BufWriter<&File>) -> std::io::Result<()>,
) -> Result<()> {
    write_to(path, what, true, write)
}

/// Like [`write_file`], and fails when a file is there, be it that another process made it meanwhile.
pub fn create_file(
    path: &Path,
    what: &str,
    write: impl FnOnce(&mut BufWriter<&File>) -> std::io::Result<()>,
) -> Result<()> {
    write_to(path, what, false, write)
}

fn write_to(
    path: &Path,
    what: &str,
    replace: bool,
    write: impl FnOnce(&mut BufWriter<&File>) -> std::io::Result<()>,
) -> Result<()> {
    let failed = |e: std::io::Error| Error::io(&format!("write the {what}"), path, e);
    // What is no plain file has no content that could be lost, and must not be replaced by one.
    if path.metadata().is_ok_and(|there| !there.is_file()) {
        let file = File::options().write(true).open(path).map_err(failed)?;
        let mut out = BufWriter::new(&file);
        return write(&mut out).and_then(|()| out.flush()).map_err(failed);
    }
    let target = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    if is_database(&target) {
        let what = format!("{}: a database, which the {what} would replace", path.display());
        return Err(Error::usage(what).with_hint("choose another file"));
    }
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = temporary(folder).map_err(failed)?;
    {
        let mut out = BufWriter::new(file.as_file());
        write(&mut out).and_then(|()| out.flush()).map_err(failed)?;
    }
    if let Ok(there) = target.metadata() {
        file.as_file().set_permissions(there.permissions()).map_err(failed)?;
    }
    file.as_file().sync_all().map_err(failed)?;
    let kept = if replace { file.persist(&target) } else { file.persist_noclobber(&target) };
    kept.map(drop).map_err(|e| failed(e.error))
}

/// Whether `path` is a SQLite database: what a program keeps, and nobody wants to lose to a typing error.
pub fn is_database(path: &Path) -> bool {
    // A pipe would keep the reader waiting, and lose what it gave.
    if !path.metadata().is_ok_and(|there| there.is_file()) {
        return false;
    }
    let mut start = [0; 16];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && &start == b"SQLite format 3\0"
}

fn temporary(folder: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".rankgate-");
    // Private by default; a result file should have the permissions of any other new file.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_keeps_what_was_there_and_leaves_nothing_beside_it() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("x");
        write_file(&path, "run", |out| out.write_all(b"old")).expect("writes");
        let error =
            write_file(&path, "run", |_| Err(std::io::ErrorKind::StorageFull.into())).expect_err("fails");
        assert!(error.to_string().contains("the disk is full"), "{error}");
        assert_eq!(std::fs::read(&path).expect("is there"), b"old");
        assert_eq!(dir.path().read_dir().expect("lists").count(), 1);
    }

    #[test]
    fn a_database_is_not_replaced() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("captures.db");
        std::fs::write(&path, b"SQLite format 3\0and pages").expect("writes");
        let error =
            write_file(&path, "export", |out| out.write_all(b"x")).expect_err("is a database").report();
        assert!(error.contains("captures.db: a database") && error.contains("choose another"), "{error}");
        assert_eq!(std::fs::read(&path).expect("is there").len(), 25);
    }

    #[test]
    fn a_file_that_another_made_meanwhile_is_not_replaced() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("x");
        let error = create_file(&path, "baseline", |out| {
            std::fs::write(&path, "theirs")?;
            out.write_all(b"ours")
        });
        assert!(error.expect_err("is there").to_string().contains("cannot write the baseline"));
        assert_eq!(std::fs::read(&path).expect("is there"), b"theirs");
        assert_eq!(dir.path().read_dir().expect("lists").count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_replaced_file_keeps_its_permissions() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("x");
        std::fs::write(&path, "old").expect("writes");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("sets");
        write_file(&path, "settings", |out| out.write_all(b"new")).expect("writes");
        assert_eq!(path.metadata().expect("is there").permissions().mode() & 0o777, 0o600);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_followed_and_a_pipe_stays_one() {
        use std::os::unix::fs::FileTypeExt;
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (file, link, pipe) = (dir.path().join("file"), dir.path().join("link"), dir.path().join("pipe"));
        std::fs::write(&file, "old").expect("writes");
        std::os::unix::fs::symlink(&file, &link).expect("links");
        write_file(&link, "run", |out| out.write_all(b"new")).expect("writes");
        assert!(link.symlink_metadata().expect("is there").is_symlink());
        assert_eq!(std::fs::read(&file).expect("is there"), b"new");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("runs").success());
        assert!(!is_database(&pipe), "nobody waits for what nobody writes");
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::read(pipe).expect("reads")
        });
        write_file(&pipe, "run", |out| out.write_all(b"through")).expect("writes");
        assert_eq!(reader.join().expect("ends"), b"through");
        assert!(pipe.metadata().expect("is there").file_type().is_fifo());
    }
}
