//! Captured searches, in `captures.db` of the user's folder.
//!
//! Any engine can capture: make a [`Recorder`], hand it a [`Captured`] after each search, and let it
//! [`drain`](Recorder::drain) before the program ends. [`Captures`] reads what was kept.
//!
//! ```
//! use std::time::Duration;
//! use rankgate::record::{Captured, Tool};
//! use rankgate::store::captures::{Captures, Recorder, Wanted};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! let path = folder.path().join("captures.db");
//! let recorder = Recorder::start(&path, true);
//! let mut row = Captured::new(Tool::Search, "mail jane@example.com", vec!["people/jane".into()]);
//! row.latency_ms = Some(4.2);
//! recorder.record(row);
//! assert_eq!(recorder.drain(Duration::from_secs(5)).written, 1);
//!
//! let rows = Captures::open(&path)?.rows(&Wanted::default())?;
//! assert_eq!(rows[0].query, "mail [REDACTED]");
//! # Ok::<(), rankgate::Error>(())
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rusqlite::{Connection, params};
use schemars::JsonSchema;
use serde::Serialize;

use super::failed;
use crate::error::{Error, Result};
use crate::record::{Captured, Tool, utc};

mod columns;
mod recorder;
mod scrubbed;

use columns::{insert, read};
pub use recorder::{Drained, Recorder};

/// The database's name in the user's folder.
pub const DB_FILE: &str = "captures.db";

/// Characters that a captured query may have.
pub const MAX_QUERY: usize = 51_200;

/// How long failures are remembered.
const FAILURES_KEPT: Duration = Duration::from_secs(30 * 86_400);

// Moments are text that sorts like time, lists and objects are JSON. A row that does not know a value has null.
const MIGRATIONS: &[&str] = &["
    create table eval_candidates (
        id integer primary key autoincrement,
        tool_name text not null check (tool_name in ('ask', 'query', 'search', 'vsearch')),
        query text not null check (length(query) <= 51200),
        retrieved_slugs text not null default '[]',
        retrieved_chunk_ids text not null default '[]',
        source_ids text not null default '[]',
        expand_enabled integer check (expand_enabled in (0, 1)),
        detail text check (detail in ('low', 'medium', 'high')),
        detail_resolved text check (detail_resolved in ('low', 'medium', 'high')),
        vector_enabled integer check (vector_enabled in (0, 1)),
        expansion_applied integer check (expansion_applied in (0, 1)),
        latency_ms real check (latency_ms >= 0),
        remote integer check (remote in (0, 1)),
        job_id integer,
        subagent_id integer,
        created_at text not null check (created_at glob '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T*Z'),
        \"limit\" integer,
        collection text,
        thoroughness text,
        fusion text,
        rerank integer check (rerank in (0, 1)),
        graph integer check (graph in (0, 1)),
        parts text,
        lang text,
        stages text,
        expansion text,
        fingerprints text,
        extra text not null default '{}'
    );
    create index eval_candidates_by_time on eval_candidates (created_at desc, id desc);
    create table eval_capture_failures (
        id integer primary key autoincrement,
        ts text not null,
        reason text not null check (reason in
            ('busy', 'disk_full', 'check_violation', 'scrubber', 'queue_full', 'other'))
    );
    create index eval_capture_failures_by_time on eval_capture_failures (ts desc);
"];

/// Why a search was not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureReason {
    /// Another process held the database for too long.
    Busy,
    /// The disk is full.
    DiskFull,
    /// The table refused the row: its query has more than [`MAX_QUERY`] characters, or it has more than
    /// [`MAX_LINE`](crate::record::MAX_LINE) bytes as a line of a file.
    CheckViolation,
    /// Personal data could not be replaced.
    Scrubber,
    /// Searches came faster than they could be written.
    QueueFull,
    /// Anything else: the folder cannot be written, the database is damaged or newer than this program.
    Other,
}

impl FailureReason {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Busy, Self::DiskFull, Self::CheckViolation, Self::Scrubber, Self::QueueFull, Self::Other];

    /// The name in the database and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::DiskFull => "disk_full",
            Self::CheckViolation => "check_violation",
            Self::Scrubber => "scrubber",
            Self::QueueFull => "queue_full",
            Self::Other => "other",
        }
    }

    /// The reason that an error of SQLite comes to.
    pub fn of(error: &rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        match error.sqlite_error_code() {
            Some(Code::DatabaseBusy | Code::DatabaseLocked) => Self::Busy,
            _ if super::is_disk_full(error) => Self::DiskFull,
            Some(Code::ConstraintViolation) => Self::CheckViolation,
            _ => Self::Other,
        }
    }
}

/// Which captured searches are wanted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wanted {
    /// Captured at this moment or later, as [`utc`] writes it.
    pub since: Option<String>,
    /// The newest ones, at most so many.
    pub limit: Option<u32>,
    /// Only of this command.
    pub tool: Option<Tool>,
}

/// What [`Captures::prune`] removes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Older {
    /// What was captured before this moment, as [`utc`] writes it.
    Than(String),
    /// Everything, whatever its date says.
    All,
}

/// The captured searches of a user. Several processes may use them at once.
pub struct Captures {
    connection: Connection,
    path: PathBuf,
}

impl Captures {
    /// Opens the database, creating it and its folder.
    ///
    /// Fails when the folder cannot be written, and when the file is newer than this program or damaged.
    pub fn open(path: &Path) -> Result<Self> {
        let connection = super::open(path, MIGRATIONS)?;
        // What is removed is overwritten: it may be personal.
        connection.pragma_update(None, "secure_delete", true).map_err(|e| failed(path, "open", e))?;
        Ok(Self { connection, path: path.to_path_buf() })
    }

    /// Opens the database if there is one. Fails like [`open`](Self::open).
    pub fn open_existing(path: &Path) -> Result<Option<Self>> {
        if path.try_exists().map_err(|e| Error::io("open", path, e))? {
            Self::open(path).map(Some)
        } else {
            Ok(None)
        }
    }

    /// How many searches are kept.
    pub fn count(&self) -> Result<u64> {
        let count =
            self.connection.query_row("select count(*) from eval_candidates", [], |row| row.get::<_, i64>(0));
        count.map(|count| count as u64).map_err(|e| failed(&self.path, "read", e))
    }

    /// Keeps rows as they are, all that can be kept in one transaction; why each of the others could not. A row
    /// gets a new id; one without a moment gets that of now.
    ///
    /// Fails, keeping none, when the database cannot be written.
    pub fn insert(&mut self, rows: &[Captured]) -> Result<Vec<FailureReason>> {
        self.try_insert(rows, &[]).map_err(|e| failed(&self.path, "write", e))
    }

    /// The same, and notes failures with their moments.
    fn try_insert(
        &mut self,
        rows: &[Captured],
        failures: &[(String, FailureReason)],
    ) -> rusqlite::Result<Vec<FailureReason>> {
        let tx = self.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let mut refused = Vec::new();
        for row in rows {
            match insert(&tx, row) {
                Ok(()) => {}
                // The statement is undone, the transaction goes on.
                Err(e) if FailureReason::of(&e) == FailureReason::CheckViolation => {
                    refused.push(FailureReason::CheckViolation);
                }
                Err(e) => return Err(e),
            }
        }
        let now = utc(SystemTime::now());
        let failures = failures.iter().map(|(ts, reason)| (ts, *reason));
        let failures: Vec<_> = failures.chain(refused.iter().map(|reason| (&now, *reason))).collect();
        for (ts, reason) in &failures {
            let sql = "insert into eval_capture_failures (ts, reason) values (?1, ?2)";
            tx.prepare_cached(sql)?.execute(params![ts, reason.name()])?;
        }
        if !failures.is_empty() {
            let old = utc(SystemTime::now().checked_sub(FAILURES_KEPT).unwrap_or(SystemTime::UNIX_EPOCH));
            tx.execute("delete from eval_capture_failures where ts < ?1", [old])?;
        }
        tx.commit()?;
        Ok(refused)
    }

    /// Calls `each` with every row that is wanted, newest first, one in memory at a time.
    ///
    /// Fails when `each` does, when the database cannot be read, and on a row that this program does not understand.
    pub fn each(&self, wanted: &Wanted, mut each: impl FnMut(Captured) -> Result<()>) -> Result<()> {
        let fail = |e| failed(&self.path, "read", e);
        let sql = "select * from eval_candidates
                   where (?1 is null or created_at >= ?1) and (?2 is null or tool_name = ?2)
                   order by created_at desc, id desc limit ?3";
        let mut statement = self.connection.prepare(sql).map_err(fail)?;
        let limit = wanted.limit.map_or(-1, i64::from); // none
        let mut rows =
            statement.query(params![wanted.since, wanted.tool.map(Tool::name), limit]).map_err(fail)?;
        while let Some(row) = rows.next().map_err(fail)? {
            let id: i64 = row.get("id").map_err(fail)?;
            let named = |e: Error| e.context(format_args!("{}: row {id}", self.path.display()));
            each(read(row).map_err(named)?)?;
        }
        Ok(())
    }

    /// The rows that are wanted, newest first. Fails like [`each`](Self::each).
    pub fn rows(&self, wanted: &Wanted) -> Result<Vec<Captured>> {
        let mut rows = Vec::new();
        self.each(wanted, |row| {
            rows.push(row);
            Ok(())
        })?;
        Ok(rows)
    }

    /// Removes captured searches, or with `dry_run` only counts them; how many. Failures that are noted stay.
    ///
    /// What is removed is overwritten in the file. Fails, removing nothing, when the database cannot be written.
    pub fn prune(&mut self, older: &Older, dry_run: bool) -> Result<u64> {
        let before = match older {
            Older::Than(moment) => Some(moment),
            Older::All => None,
        };
        let filter = "from eval_candidates where ?1 is null or created_at < ?1";
        if dry_run {
            let count = self
                .connection
                .query_row(&format!("select count(*) {filter}"), [before], |row| row.get::<_, i64>(0));
            return count.map(|count| count as u64).map_err(|e| failed(&self.path, "read", e));
        }
        let removed = self
            .connection
            .execute(&format!("delete {filter}"), [before])
            .map_err(|e| failed(&self.path, "write", e))?;
        if removed > 0 {
            // Gives the room back, also that of the write-ahead log; another reader may forbid it for now.
            let _ = self.connection.execute_batch("vacuum; pragma wal_checkpoint(truncate)");
        }
        Ok(removed as u64)
    }

    /// How many searches were not kept since a moment, by reason, as [`utc`] writes it.
    pub fn failures(&self, since: &str) -> Result<BTreeMap<FailureReason, u64>> {
        let select = || -> rusqlite::Result<Vec<(String, i64)>> {
            let sql = "select reason, count(*) from eval_capture_failures where ts >= ?1 group by reason";
            let mut statement = self.connection.prepare(sql)?;
            statement.query_map([since], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        };
        let found = select().map_err(|e| failed(&self.path, "read", e))?;
        let reason = |name: &str| FailureReason::ALL.into_iter().find(|reason| reason.name() == name);
        Ok(found.into_iter().filter_map(|(name, count)| Some((reason(&name)?, count as u64))).collect())
    }
}
