//! One execution of one case: the typed part of the harness.

use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::error::{Error, ErrorKind};
use crate::record::{Column, Score, TrialRecord};
use crate::trace::{Trace, capture};

use super::case::{BoxError, Case, Context, Output, report};
use super::scorer::{Observed, Scored, Scorer};
use super::snapshot::Snapshots;
use super::verdict::Extras;
use super::worker::{self, Lost, Steps, Ticket, quietly};

pub type Subject<C, O> = Arc<dyn Fn(&C, &Context) -> Result<O, BoxError> + Send + Sync>;
pub type Columns<C, O> = dyn Fn(&C, &O) -> Vec<Column> + Send + Sync;
pub type Text<C, O> = dyn Fn(&C, &O) -> String + Send + Sync;

/// What one execution of a case brought.
pub struct Executed {
    pub record: TrialRecord,
    pub extras: Extras,
    /// The subject failed for a reason that may be gone at the next attempt.
    pub infrastructure: bool,
}

/// A subject with its cases, its types forgotten.
pub trait Body: Send + Sync {
    /// The id of every case.
    fn ids(&self) -> Vec<String>;
    /// Executes a case once, each step within `limit`.
    fn execute(
        self: Arc<Self>,
        case: usize,
        context: Context,
        limit: Duration,
        snapshots: &Snapshots,
    ) -> Executed;
}

/// What has to be done before the first case.
pub type Setup = Box<dyn FnOnce() -> Result<(), BoxError> + Send>;

/// A setup and, once it has run, how it went.
pub struct Ready {
    setup: Mutex<Option<Setup>>,
    result: OnceLock<Result<(), String>>,
}

impl Ready {
    pub fn new(setup: Option<Setup>) -> Self {
        Self { setup: Mutex::new(setup), result: OnceLock::new() }
    }

    /// Runs the setup, or waits for the thread that does. Its failure or panic is everyone's.
    fn wait(&self) -> Result<(), String> {
        let run = || {
            let setup = self.setup.lock().unwrap_or_else(PoisonError::into_inner).take();
            setup.map_or(Ok(()), |setup| quietly(setup)?.map_err(|error| report(&error)))
        };
        self.result.get_or_init(run).clone().map_err(|error| format!("setup: {error}"))
    }
}

/// What the variants of an eval have in common.
pub struct Shared<C, O> {
    pub cases: Vec<C>,
    pub scorers: Vec<Scorer<C, O>>,
    pub columns: Option<Box<Columns<C, O>>>,
    pub snapshot: Option<Box<Text<C, O>>>,
    pub requires: Vec<String>,
    pub setup: Ready,
}

/// A subject with its cases.
pub struct Typed<C, O> {
    pub shared: Arc<Shared<C, O>>,
    pub subject: Subject<C, O>,
}

impl<C: Case, O: Output> Body for Typed<C, O> {
    fn ids(&self) -> Vec<String> {
        self.shared.cases.iter().map(|case| case.id().to_string()).collect()
    }

    fn execute(
        self: Arc<Self>,
        case: usize,
        context: Context,
        limit: Duration,
        snapshots: &Snapshots,
    ) -> Executed {
        let execution = Arc::new(Execution {
            body: self,
            case,
            context,
            limit,
            snapshots: snapshots.clone(),
            progress: Mutex::new(Progress::default()),
        });
        match execution.body.shared.setup.wait() {
            Ok(()) => worker::run(&(Arc::clone(&execution) as Arc<dyn Steps>), limit),
            Err(error) => execution.lock().error = Some(error),
        }
        execution.finish()
    }
}

/// The subject's answer.
struct Answer<O> {
    output: O,
    took: Duration,
    trace: Trace,
}

struct Progress<O> {
    answer: Option<Arc<Answer<O>>>,
    took: Duration,
    trace: Trace,
    error: Option<String>,
    infrastructure: bool,
    scores: Vec<Score>,
    extras: Extras,
}

impl<O> Default for Progress<O> {
    fn default() -> Self {
        Self {
            answer: None,
            took: Duration::ZERO,
            trace: Trace::default(),
            error: None,
            infrastructure: false,
            scores: Vec::new(),
            extras: Extras::default(),
        }
    }
}

/// Step 0 is the subject, then follow the scorers, the columns and the snapshot.
struct Execution<C, O> {
    body: Arc<Typed<C, O>>,
    case: usize,
    context: Context,
    limit: Duration,
    snapshots: Snapshots,
    progress: Mutex<Progress<O>>,
}

impl<C: Case, O: Output> Execution<C, O> {
    fn lock(&self) -> MutexGuard<'_, Progress<O>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn case(&self) -> &C {
        &self.body.shared.cases[self.case]
    }

    fn subject(&self, ticket: &Ticket) -> bool {
        let started = Instant::now();
        // Caught inside the capture, so that the stages before a panic are kept.
        let (result, trace) = capture(|| quietly(|| (self.body.subject)(self.case(), &self.context)));
        let took = started.elapsed();
        let mut go_on = false;
        ticket.keep(|| {
            let mut progress = self.lock();
            progress.took = took;
            match result {
                Err(panic) => progress.error = Some(panic),
                Ok(Err(error)) => {
                    progress.infrastructure = is_infrastructure(&error);
                    progress.error = Some(report(&error));
                }
                Ok(Ok(output)) => match dishonest(&self.body.shared.requires, &trace) {
                    Some(stage) => progress.error = Some(stage),
                    None => {
                        go_on = true;
                        progress.answer = Some(Arc::new(Answer { output, took, trace }));
                        return;
                    }
                },
            }
            progress.trace = trace;
        });
        go_on
    }

    fn score(&self, index: usize, answer: &Answer<O>, ticket: &Ticket) {
        let scorer = &self.body.shared.scorers[index];
        let Answer { output, took, trace } = answer;
        let seen = Observed { case: self.case(), output, took: *took, trace, trial: self.context.trial };
        let scored = (scorer.run)(&seen);
        ticket.keep(|| self.lock().scores.push(to_score(&scorer.name, scored)));
    }

    fn columns(&self, answer: &Answer<O>, ticket: &Ticket) {
        if let Some(columns) = &self.body.shared.columns {
            let columns = columns(self.case(), &answer.output);
            ticket.keep(|| self.lock().extras.columns = columns);
        }
    }

    fn snapshot(&self, answer: &Answer<O>, ticket: &Ticket) {
        if let Some(text) = &self.body.shared.snapshot {
            let text = text(self.case(), &answer.output);
            let difference = self.snapshots.check(&self.context.eval, &self.context.case, &text);
            ticket.keep(|| self.lock().extras.snapshot = difference);
        }
    }

    fn finish(&self) -> Executed {
        let mut progress = std::mem::take(&mut *self.lock());
        // Without an answer every scorer gives 0: the case stays in every mean.
        let missing = progress.scores.len()..self.body.shared.scorers.len();
        for scorer in &self.body.shared.scorers[missing] {
            progress.scores.push(Score { scorer: scorer.name.clone(), value: Some(0.0), ..Score::default() });
        }
        let (output, took, trace) = match &progress.answer {
            Some(answer) => (stored(&answer.output), answer.took, answer.trace.clone()),
            None => (Value::Null, progress.took, progress.trace),
        };
        let record = TrialRecord {
            index: self.context.trial,
            took_ms: took.as_secs_f64() * 1e3,
            error: progress.error,
            retried: Vec::new(),
            scores: progress.scores,
            output,
            trace,
        };
        Executed { record, extras: progress.extras, infrastructure: progress.infrastructure }
    }
}

impl<C: Case, O: Output> Steps for Execution<C, O> {
    fn step(&self, step: usize, ticket: &Ticket) -> bool {
        if step == 0 {
            return self.subject(ticket);
        }
        let Some(answer) = self.lock().answer.clone() else { return false };
        let scorers = self.body.shared.scorers.len();
        match step - 1 {
            index if index < scorers => self.score(index, &answer, ticket),
            index if self.context.trial == 0 && index == scorers => self.columns(&answer, ticket),
            index if self.context.trial == 0 && index == scorers + 1 => self.snapshot(&answer, ticket),
            _ => return false,
        }
        true
    }

    fn lost(&self, step: usize, why: Lost) -> bool {
        let why = match why {
            Lost::Panicked(message) => message,
            Lost::TimedOut => format!("timed out after {:?}", self.limit),
        };
        let mut progress = self.lock();
        let scorers = &self.body.shared.scorers;
        match step {
            0 => {
                progress.took = self.limit;
                progress.error = Some(why);
                return false;
            }
            _ if step <= scorers.len() => {
                let score = to_score(&scorers[step - 1].name, Scored::Failed(why));
                progress.scores.push(score);
            }
            _ if step == scorers.len() + 1 => progress.extras.columns_error = Some(why),
            _ => progress.extras.snapshot = Some(format!("snapshot: {why}")),
        }
        true
    }
}

fn to_score(name: &str, scored: Scored) -> Score {
    let score = Score { scorer: name.into(), ..Score::default() };
    match scored {
        Scored::Value(value, detail) if (0.0..=1.0).contains(&value) => {
            Score { value: Some(value), detail, ..score }
        }
        Scored::Value(value, detail) => {
            let error = Some(format!("returned {value}, a score must be from 0 to 1"));
            Score { value: Some(0.0), error, detail, ..score }
        }
        Scored::Informs { value, detail, why } => {
            Score { informs: Some(why), ..to_score(name, Scored::Value(value, detail)) }
        }
        Scored::Skipped(reason) => Score { skipped: Some(reason), ..score },
        Scored::Failed(error) => Score { value: Some(0.0), error: Some(error), ..score },
    }
}

/// The first required stage that did not run although there was something for it to do, with its reason.
fn dishonest(requires: &[String], trace: &Trace) -> Option<String> {
    let missing = requires.iter().find(|stage| !trace.sound(stage))?;
    let mut text = format!("stage `{missing}` is required and did not run");
    let Some(stage) = trace.stage(missing) else {
        let ran: Vec<&str> = trace.stages.iter().filter(|s| s.ran()).map(|s| s.name.as_str()).collect();
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            " (stages that ran: {})",
            if ran.is_empty() { "none".into() } else { ran.join(", ") }
        );
        return Some(text);
    };
    for field in ["skipped", "error"] {
        if let Some(why) = stage.fields.get(field) {
            let _ =
                write!(text, ": {field}: {}", why.as_str().map_or_else(|| why.to_string(), str::to_string));
        }
    }
    Some(text)
}

fn is_infrastructure(error: &BoxError) -> bool {
    use ErrorKind as Kind;
    error.downcast_ref::<Error>().is_none_or(|own| {
        matches!(own.kind(), Kind::Network | Kind::Busy | Kind::Io | Kind::Timeout | Kind::Model)
    })
}

fn stored<O: Output>(output: &O) -> Value {
    serde_json::to_value(output).unwrap_or_else(|e| Value::String(format!("the output is not JSON: {e}")))
}
