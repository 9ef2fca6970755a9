//! Runs a case's steps on a second thread, so that one that hangs or panics takes nothing else with it.
//!
//! Every thread of the test runner keeps one worker and hands it a case at a time; a hand-over costs
//! microseconds, a new thread ten times as much. A worker that misses its deadline is abandoned: it stays
//! behind until its step returns, and a fresh one goes on with the next step.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

/// As much stack as a main thread has: a subject should not fail only because it is tested.
const STACK: usize = 8 << 20;

/// Why a step has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lost {
    /// It panicked, with this message.
    Panicked(String),
    /// It ran longer than its limit.
    TimedOut,
}

/// A sequence of steps, each of which may be lost without the others.
pub trait Steps: Send + Sync + 'static {
    /// Does step `step` and keeps its result; false when there is no such step.
    fn step(&self, step: usize, ticket: &Ticket) -> bool;
    /// Notes that step `step` was lost. Returns whether to go on with the next one.
    fn lost(&self, step: usize, why: Lost) -> bool;
}

/// Proof that a step's result is still wanted.
pub struct Ticket {
    board: Arc<Board>,
    worker: u64,
}

impl Ticket {
    /// Runs `keep` unless the worker was abandoned meanwhile; the runner waits until it is done.
    pub fn keep(&self, keep: impl FnOnce()) {
        let state = self.board.lock();
        if state.worker == self.worker {
            keep();
        }
    }
}

struct State {
    worker: u64,
    step: usize,
    since: Instant,
    done: bool,
}

struct Board {
    state: Mutex<State>,
    finished: Condvar,
}

impl Board {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves `worker` to the next step; false when it was abandoned.
    fn advance(&self, worker: u64) -> bool {
        let mut state = self.lock();
        if state.worker == worker {
            state.step += 1;
            state.since = Instant::now();
        }
        state.worker == worker
    }

    fn finish(&self, worker: u64) {
        let mut state = self.lock();
        if state.worker == worker {
            state.done = true;
            self.finished.notify_one();
        }
    }
}

/// Runs all steps, each within `limit`, and returns when the last is done or lost.
pub fn run(steps: &Arc<dyn Steps>, limit: Duration) {
    let state = State { worker: 0, step: 0, since: Instant::now(), done: false };
    let board = Arc::new(Board { state: Mutex::new(state), finished: Condvar::new() });
    start(steps, &board, 0);
    let mut state = board.lock();
    while !state.done {
        let left = limit.saturating_sub(state.since.elapsed());
        if !left.is_zero() {
            let waited = board.finished.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            continue;
        }
        let step = state.step;
        state.worker += 1;
        state.step += 1;
        state.since = Instant::now();
        let worker = state.worker;
        drop(state);
        WORKER.with_borrow_mut(|worker| *worker = None);
        if !steps.lost(step, Lost::TimedOut) {
            return;
        }
        start(steps, &board, worker);
        state = board.lock();
    }
}

fn start(steps: &Arc<dyn Steps>, board: &Arc<Board>, worker: u64) {
    let (steps, board) = (Arc::clone(steps), Arc::clone(board));
    let first = board.lock().step;
    submit(Box::new(move || {
        let ticket = Ticket { board, worker };
        let mut step = first;
        loop {
            let go_on = match quietly(|| steps.step(step, &ticket)) {
                Ok(more) => more,
                Err(message) => {
                    let mut go_on = false;
                    ticket.keep(|| go_on = steps.lost(step, Lost::Panicked(message)));
                    go_on
                }
            };
            if !go_on {
                return ticket.board.finish(worker);
            }
            if !ticket.board.advance(worker) {
                return;
            }
            step += 1;
        }
    }));
}

type Job = Box<dyn FnOnce() + Send>;

thread_local! {
    static WORKER: RefCell<Option<Sender<Job>>> = const { RefCell::new(None) };
    static QUIET: Cell<bool> = const { Cell::new(false) };
    static MESSAGE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Gives `job` to this thread's worker, which is started if there is none.
fn submit(job: Job) {
    let spawn = || {
        let (sender, jobs) = channel::<Job>();
        let thread = std::thread::Builder::new().name("case".into()).stack_size(STACK);
        let spawned = thread.spawn(move || jobs.into_iter().for_each(|job| job()));
        spawned.map(|_| sender)
    };
    WORKER.with_borrow_mut(|worker| {
        let job = match worker {
            Some(sender) => match sender.send(job) {
                Ok(()) => return,
                Err(returned) => returned.0,
            },
            None => job,
        };
        match spawn() {
            Ok(sender) => {
                // The receiver lives in the thread that was just started.
                let _ = sender.send(job);
                *worker = Some(sender);
            }
            // No thread to be had: without a time limit is better than not at all.
            Err(_) => job(),
        }
    });
}

/// Runs `work`; a panic becomes its message and place, and prints nothing.
pub fn quietly<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    hush();
    let outer = QUIET.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    QUIET.set(outer);
    result.map_err(|payload| {
        // A payload that does not come from the hook was thrown by `resume_unwind`.
        MESSAGE.take().unwrap_or_else(|| words(&*payload).to_string())
    })
}

/// Installs, once, the panic hook that keeps the message of quiet threads.
fn hush() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                return loud(info);
            }
            let text = words(info.payload());
            let place = info.location().map(|l| format!(" at {}:{}", l.file(), l.line())).unwrap_or_default();
            MESSAGE.set(Some(format!("panicked{place}: {text}")));
        }));
    });
}

/// The text of a panic.
fn words(payload: &(dyn Any + Send)) -> &str {
    let owned = || payload.downcast_ref::<String>().map(String::as_str);
    payload.downcast_ref::<&str>().copied().or_else(owned).unwrap_or("a value that is no text")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps that each do what they are told.
    struct Script {
        acts: Vec<&'static str>,
        log: Mutex<Vec<String>>,
    }

    impl Script {
        fn note(&self, line: String) {
            self.log.lock().expect("not poisoned").push(line);
        }
    }

    impl Steps for Script {
        fn step(&self, step: usize, ticket: &Ticket) -> bool {
            let Some(act) = self.acts.get(step) else { return false };
            match *act {
                "panic" => panic!("step {step}"),
                "hang" => std::thread::sleep(Duration::from_secs(3600)),
                "late" => std::thread::sleep(Duration::from_millis(400)),
                _ => {}
            }
            ticket.keep(|| self.note(format!("{step} {act}")));
            true
        }

        fn lost(&self, step: usize, why: Lost) -> bool {
            let why = match why {
                Lost::TimedOut => "timed out",
                Lost::Panicked(message) if message.contains("worker.rs") => "panicked",
                Lost::Panicked(_) => "panicked somewhere",
            };
            self.note(format!("{step} {why}"));
            true
        }
    }

    fn log_of(acts: Vec<&'static str>, limit: Duration) -> Vec<String> {
        let script = Arc::new(Script { acts, log: Mutex::default() });
        run(&(Arc::clone(&script) as Arc<dyn Steps>), limit);
        let log = script.log.lock().expect("not poisoned");
        log.clone()
    }

    #[test]
    fn a_lost_step_leaves_the_others_standing() {
        let log = log_of(vec!["a", "panic", "b", "hang", "c"], Duration::from_millis(200));
        assert_eq!(log, ["0 a", "1 panicked", "2 b", "3 timed out", "4 c"]);
    }

    #[test]
    fn an_abandoned_worker_cannot_speak_up_later() {
        let script = Arc::new(Script { acts: vec!["late", "a"], log: Mutex::default() });
        run(&(Arc::clone(&script) as Arc<dyn Steps>), Duration::from_millis(50));
        std::thread::sleep(Duration::from_millis(700));
        assert_eq!(*script.log.lock().expect("not poisoned"), ["0 timed out", "1 a"]);
    }
}
