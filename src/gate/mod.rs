//! The gate: decides, from what was measured, whether a change may go in.
//!
//! Two questions, asked alone or together. [`regression`]: do captured searches still return what they returned?
//! [`correctness`]: do searches with a known answer find it? [`GateReport`] joins the two to one verdict. Nothing
//! here searches or reads an index.
//!
//! A value equal to its threshold passes. What was not measured is never counted as good: failed and left out rows
//! are breaches of their own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod correctness;
pub mod junit;
pub mod markdown;
pub mod qrels;
mod question;
mod regression;
mod report;
mod significance;
mod stale;
pub mod truth;
mod worst;

pub use correctness::{CorrectnessGate, CorrectnessSummary, CorrectnessThresholds, Retrieved, correctness};
pub use regression::{RegressionGate, RegressionThresholds, regression};
pub use report::GateReport;
pub use significance::{MetricTest, Significance};
pub use stale::{Difference, Staleness, stale};
pub use worst::{WorstQuery, WorstRow, WorstRows, worst_queries};

/// What the gate says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Everything that was asked holds.
    Pass,
    /// Something does not.
    Fail,
    /// Nothing is shown to fail, and the data do not suffice to say that it holds.
    Inconclusive,
}

impl Verdict {
    /// The verdict on one question, from what does not hold and what cannot be decided.
    fn of(breaches: &[Breach], undecided: &[Breach]) -> Self {
        match (breaches.is_empty(), undecided.is_empty()) {
            (false, _) => Self::Fail,
            (true, false) => Self::Inconclusive,
            (true, true) => Self::Pass,
        }
    }

    /// The verdict over two questions: the worse one.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Fail, _) | (_, Self::Fail) => Self::Fail,
            (Self::Inconclusive, _) | (_, Self::Inconclusive) => Self::Inconclusive,
            _ => Self::Pass,
        }
    }
}

/// A threshold that does not hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Breach {
    /// What was measured: the name it has in the summary.
    pub metric: String,
    /// Its value; absent when there was nothing to measure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<f64>,
    /// What it had to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// What the first few failed rows or queries say: `id: message`, ` | ` between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_tail: Option<String>,
}

/// Collects breaches in the order of the checks.
#[derive(Default)]
struct Breaches(Vec<Breach>);

impl Breaches {
    /// A value that must not be below its threshold; one that is absent is below.
    fn at_least(&mut self, metric: &str, observed: Option<f64>, threshold: f64) {
        if !observed.is_some_and(|observed| observed >= threshold) {
            self.push(metric, observed, threshold, None);
        }
    }

    fn at_most(&mut self, metric: &str, observed: f64, threshold: f64, tail: Option<String>) {
        if observed > threshold {
            self.push(metric, Some(observed), threshold, tail);
        }
    }

    fn push(&mut self, metric: &str, observed: Option<f64>, threshold: f64, error_tail: Option<String>) {
        self.0.push(Breach { metric: metric.into(), observed, threshold: Some(threshold), error_tail });
    }
}

impl Breach {
    /// The same in words: `mean_jaccard 0.793 is below its floor 0.850`.
    pub fn reason(&self) -> String {
        let metric = &self.metric;
        match (self.observed, self.threshold) {
            (Some(observed), Some(threshold)) => {
                let side = if observed > threshold { "above its ceiling" } else { "below its floor" };
                let (observed, threshold) = apart(observed, threshold);
                format!("{metric} {observed} is {side} {threshold}")
            }
            (None, Some(threshold)) => format!("{metric} was not measured, its floor is {threshold:.3}"),
            (Some(observed), None) => format!("{metric} is {observed:.3}"),
            (None, None) => format!("{metric} was not measured"),
        }
    }
}

/// Two different values with as many decimals, three at least, as tell them apart; whole numbers without.
fn apart(a: f64, b: f64) -> (String, String) {
    if a.fract() == 0.0 && b.fract() == 0.0 {
        return (a.to_string(), b.to_string());
    }
    let written = (3..=17).map(|decimals| (format!("{a:.decimals$}"), format!("{b:.decimals$}")));
    let mut written = written.skip_while(|(a, b)| a == b);
    written.next().unwrap_or_else(|| (a.to_string(), b.to_string()))
}

#[cfg(test)]
mod tests;
