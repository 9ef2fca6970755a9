//! Is a miss of a threshold more than chance?

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Breach;
use crate::error::{Error, Result};
use crate::metrics::significance::{holm, minimum_detectable_effect, paired_randomisation};
use crate::metrics::stats::{Interval, bootstrap_mean_ci};

/// How tests are made.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Significance {
    /// The chance of a false alarm over all metrics together.
    pub alpha: f64,
    /// The chance of seeing a loss as large as the minimum detectable effect.
    pub power: f64,
    /// Sign patterns and bootstrap samples drawn.
    pub samples: usize,
    /// The start of the random numbers.
    pub seed: u64,
}

impl Default for Significance {
    fn default() -> Self {
        Self { alpha: 0.05, power: 0.8, samples: 10_000, seed: 0x5eed }
    }
}

/// The test of one metric. Each row or query gives a margin: how far its value is above the threshold. (For latency:
/// how many milliseconds it stays below the ceiling.)
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricTest {
    /// The metric's name in the summary.
    pub metric: String,
    /// How many rows or queries.
    pub n: usize,
    /// The mean margin; below 0 the threshold is missed.
    pub margin: f64,
    /// Bootstrap interval of the mean margin, at the level 1 − alpha.
    pub interval: Interval,
    /// The chance of a mean margin as low, if margins had random signs.
    pub p_value: f64,
    /// The same, corrected for the number of metrics (Holm).
    pub p_adjusted: f64,
    /// The smallest loss that would be seen with the stated power; absent with one row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum_detectable_effect: Option<f64>,
}

impl Significance {
    /// Fails unless 0 < alpha ≤ 0.5 ≤ power < 1 and samples are drawn.
    pub fn check(&self) -> Result<()> {
        let in_range = self.alpha > 0.0 && self.alpha <= 0.5 && (0.5..1.0).contains(&self.power);
        if in_range && self.samples > 0 {
            return Ok(());
        }
        Err(Error::usage(format!(
            "significance: alpha {}, power {} and {} samples cannot be used",
            self.alpha, self.power, self.samples
        ))
        .with_hint("alpha is above 0 and at most 0.5, power at least 0.5 and below 1"))
    }

    /// The test of one metric; `None` without margins. `p_adjusted` is corrected where all tests are known.
    pub(super) fn test(&self, metric: &str, margins: &[f64]) -> Option<MetricTest> {
        let test = paired_randomisation(margins, self.samples, self.seed)?;
        Some(MetricTest {
            metric: metric.into(),
            n: margins.len(),
            margin: test.mean,
            interval: bootstrap_mean_ci(margins, 1.0 - self.alpha, self.samples, self.seed)?,
            p_value: test.lower,
            p_adjusted: test.lower,
            minimum_detectable_effect: minimum_detectable_effect(margins, self.alpha, self.power),
        })
    }
}

/// Corrects the p-values of all tests of a gate together.
pub(super) fn correct(tests: &mut [&mut MetricTest]) {
    let raw: Vec<f64> = tests.iter().map(|test| test.p_value).collect();
    for (test, adjusted) in tests.iter_mut().zip(holm(&raw)) {
        test.p_adjusted = adjusted;
    }
}

/// Takes out the breaches that their test does not confirm, of `tests` of all together `metrics`. Where there are too
/// few rows for a test to confirm anything, the threshold alone decides, and `notes` says so.
pub(super) fn unconfirmed(
    breaches: &mut Vec<Breach>,
    tests: &[MetricTest],
    (metrics, alpha): (usize, f64),
    notes: &mut Vec<String>,
) -> Vec<Breach> {
    let doubtful = |breach: &mut Breach| {
        let Some(test) = tests.iter().find(|test| test.metric == breach.metric) else { return false };
        // All margins below 0: of 2^n patterns of signs, one is as low.
        let least = 0.5f64.powf(test.n as f64) * metrics as f64;
        if least >= alpha {
            notes.push(format!(
                "{}: no test of {} values can confirm a miss; the threshold alone decides",
                test.metric, test.n
            ));
            return false;
        }
        test.p_adjusted >= alpha
    };
    breaches.extract_if(.., doubtful).collect()
}
