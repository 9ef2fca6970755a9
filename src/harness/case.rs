//! What an eval is fed: cases, and what scorers may ask of a case and of an output.

use std::error::Error as StdError;

use serde::Serialize;

use crate::corpus::{JudgedQuery, Judgments, Ranking};
use crate::error::{Error, with_causes};

/// The error of any foreign engine.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// One input with its expectation, under an id that is unique in its eval.
///
/// Implemented for [`JudgedQuery`] and [`Example`]; a type of your own needs one line.
pub trait Case: Send + Sync + 'static {
    /// A stable name: it becomes part of the trial's name and of the snapshot's. Not empty, without control
    /// characters, and neither `gate` nor `load`.
    fn id(&self) -> &str;
}

/// A case that knows which documents are relevant.
pub trait Judged {
    /// docid → grade.
    fn judgments(&self) -> &Judgments;
}

/// An output that has a ranking.
pub trait Ranked {
    /// The ranking to score.
    fn ranking(&self) -> &Ranking;
}

impl Case for JudgedQuery {
    fn id(&self) -> &str {
        &self.query.id
    }
}

impl Judged for JudgedQuery {
    fn judgments(&self) -> &Judgments {
        &self.judgments
    }
}

impl Ranked for Ranking {
    fn ranking(&self) -> &Ranking {
        self
    }
}

/// A case of any input and any expectation.
///
/// ```
/// use rankgate::prelude::*;
/// let plain = Example::new("q1", "how do I roll back?");
/// let judged = plain.expecting(Judgments::from([("en/rollback.md".into(), 1)]));
/// assert_eq!((judged.id(), judged.judgments().len()), ("q1", 1));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Example<I, E = ()> {
    id: String,
    /// What the subject gets.
    pub input: I,
    /// What the scorers compare with.
    pub expected: E,
}

impl<I> Example<I> {
    /// A case without an expectation.
    pub fn new(id: impl Into<String>, input: I) -> Self {
        Self { id: id.into(), input, expected: () }
    }
}

impl<I, E> Example<I, E> {
    /// The same case with an expectation.
    pub fn expecting<F>(self, expected: F) -> Example<I, F> {
        Example { id: self.id, input: self.input, expected }
    }
}

impl<I: Send + Sync + 'static, E: Send + Sync + 'static> Case for Example<I, E> {
    fn id(&self) -> &str {
        &self.id
    }
}

impl<I> Judged for Example<I, Judgments> {
    fn judgments(&self) -> &Judgments {
        &self.expected
    }
}

/// What a loader of cases may return: a vector, or a result with one.
pub trait IntoCases {
    /// The type of the cases.
    type Case: Case;
    /// The cases, or why there are none.
    fn into_cases(self) -> Result<Vec<Self::Case>, BoxError>;
}

impl<C: Case> IntoCases for Vec<C> {
    type Case = C;
    fn into_cases(self) -> Result<Vec<C>, BoxError> {
        Ok(self)
    }
}

impl<C: Case, E: Into<BoxError>> IntoCases for Result<Vec<C>, E> {
    type Case = C;
    fn into_cases(self) -> Result<Vec<C>, BoxError> {
        self.map_err(Into::into)
    }
}

/// What a subject may return: anything that can be stored as JSON and shared between threads.
pub trait Output: Serialize + Send + Sync + 'static {}

impl<O: Serialize + Send + Sync + 'static> Output for O {}

/// What a subject is told beside its case.
#[derive(Debug, Clone)]
pub struct Context {
    pub(super) eval: String,
    pub(super) case: String,
    pub(super) trial: u32,
    pub(super) attempt: u32,
}

impl Context {
    /// The eval, its variant in brackets: `query[rrf]`.
    pub fn eval(&self) -> &str {
        &self.eval
    }

    /// The case's id.
    pub fn case(&self) -> &str {
        &self.case
    }

    /// Which execution of the case this is, from 0. It belongs in the key of everything that is cached, or
    /// all trials return the first one's answer.
    pub fn trial(&self) -> u32 {
        self.trial
    }

    /// How often this trial failed before on an infrastructure error.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }
}

/// An error with its causes in one line.
pub(super) fn report(error: &BoxError) -> String {
    if let Some(own) = error.downcast_ref::<Error>() {
        return own.report();
    }
    with_causes(error.to_string(), error.source())
}
