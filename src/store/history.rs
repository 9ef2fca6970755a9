//! The history of runs, in `history.db` of the project's data folder.
//!
//! Several processes may write at once. Under nextest, where every trial is a process, the history is also how
//! they share results.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OptionalExtension, params};
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::record::{CaseRecord, EvalRecord, RunHead, RunRecord, VERSION};

use super::failed;

const MIGRATIONS: &[&str] = &["
    create table runs (
        id text primary key,
        project text not null,
        started text not null,
        head text not null
    ) without rowid;
    create table evals (
        run text not null references runs(id) on delete cascade,
        eval text not null,
        complete integer not null,
        case_set text not null,
        record text not null,
        primary key (run, eval)
    ) without rowid;
    create table cases (
        run text not null references runs(id) on delete cascade,
        eval text not null,
        id text not null,
        position integer not null,
        verdict text not null,
        mean real,
        record text not null,
        primary key (run, eval, id)
    );
    create index runs_by_time on runs(project, started);
"];

/// The folder of a run's working data: `RANKGATE_DATA`, else `rankgate` in cargo's target folder.
///
/// The target folder is the one that holds the running program, else that of `CARGO_TARGET_DIR`, else
/// `target` in `project`.
pub fn data_dir(project: &Path) -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = set("RANKGATE_DATA") {
        return std::path::absolute(&folder).unwrap_or(folder);
    }
    let holds_program = || {
        let program = std::env::current_exe().ok()?;
        program.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file()).map(Path::to_path_buf)
    };
    holds_program()
        .or_else(|| set("CARGO_TARGET_DIR"))
        .unwrap_or_else(|| project.join("target"))
        .join("rankgate")
}

/// An open history. Shared between threads.
#[derive(Debug)]
pub struct History {
    connection: Mutex<Connection>,
    path: PathBuf,
}

impl History {
    /// Opens `history.db` in `folder`, creating both.
    ///
    /// Fails when the folder cannot be written, and when the file is newer than this program or damaged.
    pub fn open(folder: &Path) -> Result<Self> {
        let path = folder.join("history.db");
        let connection = super::open(&path, MIGRATIONS)?;
        Ok(Self { connection: Mutex::new(connection), path })
    }

    /// Where it is kept.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        // A panic between statements leaves the connection usable: the transaction was rolled back.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the run has been begun, by this process or another.
    pub fn has_run(&self, run: &str) -> Result<bool> {
        self.lock()
            .prepare_cached("select 1 from runs where id = ?1")
            .and_then(|mut statement| statement.exists([run]))
            .map_err(|e| failed(&self.path, "read", e))
    }

    /// Begins a run; of several processes of one run, the first one's head is kept.
    pub fn begin(&self, head: &RunHead) -> Result<()> {
        self.lock()
            .execute(
                "insert or ignore into runs (id, project, started, head) values (?1, ?2, ?3, ?4)",
                params![head.id, head.project, head.started, self.json(head)?],
            )
            .map(drop)
            .map_err(|e| failed(&self.path, "write", e))
    }

    /// Saves the results of cases of a begun run, all or none. A case that is there already is replaced.
    pub fn save_cases<R: AsRef<CaseRecord>>(&self, run: &str, cases: &[R]) -> Result<()> {
        let texts = cases.iter().map(|case| self.json(case.as_ref())).collect::<Result<Vec<_>>>()?;
        let mut connection = self.lock();
        let mut write = || -> rusqlite::Result<()> {
            let tx = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            {
                let mut insert = tx.prepare_cached(
                    "insert or replace into cases (run, eval, id, position, verdict, mean, record)
                     values (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                )?;
                for (case, text) in cases.iter().map(AsRef::as_ref).zip(&texts) {
                    let (position, verdict) = (case.position as i64, case.verdict.words());
                    insert.execute(params![run, case.eval, case.case, position, verdict, case.mean, text])?;
                }
            }
            tx.commit()
        };
        write().map_err(|e| failed(&self.path, "write", e))
    }

    /// Saves the summary of an eval of a begun run. Its cases are saved by [`History::save_cases`].
    pub fn save_eval(&self, run: &str, eval: &EvalRecord) -> Result<()> {
        self.lock()
            .execute(
                "insert or replace into evals (run, eval, complete, case_set, record)
                 values (?1, ?2, ?3, ?4, ?5)",
                params![run, eval.eval, eval.complete, eval.case_set, self.json(&eval.summary())?],
            )
            .map(drop)
            .map_err(|e| failed(&self.path, "write", e))
    }

    /// The result of one case, if the run has it.
    pub fn case(&self, run: &str, eval: &str, case: &str) -> Result<Option<CaseRecord>> {
        let found = self.rows(
            "select record from cases where run = ?1 and eval = ?2 and id = ?3",
            &[&run, &eval, &case],
        )?;
        Ok(found.into_iter().next())
    }

    /// The results of an eval's cases that the run has, in the eval's order.
    pub fn cases(&self, run: &str, eval: &str) -> Result<Vec<CaseRecord>> {
        self.rows("select record from cases where run = ?1 and eval = ?2 order by position", &[&run, &eval])
    }

    /// The summary of the newest complete run of `eval` over the same cases, other than `run`.
    pub fn last_complete(
        &self,
        project: &str,
        eval: &str,
        case_set: &str,
        run: &str,
    ) -> Result<Option<EvalRecord>> {
        let found = self.rows(
            "select evals.record from evals join runs on runs.id = evals.run
             where project = ?1 and eval = ?2 and case_set = ?3 and complete and run <> ?4
             order by started desc limit 1",
            &[&project, &eval, &case_set, &run],
        )?;
        Ok(found.into_iter().next())
    }

    /// The newest `limit` runs of `project`, newest first.
    pub fn runs(&self, project: &str, limit: usize) -> Result<Vec<RunHead>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.rows(
            "select head from runs where project = ?1 order by started desc limit ?2",
            &[&project, &limit],
        )
    }

    /// A whole run with its cases. Fails when there is no such run.
    pub fn run(&self, run: &str) -> Result<RunRecord> {
        let head = self.rows("select head from runs where id = ?1", &[&run])?;
        let Some(head) = head.into_iter().next() else {
            return Err(Error::not_found(format!("{}: there is no run `{run}`", self.path.display())));
        };
        let mut evals: Vec<EvalRecord> =
            self.rows("select record from evals where run = ?1 order by eval", &[&run])?;
        for eval in &mut evals {
            eval.cases = self.cases(run, &eval.eval)?;
        }
        Ok(RunRecord { version: VERSION, run: head, evals })
    }

    /// Forgets all but the newest `keep` runs of `project`.
    pub fn prune(&self, project: &str, keep: usize) -> Result<usize> {
        self.lock()
            .execute(
                "delete from runs where project = ?1 and id not in
                 (select id from runs where project = ?1 order by started desc limit ?2)",
                params![project, i64::try_from(keep).unwrap_or(i64::MAX)],
            )
            .map_err(|e| failed(&self.path, "write", e))
    }

    /// The first column of every row, read as JSON.
    fn rows<T: DeserializeOwned>(&self, sql: &str, values: &[&dyn rusqlite::ToSql]) -> Result<Vec<T>> {
        let connection = self.lock();
        let read = || -> rusqlite::Result<Vec<String>> {
            connection.prepare_cached(sql)?.query_map(values, |row| row.get(0))?.collect()
        };
        let texts = read().optional().map_err(|e| failed(&self.path, "read", e))?.unwrap_or_default();
        texts
            .iter()
            .map(|text| {
                serde_json::from_str(text).map_err(|e| {
                    Error::input(format!("{}: a stored record cannot be read", self.path.display()))
                        .with_source(e)
                        .with_hint("move the file away, it will be made anew")
                })
            })
            .collect()
    }

    fn json<T: serde::Serialize>(&self, value: &T) -> Result<String> {
        serde_json::to_string(value).map_err(|e| {
            Error::input(format!("{}: a record cannot be stored", self.path.display())).with_source(e)
        })
    }
}
