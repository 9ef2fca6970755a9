//! Statistics over the values of a metric: means, percentiles and intervals.
//!
//! Resampling is seeded, so the same values give the same interval on every machine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A range that holds the true value in a stated share of samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The difference between two systems over the same cases.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// The mean of the second minus the mean of the first.
    pub mean: f64,
    /// Interval of that mean.
    pub interval: Interval,
}

/// The arithmetic mean; `None` for no values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The nearest-rank percentile, always one of the values: number ⌈p/100·n⌉ of them in ascending order, the
/// first for `p` ≤ 0 and the last for `p` ≥ 100. `None` for no values.
///
/// ```
/// use rankgate::metrics::stats::percentile;
/// assert_eq!(percentile(&[40.0, 15.0, 50.0, 20.0, 35.0], 30.0), Some(20.0));
/// assert_eq!(percentile(&[1.0, 2.0], 50.0), Some(1.0));
/// ```
pub fn percentile(values: &[f64], p: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    at_percentile(&sorted, p)
}

fn at_percentile(sorted: &[f64], p: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    // A negative number becomes 0 in the cast.
    let rank = (p / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1).min(last)).copied()
}

/// A percentile bootstrap interval of the mean (Efron 1979): the middle `level` of the means of `resamples`
/// samples, each drawn from `values` with replacement.
///
/// `None` for no values, no resamples, or a level outside (0, 1). One value, or equal ones, give an interval
/// of no width: it says nothing then.
///
/// ```
/// use rankgate::metrics::stats::bootstrap_mean_ci;
/// let interval = bootstrap_mean_ci(&[1.0, 0.0, 1.0, 1.0], 0.95, 2000, 7).expect("has values");
/// assert!(interval.low <= 0.75 && 0.75 <= interval.high);
/// ```
pub fn bootstrap_mean_ci(values: &[f64], level: f64, resamples: usize, seed: u64) -> Option<Interval> {
    if values.is_empty() || resamples == 0 || !(level > 0.0 && level < 1.0) {
        return None;
    }
    let mut random = SplitMix(seed);
    let mut means: Vec<f64> = (0..resamples)
        .map(|_| {
            let sum: f64 = values.iter().map(|_| values[random.below(values.len())]).sum();
            sum / values.len() as f64
        })
        .collect();
    means.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - level) / 2.0 * 100.0;
    Some(Interval { low: at_percentile(&means, tail)?, high: at_percentile(&means, 100.0 - tail)? })
}

/// How much `after` is above `before`, case by case, with a bootstrap interval of the mean difference. An
/// interval that excludes 0 speaks for a real change, with some twenty cases or more; for few, ask
/// [`randomisation_p`](super::significance::randomisation_p). The pairing removes what the cases differ by among themselves.
///
/// `None` when the two differ in length, and where [`bootstrap_mean_ci`] has none.
///
/// ```
/// use rankgate::metrics::stats::paired_difference;
/// let difference = paired_difference(&[0.5, 0.2, 0.9], &[0.6, 0.3, 1.0], 0.95, 1000, 7).expect("is paired");
/// assert!((difference.mean - 0.1).abs() < 1e-9 && difference.interval.low > 0.0);
/// ```
pub fn paired_difference(
    before: &[f64],
    after: &[f64],
    level: f64,
    resamples: usize,
    seed: u64,
) -> Option<Difference> {
    if before.len() != after.len() {
        return None;
    }
    let differences: Vec<f64> = before.iter().zip(after).map(|(before, after)| after - before).collect();
    let interval = bootstrap_mean_ci(&differences, level, resamples, seed)?;
    Some(Difference { mean: mean(&differences)?, interval })
}

/// The standard deviation of a sample, with n − 1 below the line; `None` for fewer than two values.
///
/// ```
/// assert_eq!(rankgate::metrics::stats::standard_deviation(&[1.0, 3.0, 5.0]), Some(2.0));
/// ```
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    let centre = mean(values).filter(|_| values.len() > 1)?;
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// The score interval of a share, `successes` of `n` (Wilson 1927): right for few cases and for shares near 0
/// or 1, where the bootstrap has no width.
///
/// `None` when `n` is 0 or less than `successes`, or for a level outside (0, 1).
///
/// ```
/// use rankgate::metrics::stats::wilson_interval;
/// let interval = wilson_interval(10, 10, 0.95).expect("has cases");
/// assert!((interval.low - 0.7225).abs() < 1e-4 && interval.high == 1.0);
/// ```
pub fn wilson_interval(successes: usize, n: usize, level: f64) -> Option<Interval> {
    if n == 0 || successes > n || !(level > 0.0 && level < 1.0) {
        return None;
    }
    let (z, share, n) = (normal_quantile(0.5 + level / 2.0), successes as f64 / n as f64, n as f64);
    let centre = share + z * z / (2.0 * n);
    let half = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z * z / n;
    Some(Interval { low: ((centre - half) / scale).max(0.0), high: ((centre + half) / scale).min(1.0) })
}

/// The value that a standard normal variable stays below with probability `p`, for 0.5 ≤ `p` < 1.
pub(super) fn normal_quantile(p: f64) -> f64 {
    let (mut low, mut high) = (0.0, 9.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if normal_cdf(middle) < p { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// Marsaglia's series for the normal distribution (Journal of Statistical Software, 2004), for 0 ≤ `x` ≤ 9.
fn normal_cdf(x: f64) -> f64 {
    let (mut term, mut sum, mut odd) = (x, x, 1.0);
    while term > sum * f64::EPSILON {
        odd += 2.0;
        term *= x * x / odd;
        sum += term;
    }
    0.5 + sum * (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

/// Steele, Lea and Flood's generator (2014): one number of state, good enough to draw samples.
pub(super) struct SplitMix(pub(super) u64);

impl SplitMix {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`; the bias of the multiplication is under n/2⁶⁴.
    fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_gives_the_published_sequence() {
        // First outputs of the reference implementation for seed 1234567.
        let mut random = SplitMix(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (p, z) in [(0.5, 0.0), (0.95, 1.644_853_627), (0.975, 1.959_963_985), (0.995, 2.575_829_304)] {
            assert!((normal_quantile(p) - z).abs() < 1e-8, "{p}");
        }
    }

    #[test]
    fn percentiles_are_nearest_ranks() {
        let values = [5.0, 1.0, 4.0, 2.0, 3.0];
        let found: Vec<_> = [0.0, 20.0, 20.1, 95.0, 100.0, 300.0, -5.0, f64::NAN]
            .map(|p| percentile(&values, p).unwrap_or(-1.0))
            .to_vec();
        assert_eq!(found, [1.0, 1.0, 2.0, 5.0, 5.0, 5.0, 1.0, 1.0]);
        assert_eq!(percentile(&[], 50.0), None);
    }

    #[test]
    fn a_bootstrap_interval_is_near_the_normal_one_and_repeats() {
        let values: Vec<f64> = (0..400).map(|i| f64::from(i % 2)).collect();
        let interval = bootstrap_mean_ci(&values, 0.95, 4000, 1).expect("has values");
        // Standard error 0.5/√400 = 0.025.
        assert!(
            (interval.low - 0.451).abs() < 0.005 && (interval.high - 0.549).abs() < 0.005,
            "{interval:?}"
        );
        assert_eq!(bootstrap_mean_ci(&values, 0.95, 4000, 1), Some(interval));
        assert_ne!(bootstrap_mean_ci(&values, 0.95, 4000, 2), Some(interval));
    }

    #[test]
    fn what_cannot_be_said_is_none() {
        assert_eq!(bootstrap_mean_ci(&[], 0.95, 100, 1), None);
        assert_eq!(bootstrap_mean_ci(&[1.0], 1.0, 100, 1), None);
        assert_eq!(paired_difference(&[1.0], &[1.0, 2.0], 0.95, 100, 1), None);
        assert_eq!(wilson_interval(0, 0, 0.95), None);
        assert_eq!(wilson_interval(3, 2, 0.95), None);
        assert_eq!(mean(&[]), None);
    }

    #[test]
    fn wilson_agrees_with_a_worked_example() {
        // 8 of 10: (0.4902, 0.9433), Brown, Cai and DasGupta's formula by hand.
        let interval = wilson_interval(8, 10, 0.95).expect("has cases");
        assert!(
            (interval.low - 0.4902).abs() < 1e-4 && (interval.high - 0.9433).abs() < 1e-4,
            "{interval:?}"
        );
    }
}
