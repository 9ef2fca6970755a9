//! One run of the test program: who it is, what it remembers, and where it writes.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::corpus::write_file;
use crate::error::{Error, Result};
use crate::record::{CaseRecord, EvalRecord, Revision, RunHead, RunRecord, VERSION, utc};
use crate::store::history::{History, data_dir};

use super::snapshot::Snapshots;

/// The package that the evals belong to; made by [`project!`](crate::project).
#[derive(Debug, Clone)]
pub struct Project {
    name: String,
    version: String,
    root: PathBuf,
    assert: fn(&str, &str),
}

impl Project {
    #[doc(hidden)]
    pub fn new(name: &str, version: &str, root: &str, assert: fn(&str, &str)) -> Self {
        // An archive of test programs runs elsewhere than it was built; the runner says where.
        let moved = || std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let built = PathBuf::from(root);
        let root = if built.is_dir() { built } else { moved().unwrap_or(built) };
        Self { name: name.into(), version: version.into(), root, assert }
    }

    /// The package's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

/// Under nextest every trial is a process, and this is what tells that they belong together.
#[derive(Debug, Clone)]
struct Nextest {
    run: String,
    attempt: u32,
}

impl Nextest {
    fn detect(set: &impl Fn(&str) -> Option<String>) -> Option<Self> {
        let mut run = set("NEXTEST_RUN_ID")?;
        if let Some(repetition) = set("NEXTEST_STRESS_CURRENT") {
            run = format!("{run}-{repetition}");
        }
        let attempt = set("NEXTEST_ATTEMPT").and_then(|n| n.parse().ok()).unwrap_or(1);
        Some(Self { run, attempt })
    }
}

/// What a trial needs to know of the run it is part of. Made without touching a file.
pub struct Session {
    project: Project,
    started: SystemTime,
    nextest: Option<Nextest>,
    ci: bool,
    output: Option<PathBuf>,
    filter: String,
    id: String,
    head: OnceLock<RunHead>,
    history: OnceLock<Option<History>>,
    pending: Mutex<Pending>,
}

#[derive(Default)]
struct Pending {
    cases: Vec<Arc<CaseRecord>>,
    flushed: Option<Instant>,
    failed: bool,
}

/// Results are saved in groups of this size, or after [`FLUSH_AFTER`].
const FLUSH_SIZE: usize = 64;
const FLUSH_AFTER: Duration = Duration::from_secs(1);
/// Runs that the history keeps of a project.
const KEEP_RUNS: usize = 500;

impl Session {
    pub fn new(project: Project, filter: String) -> Self {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let started = SystemTime::now();
        let nextest = Nextest::detect(&set);
        let own = || format!("{}-{:x}", utc(started).replace(['-', ':', '.'], ""), std::process::id());
        Self {
            project,
            started,
            id: nextest.as_ref().map_or_else(own, |nextest| nextest.run.clone()),
            nextest,
            ci: set("CI").is_some_and(|value| value != "0" && value != "false"),
            output: set("RANKGATE_OUTPUT").map(PathBuf::from),
            filter,
            head: OnceLock::new(),
            history: OnceLock::new(),
            pending: Mutex::default(),
        }
    }

    /// Whether every trial is a process of its own.
    pub fn is_nextest(&self) -> bool {
        self.nextest.is_some()
    }

    /// Whether this is an unattended run.
    pub fn is_ci(&self) -> bool {
        self.ci
    }

    /// Whether the run is to be written to a file.
    pub fn exports(&self) -> bool {
        self.output.is_some()
    }

    pub fn snapshots(&self) -> Snapshots {
        Snapshots { folder: self.project.root.join("snapshots"), assert: self.project.assert }
    }

    /// The head of the run. The first call asks git for the revision.
    pub fn head(&self) -> &RunHead {
        self.head.get_or_init(|| RunHead {
            id: self.id.clone(),
            project: self.project.name.clone(),
            project_version: self.project.version.clone(),
            rankgate_version: env!("CARGO_PKG_VERSION").into(),
            runner: if self.is_nextest() { "nextest" } else { "cargo test" }.into(),
            started: utc(self.started),
            revision: revision(&self.project.root),
            filter: self.filter.clone(),
        })
    }

    /// The history; without one when it cannot be had, which is said once.
    pub fn history(&self) -> Option<&History> {
        let open = || {
            let folder = data_dir(&self.project.root);
            let history = History::open(&folder);
            history.map_err(|error| self.warn(&error)).ok()
        };
        self.history.get_or_init(open).as_ref()
    }

    fn warn(&self, error: &Error) {
        let mut stderr = std::io::stderr().lock();
        let _ = writeln!(stderr, "warning: this run is not kept in the history: {}", error.report());
    }

    /// What another process of this run found for a case. An error found in an earlier attempt of this trial
    /// is tried again; a score never is.
    pub fn found(&self, eval: &str, case: &str) -> Option<CaseRecord> {
        let nextest = self.nextest.as_ref()?;
        let found = self.history()?.case(&self.id, eval, case).ok()??;
        (nextest.attempt == 1 || !found.unmeasured()).then_some(found)
    }

    /// What other processes of this run found for the cases of an eval.
    pub fn found_all(&self, eval: &str) -> Vec<CaseRecord> {
        let found = || self.history()?.cases(&self.id, eval).ok();
        if self.is_nextest() { found().unwrap_or_default() } else { Vec::new() }
    }

    /// Saves a case, at the latest when the session ends.
    pub fn save(&self, case: Arc<CaseRecord>) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.cases.push(case);
        let due = pending.flushed.is_none_or(|at| at.elapsed() > FLUSH_AFTER);
        if self.is_nextest() || due || pending.cases.len() >= FLUSH_SIZE {
            self.flush(&mut pending);
        }
    }

    fn flush(&self, pending: &mut Pending) {
        pending.flushed = Some(Instant::now());
        let cases = std::mem::take(&mut pending.cases);
        let Some(history) = self.history().filter(|_| !cases.is_empty() && !pending.failed) else { return };
        let save = || -> Result<()> {
            if !history.has_run(&self.id)? {
                history.begin(self.head())?;
                history.prune(&self.project.name, KEEP_RUNS)?;
            }
            history.save_cases(&self.id, &cases)
        };
        if let Err(error) = save() {
            pending.failed = true;
            self.warn(&error);
        }
    }

    /// Adds to every mean its change against the last complete run over the same cases.
    pub fn compare(&self, eval: &mut EvalRecord) {
        if !eval.complete {
            return;
        }
        let last = self.history().and_then(|history| {
            history.last_complete(&self.project.name, &eval.eval, &eval.case_set, &self.id).ok().flatten()
        });
        let Some(last) = last else { return };
        for mean in &mut eval.means {
            let before = last.means.iter().find(|before| before.scorer == mean.scorer);
            mean.change = before.map(|before| mean.mean - before.mean);
        }
    }

    /// Saves everything pending and the summaries.
    pub fn save_evals(&self, evals: &[EvalRecord]) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        self.flush(&mut pending);
        let Some(history) = self.history().filter(|_| !pending.failed) else { return };
        let save = || -> Result<()> {
            if !evals.is_empty() && !history.has_run(&self.id)? {
                history.begin(self.head())?;
            }
            evals.iter().try_for_each(|eval| history.save_eval(&self.id, eval))
        };
        if let Err(error) = save() {
            pending.failed = true;
            self.warn(&error);
        }
    }

    /// Writes the run to `RANKGATE_OUTPUT`, if that is set; returns where.
    ///
    /// Under nextest every process writes what the history knows of the run so far, one after the other: the
    /// last one writes it whole.
    pub fn export(&self, evals: Vec<EvalRecord>) -> Result<Option<&Path>> {
        let Some(path) = &self.output else { return Ok(None) };
        if !self.is_nextest() {
            write(path, &RunRecord { version: VERSION, run: self.head().clone(), evals })?;
            return Ok(Some(path));
        }
        let Some(history) = self.history() else {
            return Err(Error::usage(format!(
                "{}: under nextest the run is joined in the history",
                path.display()
            ))
            .with_hint("set RANKGATE_DATA to a folder that can be written"));
        };
        let lock_path = history.path().with_file_name("output.lock");
        let lock =
            std::fs::File::create(&lock_path).map_err(|e| Error::io("create the lock", &lock_path, e))?;
        lock.lock().map_err(|e| Error::io("take the lock", &lock_path, e))?;
        write(path, &history.run(&self.id)?)?;
        Ok(Some(path))
    }
}

fn write(path: &Path, run: &RunRecord) -> Result<()> {
    write_file(path, "record that RANKGATE_OUTPUT asks for", |out| {
        serde_json::to_writer_pretty(&mut *out, run)?;
        out.write_all(b"\n")
    })
}

/// The commit and whether files differ from it; none outside a repository or without git.
fn revision(root: &Path) -> Option<Revision> {
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.current_dir(root).env("GIT_OPTIONAL_LOCKS", "0").args(arguments);
        let output = git.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    let commit = git(&["rev-parse", "HEAD"])?;
    Some(Revision { commit, dirty: git(&["status", "--porcelain"]).is_none_or(|status| !status.is_empty()) })
}
