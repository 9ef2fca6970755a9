//! Writes searches down beside the program that searches.

use std::collections::BTreeMap;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use super::scrubbed::scrubbed;
use super::{Captures, FailureReason};
use crate::error::Error;
use crate::record::{Captured, utc};
use crate::store::failed;

/// Searches that may wait to be written; a few kilobytes each.
const QUEUE: usize = 4_096;
/// Most searches that are written in one transaction.
const BATCH: usize = 256;
/// How long a search waits for others to be written with.
const GATHER: Duration = Duration::from_millis(20);
/// How long the database may stay busy before searches are given up.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long one try waits for another process.
const TRY: Duration = Duration::from_millis(500);

enum Message {
    /// Makes a row, on the recorder's thread.
    Row(Box<dyn FnOnce() -> Captured + Send>),
    /// Someone waits: what has come is to be written now, failures too.
    Note,
}

/// Writes searches to `captures.db` on a thread of its own.
///
/// To record never fails, waits or panics. A search that cannot be kept is counted by reason, in the database when it
/// can be written and on stderr, once, when not. Personal data is replaced on the recorder's thread, before anything
/// is written. Shared between threads. A recorder that goes out of scope [drains](Self::drain) for [`Self::GRACE`].
pub struct Recorder {
    queue: SyncSender<Message>,
    shared: Arc<Shared>,
}

/// What became of the searches that were recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Drained {
    /// Kept.
    pub written: u64,
    /// Not kept, by reason.
    pub failed: BTreeMap<FailureReason, u64>,
    /// Still waiting when time was up.
    pub unfinished: u64,
}

struct Shared {
    state: Mutex<State>,
    settled: Condvar,
    path: PathBuf,
    scrub: bool,
}

#[derive(Default)]
struct State {
    /// Rows and notes that were sent and are not dealt with yet.
    rows: u64,
    notes: u64,
    written: u64,
    failed: BTreeMap<FailureReason, u64>,
    /// Failures that are not in the database yet.
    owed: Vec<(String, FailureReason)>,
    warned: bool,
}

impl State {
    /// A failure that is to be noted in the database. Some are remembered; millions would say no more.
    fn fail(&mut self, reason: FailureReason) {
        *self.failed.entry(reason).or_default() += 1;
        if self.owed.len() < QUEUE {
            self.owed.push((utc(SystemTime::now()), reason));
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Counters are whole after every statement.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says on stderr, once, that searches cannot be kept.
    fn warn(&self, error: &Error) {
        if !std::mem::replace(&mut self.state().warned, true) {
            let _ = writeln!(std::io::stderr(), "note: searches are not captured: {}", error.report());
        }
    }
}

impl Recorder {
    /// How long a program should wait at its end for what is not written yet.
    pub const GRACE: Duration = Duration::from_secs(5);

    /// Starts a recorder that writes to the database `path`, which is opened, or created, with the first search.
    /// With `scrub`, personal data is replaced.
    pub fn start(path: &Path, scrub: bool) -> Self {
        Self::with_queue(path, scrub, QUEUE)
    }

    /// The same, and no more than `waiting` searches wait to be written; each further one is counted as failed.
    pub fn with_queue(path: &Path, scrub: bool, waiting: usize) -> Self {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            settled: Condvar::new(),
            path: path.to_path_buf(),
            scrub,
        });
        let (queue, receiver) = sync_channel(waiting);
        let theirs = shared.clone();
        let thread = std::thread::Builder::new().name("capture".into());
        if let Err(e) = thread.spawn(move || work(&theirs, &receiver)) {
            shared.warn(&Error::io("start a thread for", path, e));
        }
        Self { queue, shared }
    }

    /// Records a search. Its moment is that of now, unless it has one.
    pub fn record(&self, row: Captured) {
        self.record_with(|| row);
    }

    /// Records the search that `make` returns; it is called on the recorder's thread, so it may take its time.
    pub fn record_with(&self, make: impl FnOnce() -> Captured + Send + 'static) {
        let now = SystemTime::now();
        let make = move || {
            let mut row = make();
            row.created_at.get_or_insert_with(|| utc(now));
            row
        };
        self.shared.state().rows += 1; // before the thread can deal with it
        let reason = match self.queue.try_send(Message::Row(Box::new(make))) {
            Ok(()) => return,
            Err(TrySendError::Full(_)) => FailureReason::QueueFull,
            Err(TrySendError::Disconnected(_)) => FailureReason::Other,
        };
        let mut state = self.shared.state();
        state.rows -= 1;
        state.fail(reason);
    }

    /// Waits until all that was recorded is written or has failed, at most for `timeout`; what became of it since
    /// the start. The recorder goes on.
    pub fn drain(&self, timeout: Duration) -> Drained {
        let until = Instant::now() + timeout;
        let waits = {
            let mut state = self.shared.state();
            let waits = state.rows > 0 || !state.owed.is_empty();
            state.notes += u64::from(waits);
            waits
        };
        // Where the queue is full, a row will come by and take the failures along.
        if waits && self.queue.try_send(Message::Note).is_err() {
            self.shared.state().notes -= 1;
        }
        let mut state = self.shared.state();
        while state.rows + state.notes > 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.shared.settled.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Drained { written: state.written, failed: state.failed.clone(), unfinished: state.rows }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.drain(Self::GRACE);
    }
}

/// The recorder's thread: takes what waits, writes it in one transaction, counts.
fn work(shared: &Shared, queue: &Receiver<Message>) {
    let mut captures = None;
    while let Ok(first) = queue.recv() {
        let (mut rows, mut notes, mut spoilt) = (Vec::new(), 0, Vec::new());
        for message in batch(first, queue) {
            match message {
                Message::Note => notes += 1,
                Message::Row(make) => match finished(make, shared.scrub) {
                    Ok(row) => rows.push(row),
                    Err(reason) => spoilt.push(reason),
                },
            }
        }
        let owed = {
            let mut state = shared.state();
            spoilt.iter().for_each(|reason| state.fail(*reason));
            std::mem::take(&mut state.owed)
        };
        let written = write(&mut captures, shared, &rows, &owed);
        let mut state = shared.state();
        match written {
            Ok(refused) => {
                state.written += (rows.len() - refused.len()) as u64;
                refused.into_iter().for_each(|reason| *state.failed.entry(reason).or_default() += 1);
            }
            Err((reason, error)) => {
                state.owed.splice(..0, owed);
                rows.iter().for_each(|_| state.fail(reason));
                drop(state);
                shared.warn(&error);
                state = shared.state();
            }
        }
        state.rows -= (rows.len() + spoilt.len()) as u64;
        state.notes -= notes;
        shared.settled.notify_all();
    }
}

/// What is dealt with at once: searches that come shortly after each other, up to a note, which is in a hurry.
fn batch(first: Message, queue: &Receiver<Message>) -> Vec<Message> {
    let until = Instant::now() + GATHER;
    let mut batch = vec![first];
    while batch.len() < BATCH && !matches!(batch.last(), Some(Message::Note)) {
        match queue.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(message) => batch.push(message),
            Err(_) => break,
        }
    }
    batch
}

/// The row that `make` returns, as it is kept. A panic costs the row and not the recorder.
fn finished(make: Box<dyn FnOnce() -> Captured + Send>, scrub: bool) -> Result<Captured, FailureReason> {
    let row = catch_unwind(AssertUnwindSafe(make)).map_err(|_| FailureReason::Other)?;
    if !scrub {
        return Ok(row);
    }
    catch_unwind(|| scrubbed(row)).map_err(|_| FailureReason::Scrubber)
}

/// Writes rows and failures, waiting for other processes; why rows were refused, or why nothing could be written.
fn write(
    captures: &mut Option<Captures>,
    shared: &Shared,
    rows: &[Captured],
    owed: &[(String, FailureReason)],
) -> Result<Vec<FailureReason>, (FailureReason, Error)> {
    if rows.is_empty() && owed.is_empty() {
        return Ok(Vec::new());
    }
    let until = Instant::now() + PATIENCE;
    loop {
        let (reason, error) = match attempt(captures, shared, rows, owed) {
            Ok(refused) => return Ok(refused),
            Err(failure) => failure,
        };
        *captures = None; // whatever it was, the next try begins anew
        if reason != FailureReason::Busy || Instant::now() > until {
            return Err((reason, error));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn attempt(
    captures: &mut Option<Captures>,
    shared: &Shared,
    rows: &[Captured],
    owed: &[(String, FailureReason)],
) -> Result<Vec<FailureReason>, (FailureReason, Error)> {
    let failed = |e: rusqlite::Error| (FailureReason::of(&e), failed(&shared.path, "write", e));
    let open = match captures {
        Some(open) => open,
        None => {
            let opened = Captures::open(&shared.path).map_err(|e| {
                let cause = std::error::Error::source(&e).and_then(|cause| cause.downcast_ref());
                (cause.map_or(FailureReason::Other, FailureReason::of), e)
            })?;
            opened.connection.busy_timeout(TRY).map_err(failed)?;
            captures.insert(opened)
        }
    };
    open.try_insert(rows, owed).map_err(failed)
}
