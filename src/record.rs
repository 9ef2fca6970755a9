//! The results of a run: the one type beneath every report, export and gate.
//!
//! A run holds evals, an eval holds cases, a case holds trials (executions), a trial holds scores. Numbers are
//! kept unrounded; whoever prints them rounds.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};
use crate::trace::Trace;

pub mod baseline;
pub mod captured;
mod ndjson;
mod replayed;

pub use captured::{Captured, Fingerprints, Tool};
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
    /// Why there is no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
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

/// A moment as UTC text, RFC 3339 with milliseconds: sorts like time.
///
/// ```
/// use std::time::{Duration, UNIX_EPOCH};
/// let moment = UNIX_EPOCH + Duration::from_millis(951_782_400_007);
/// assert_eq!(rankgate::record::utc(moment), "2000-02-29T00:00:00.007Z");
/// ```
pub fn utc(moment: SystemTime) -> String {
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    // Gregorian date from days, counted from March so that the leap day is a year's last.
    let shifted = days + 719_468;
    let era_day = shifted % 146_097;
    let year_of_era = (era_day - era_day / 1_460 + era_day / 36_524 - era_day / 146_096) / 365;
    let year_day = era_day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * year_day + 2) / 153;
    let day = year_day - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = shifted / 146_097 * 400 + year_of_era + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        second / 3_600,
        second / 60 % 60,
        second % 60,
        since.subsec_millis()
    )
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
