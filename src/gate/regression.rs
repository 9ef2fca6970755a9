//! Do captured searches still return what they returned?

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::significance::{MetricTest, Significance};
use super::{Breach, Breaches, Difference, Staleness, Verdict, WorstRow};
use crate::error::Result;
use crate::record::baseline::Floors;
use crate::record::{ReplaySummary, ReplayTally};

/// The figure of a baseline that was not replayed: how many things are no longer what they were.
pub(super) const STALE: &str = "stale_fingerprints";

/// What a replay has to reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegressionThresholds {
    /// Those that a baseline can carry.
    #[serde(flatten)]
    pub floors: Floors,
    /// Most rows that may be left out.
    pub max_skipped: usize,
}

/// The answer, with what it rests on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegressionGate {
    /// Whether it was asked. All else is absent when not.
    pub ran: bool,
    /// The baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_path: Option<String>,
    /// What was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<ReplaySummary>,
    /// What it had to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thresholds: Option<RegressionThresholds>,
    /// What is no longer what it was when the baseline was captured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stale: Vec<Difference>,
    /// Whether latency was left out, for want of captured latencies above 0.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub latency_skipped: bool,
    /// What does not hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub breaches: Vec<Breach>,
    /// What does not hold here, and may by chance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undecided: Vec<Breach>,
    /// The rows that changed most, worst first: a few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worst: Vec<WorstRow>,
    /// One test a metric, where they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<MetricTest>,
    /// What a reader should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl RegressionGate {
    /// The verdict on this question alone.
    pub fn verdict(&self) -> Verdict {
        Verdict::of(&self.breaches, &self.undecided)
    }

    /// The answer that a stale baseline allows: none. Nothing was replayed.
    pub fn refused(staleness: Staleness) -> Self {
        let Staleness { differences, notes } = staleness;
        let words: Vec<String> = differences.iter().map(Difference::words).collect();
        let mut undecided = Breaches::default();
        undecided.at_most(STALE, differences.len() as f64, 0.0, Some(words.join("; ")));
        Self { ran: true, undecided: undecided.0, stale: differences, notes, ..Self::default() }
    }

    /// Whether the baseline was stale and nothing was replayed.
    pub fn is_refused(&self) -> bool {
        self.undecided.iter().any(|breach| breach.metric == STALE)
    }

    /// Takes in what was found of the baseline's age: what is stale or was set otherwise is said before all else.
    pub fn with_staleness(mut self, staleness: Staleness) -> Self {
        self.notes.splice(0..0, staleness.all_notes());
        self.stale = staleness.differences;
        self
    }
}

/// Holds what was replayed against `thresholds`; with `significance`, tests every metric as well.
///
/// Breaches: a failed row, more rows left out than allowed, no row replayed, none that ever found anything, a mean
/// Jaccard coefficient or a share of stable first documents below its floor, a latency ratio above its ceiling. The latency ratio compares the same
/// rows, then and now; rows without a captured latency have no part in it.
///
/// Fails on thresholds that are not numbers in range.
pub fn regression(
    tally: &ReplayTally,
    thresholds: RegressionThresholds,
    significance: Option<&Significance>,
) -> Result<RegressionGate> {
    thresholds.floors.check()?;
    let Floors { jaccard, top1, latency_multiplier } = thresholds.floors;
    let summary = tally.summary();
    let mut breaches = Breaches::default();
    let (errored, skipped) = (&tally.errored, &tally.skipped);
    breaches.at_most("rows_errored", errored.count as f64, 0.0, Some(errored.first.clone()));
    let allowed = thresholds.max_skipped as f64;
    let way_out = format!("--max-skipped {} allows it: {}", skipped.count, skipped.first);
    breaches.at_most("rows_skipped", skipped.count as f64, allowed, Some(way_out));
    breaches.at_least("rows_replayed", Some(summary.rows_replayed as f64), 1.0);
    if summary.rows_replayed > 0 {
        let found = summary.rows_replayed - summary.rows_empty;
        breaches.at_least("rows_with_documents", Some(found as f64), 1.0);
    }
    breaches.at_least("mean_jaccard", summary.mean_jaccard, jaccard);
    breaches.at_least("top1_stability_rate", summary.top1_stability_rate, top1);
    breaches.at_most("latency_ratio", summary.latency_ratio.unwrap_or(0.0), latency_multiplier, None);

    let latency_skipped = summary.latency_ratio.is_none();
    let mut notes = Vec::new();
    if latency_skipped {
        notes.push("latency was not compared: no replayed row has a captured latency above 0".into());
    }
    if summary.rows_empty > 0 {
        notes.push(format!(
            "{} of {} replayed rows found nothing then and nothing now, which counts as stable",
            summary.rows_empty, summary.rows_replayed
        ));
    }
    if skipped.count > 0 {
        notes.push(format!(
            "{} of {} rows were left out: {}",
            skipped.count, summary.rows_total, skipped.first
        ));
    }
    let tests = significance.map_or_else(Vec::new, |options| {
        let above = |values: &[f64], floor: f64| values.iter().map(|value| value - floor).collect::<Vec<_>>();
        // How many milliseconds a row stays below its ceiling.
        let spare: Vec<f64> =
            tally.latencies.iter().map(|(before, now)| latency_multiplier * before - now).collect();
        [
            options.test("mean_jaccard", &above(&tally.jaccard, jaccard)),
            options.test("top1_stability_rate", &above(&tally.top1, top1)),
            options.test("latency_ratio", &spare),
        ]
        .into_iter()
        .flatten()
        .collect()
    });
    Ok(RegressionGate {
        ran: true,
        summary: Some(summary),
        thresholds: Some(thresholds),
        latency_skipped,
        breaches: breaches.0,
        tests,
        notes,
        ..RegressionGate::default()
    })
}
