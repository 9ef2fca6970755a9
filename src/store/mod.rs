//! SQLite: how a database of this project is opened, and what is kept in one.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ffi};

use crate::error::{Error, ErrorKind, Result};

pub mod cache;
pub mod captures;
pub mod history;
pub mod index;

/// How long a writer waits for another process before it gives up.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// Opens `path`, creating file and folders, and brings its schema up to date.
///
/// `migrations[n]` is the SQL that takes a database of version n to version n + 1; the version is kept in
/// `user_version`. The database is in WAL mode, so readers never block the one writer. Fails when the
/// database is newer than `migrations` (with what to do) and when the file is not a database.
pub fn open(path: &Path, migrations: &[&str]) -> Result<Connection> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(|e| Error::io("create the folder", parent, e))?;
    }
    let mut connection = Connection::open(path).map_err(|e| failed(path, "open", e))?;
    migrate(&mut connection, migrations, path)?;
    Ok(connection)
}

fn migrate(connection: &mut Connection, migrations: &[&str], path: &Path) -> Result<()> {
    let newest = migrations.len() as i64;
    let run = |connection: &mut Connection| -> rusqlite::Result<Option<i64>> {
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        let version = |c: &Connection| c.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0));
        if version(connection)? == newest {
            return Ok(None);
        }
        // Two processes may both find an old version: the second waits here, then finds nothing to do.
        let tx = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let found = version(&tx)?;
        if found > newest {
            return Ok(Some(found));
        }
        for sql in &migrations[found.max(0) as usize..] {
            tx.execute_batch(sql)?;
        }
        tx.pragma_update(None, "user_version", newest)?;
        tx.commit()?;
        Ok(None)
    };
    match run(connection).map_err(|e| failed(path, "open", e))? {
        None => Ok(()),
        Some(found) => Err(Error::new(
            ErrorKind::Version,
            format!("{}: format version {found}, this program reads up to {newest}", path.display()),
        )
        .with_hint("update rankgate, or move the file away to start a new one")),
    }
}

/// What SQLite finds wrong with the database `path`, ten things at most; nothing when it is whole.
///
/// Fails when the file cannot be opened, or is no database.
pub fn integrity(path: &Path) -> Result<Vec<String>> {
    let check = || -> rusqlite::Result<Vec<String>> {
        let connection = Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        let mut statement = connection.prepare("pragma integrity_check(10)")?;
        statement.query_map([], |row| row.get(0))?.collect()
    };
    let mut found = check().map_err(|e| failed(path, "check", e))?;
    found.retain(|line| line != "ok");
    Ok(found)
}

/// Whether SQLite failed for want of space: in a write, or in making the file that readers of a database share.
pub fn is_disk_full(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map_or(0, |error| error.extended_code);
    [ffi::SQLITE_FULL, ffi::SQLITE_IOERR_SHMSIZE].contains(&code)
}

/// A SQLite failure on `path`, in words that say what to do.
pub fn failed(path: &Path, doing: &str, source: rusqlite::Error) -> Error {
    use rusqlite::ErrorCode as Code;
    let (kind, hint) = match source.sqlite_error_code() {
        Some(Code::NotADatabase | Code::DatabaseCorrupt) => {
            (ErrorKind::Input, Some("the file is damaged: move it away, it will be made anew"))
        }
        Some(Code::DatabaseBusy | Code::DatabaseLocked) => {
            (ErrorKind::Busy, Some("another process is writing: wait for it and try again"))
        }
        _ if is_disk_full(&source) => (ErrorKind::Io, Some("the disk is full: free some space")),
        Some(Code::ReadOnly | Code::CannotOpen | Code::PermissionDenied) => {
            (ErrorKind::Io, Some("check the permissions, or choose another folder with RANKGATE_HOME"))
        }
        _ => (ErrorKind::Internal, None),
    };
    let error = Error::new(kind, format!("{}: cannot {doing}", path.display())).with_source(source);
    match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_named_whatever_could_not_be_written() {
        for code in [13, 4874] {
            let source = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            let error = failed(Path::new("x.db"), "open", source);
            assert_eq!(error.kind(), ErrorKind::Io);
            assert!(error.to_string().ends_with("(the disk is full: free some space)"), "{code}: {error}");
        }
    }

    #[test]
    fn a_newer_database_is_refused_with_what_to_do() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("x.db");
        open(&path, &["create table a(x)", "create table b(x)"]).expect("opens");
        let error = open(&path, &["create table a(x)"]).expect_err("is newer");
        assert_eq!(error.kind(), ErrorKind::Version);
        assert!(error.report().contains("update rankgate"), "{}", error.report());
    }

    #[test]
    fn a_file_that_is_no_database_is_refused_and_kept() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("x.db");
        std::fs::write(&path, "x".repeat(5000)).expect("writes");
        let error = open(&path, &[]).expect_err("is damaged");
        assert!(error.report().contains("damaged"), "{}", error.report());
        assert_eq!(std::fs::read(&path).expect("is there").len(), 5000);
    }
}
