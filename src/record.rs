//! The results of a run: the one type beneath every report, export and gate.
//!
//! A run holds evals, an eval holds cases, a case holds trials (executions), a trial holds scores. Numbers are
//! kept unrounded; whoever prints them rounds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};
use crate::trace::Trace;

pub mod baseline;
pub mod captured;
pub mod diff;
pub mod json;
mod kind;
mod moment;
mod ndjson;
mod replayed;

pub use captured::{Captured, Fingerprints, Tool};
pub use kind::FileKind;
pub use moment::utc;
pub use ndjson::MAX_LINE;
pub use replayed::{Faults, ReplaySummary, ReplayTally, ReplayedRow};

/// The format's version. Raised when a reader of the old format would misread the new one.
pub const VERSION: u32 = 1;

/// What was decided about a case or an eval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// At or above every threshold, or a known miss that still misses.
    Pass,
    /// Measured, and too low.
    BelowThreshold,
    /// Differs from its accepted baseline, or a known miss that no longer misses.
    Regressed,
    /// Too few cases to tell, where confidence was asked for.
    Inconclusive,
    /// Not measured, or not wholly: something failed.
    Error,
    /// There was nothing to measure.
    Empty,
    /// Left out on purpose, with a reason.
    Skipped,
}

impl Verdict {
    /// Whether a test with this verdict succeeds.
    pub fn is_success(self) -> bool {
        matches!(self, Self::Pass | Self::Skipped)
    }

    /// The verdict as people read it: `below threshold`.
    pub fn words(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::BelowThreshold => "below threshold",
            Self::Regressed => "regressed",
            Self::Inconclusive => "inconclusive",
            Self::Error => "error",
            Self::Empty => "empty",
            Self::Skipped => "skipped",
        }
    }
}

/// What one scorer said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Score {
    /// The scorer's name: `recall@5`.
    pub scorer: String,
    /// In [0, 1], higher is better. Absent when the scorer was skipped; 0 when it, or what it needed, failed.
    pub value: Option<f64>,
    /// Highest minus lowest value over the trials; absent with one trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
    /// Standard deviation over the trials; absent with one trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deviation: Option<f64>,
    /// Why there is no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// Why the value informs and counts for no verdict, if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub informs: Option<String>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whatever the scorer wanted to keep.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub detail: Value,
}

/// One execution of a case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialRecord {
    /// Counted from 0.
    pub index: u32,
    /// Milliseconds inside the subject.
    pub took_ms: f64,
    /// Why the subject did not deliver; every score is 0 then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Infrastructure errors of earlier attempts, which were tried again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retried: Vec<String>,
    /// One score a scorer, in the eval's order.
    pub scores: Vec<Score>,
    /// What the subject returned.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub output: Value,
    /// The stages that ran, with the fingerprints of their models.
    #[serde(default)]
    pub trace: Trace,
}

/// A labelled text for the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Column {
    /// The label.
    pub label: String,
    /// The text.
    pub text: String,
}

/// All trials of one case, and what follows from them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseRecord {
    /// The eval, its variant in brackets: `query[rrf]`.
    pub eval: String,
    /// The case's id.
    pub case: String,
    /// The case's place among the eval's cases, from 0.
    pub position: usize,
    /// The decision.
    pub verdict: Verdict,
    /// Why, in one line; empty for a plain pass.
    pub reason: String,
    /// The mean of the scores that count towards the verdict; absent when none was scored.
    pub mean: Option<f64>,
    /// The mean over the trials, one a scorer.
    pub scores: Vec<Score>,
    /// Why a miss is expected here, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_miss: Option<String>,
    /// Texts for the table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<Column>,
    /// The executions.
    pub trials: Vec<TrialRecord>,
}

impl CaseRecord {
    /// Whether a subject or a scorer failed, so that a score of 0 stands for "not measured".
    pub fn unmeasured(&self) -> bool {
        self.trials.iter().any(|trial| trial.error.is_some())
            || self.scores.iter().any(|score| score.error.is_some())
    }

    /// Milliseconds inside the subject, all trials together.
    pub fn took_ms(&self) -> f64 {
        self.trials.iter().map(|trial| trial.took_ms).sum()
    }
}

/// One scorer's mean over the cases of an eval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeanRecord {
    /// The scorer's name.
    pub scorer: String,
    /// How many cases it scored; a failed case counts, with 0.
    pub cases: usize,
    /// The mean.
    pub mean: f64,
    /// Lower end of the bootstrap 95 % interval.
    pub low: f64,
    /// Upper end of the bootstrap 95 % interval.
    pub high: f64,
    /// What the mean has to reach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// The mean minus that of the last complete run over the same cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<f64>,
    /// Why this scorer informs and counts for no verdict in this run, if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub informs: Option<String>,
    /// How far the trials of a case lie apart; absent with one trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trials: Option<TrialSpread>,
}

/// How far the trials of a case lie apart, in one scorer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialSpread {
    /// Standard deviation over the trials of a case, pooled over the cases (root of the mean variance).
    pub deviation: f64,
    /// The case whose trials lie farthest apart.
    pub widest: String,
    /// The mean of that case.
    pub widest_mean: f64,
    /// The standard deviation over the trials of that case.
    pub widest_deviation: f64,
}

/// What a comparison of two variants says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// The variant that should be better is.
    Better,
    /// No difference that could not be chance.
    Tie,
    /// The variant that should be better is worse, and chance does not explain it.
    Worse,
    /// No case has both scores.
    NotCompared,
}

/// Two variants of an eval, compared over the cases that both have scored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OrderRecord {
    /// The scorer's name.
    pub scorer: String,
    /// The variant that should be better.
    pub better: String,
    /// The variant that it is compared with.
    pub worse: String,
    /// How many cases have both scores.
    pub cases: usize,
    /// The mean of `better` minus the mean of `worse`.
    pub mean: f64,
    /// Lower end of the bootstrap 95 % interval of that difference.
    pub low: f64,
    /// Upper end of that interval.
    pub high: f64,
    /// How likely so large a difference is by chance: paired randomisation test, two-sided.
    pub p: f64,
    /// What follows; a difference counts where `p` is below 0.05.
    pub order: Order,
}

/// All cases of one eval, and what follows from them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EvalRecord {
    /// The eval, its variant in brackets.
    pub eval: String,
    /// What the eval asks.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The decision.
    pub verdict: Verdict,
    /// Why, in one line; empty for a pass.
    pub reason: String,
    /// Whether every case was executed. A filter may have left some out.
    pub complete: bool,
    /// How many cases the eval has.
    pub total: usize,
    /// SHA-256 of the case ids: means are comparable only over the same cases.
    pub case_set: String,
    /// One mean a scorer, in the eval's order.
    pub means: Vec<MeanRecord>,
    /// Milliseconds inside the subject, all cases together.
    pub took_ms: f64,
    /// The comparisons of its variants, where the eval orders them. Such a record has no cases of its own: they are
    /// with the variants.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<OrderRecord>,
    /// The cases that were executed.
    pub cases: Vec<CaseRecord>,
}

impl EvalRecord {
    /// The same record without its cases.
    pub fn summary(&self) -> Self {
        Self {
            eval: self.eval.clone(),
            description: self.description.clone(),
            verdict: self.verdict,
            reason: self.reason.clone(),
            complete: self.complete,
            total: self.total,
            case_set: self.case_set.clone(),
            means: self.means.clone(),
            took_ms: self.took_ms,
            order: self.order.clone(),
            cases: Vec::new(),
        }
    }
}

/// The state of the sources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Revision {
    /// The commit.
    pub commit: String,
    /// Whether files differ from the commit.
    pub dirty: bool,
}

/// When, where and how a run took place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunHead {
    /// Unique; sorts by time within one runner.
    pub id: String,
    /// The package whose evals ran.
    pub project: String,
    /// Its version.
    pub project_version: String,
    /// The version of rankgate.
    pub rankgate_version: String,
    /// `cargo test` or `nextest`.
    pub runner: String,
    /// UTC, RFC 3339 with milliseconds.
    pub started: String,
    /// The sources, if they are in a git repository.
    pub revision: Option<Revision>,
    /// What was typed to choose the trials; empty for all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub filter: String,
}

/// One run: what `RANKGATE_OUTPUT` receives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "rankgate run record")]
pub struct RunRecord {
    /// The format's version, [`VERSION`].
    pub version: u32,
    /// The run.
    pub run: RunHead,
    /// The evals of which at least one case was executed.
    pub evals: Vec<EvalRecord>,
}

impl RunRecord {
    /// Reads a record that was written as JSON.
    ///
    /// Fails when the text is not a run record, and when its version is newer than [`VERSION`].
    ///
    /// ```
    /// let error = rankgate::record::RunRecord::from_json(r#"{"version": 99}"#).unwrap_err();
    /// assert!(error.to_string().contains("update rankgate"));
    /// ```
    pub fn from_json(text: &str) -> Result<Self> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let broken = |e: serde_json::Error| {
            Error::input(format!("run record: {e}")).with_hint("make it anew with RANKGATE_OUTPUT=FILE")
        };
        let found = serde_json::from_str::<Versioned>(text).map_err(broken)?.version;
        if found > VERSION {
            return Err(Error::new(
                ErrorKind::Version,
                format!("run record: format version {found}, this program reads up to {VERSION}"),
            )
            .with_hint("update rankgate"));
        }
        serde_json::from_str(text).map_err(broken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_have_stable_names() {
        let json = serde_json::to_string(&Verdict::BelowThreshold).expect("serialises");
        assert_eq!(json, "\"below-threshold\"");
    }
}
