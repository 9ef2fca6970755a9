//! Statistics over the values of a metric: means, percentiles and intervals.
//!
//! Resampling is seeded, so the same values give the same interval on every machine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::significance::paired_randomisation;

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
/// [`randomisation_p`]. The pairing removes what the cases differ by among themselves.
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

/// How likely a mean difference at least this far from 0, on either side, is when each case could as well have had
/// its two values the other way round: Fisher's randomisation test for pairs, as Smucker, Allan and Carterette
/// (CIKM 2007) recommend it for retrieval. It holds for few cases, where a bootstrap interval is too narrow; fewer
/// than six cases that differ never reach 0.05.
///
/// Exact up to 16 cases that differ; beyond, from 20,000 seeded draws with the observed one counted among them
/// (Phipson and Smyth 2010). `None` when the two differ in length, are empty, or hold what is no finite number.
///
/// ```
/// use rankgate::metrics::stats::randomisation_p;
/// // Of the 2⁶ ways to assign the signs, two are as extreme as all alike.
/// let p = randomisation_p(&[0.0; 6], &[0.1; 6], 7).expect("is paired");
/// assert!((p - 2.0 / 64.0).abs() < 1e-12);
/// ```
pub fn randomisation_p(before: &[f64], after: &[f64], seed: u64) -> Option<f64> {
    const DRAWS: usize = 20_000;
    if before.len() != after.len() {
        return None;
    }
    let differences: Vec<f64> = before.iter().zip(after).map(|(before, after)| after - before).collect();
    Some(paired_randomisation(&differences, DRAWS, seed)?.two_sided)
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
    fn the_randomisation_test_counts_assignments() {
        let p = |after: &[f64]| randomisation_p(&vec![0.0; after.len()], after, 7).expect("is paired");
        // Sums of ±1 ±2 ±3 with |sum| ≥ 4 are ±6 and ±4.
        assert_eq!(p(&[1.0, 2.0, 3.0]), 2.0 / 8.0);
        assert_eq!(p(&[-1.0, 2.0, 3.0]), 4.0 / 8.0);
        assert_eq!(p(&[0.0, 0.0, 1.0, 2.0, 3.0, 0.0]), 2.0 / 8.0, "ties say nothing");
        assert_eq!(p(&[0.0, 0.0]), 1.0);
        // 0.1 + 0.2 and 0.3 are one sum on paper.
        assert_eq!(p(&[0.1, 0.2, -0.3]), 1.0);
        assert_eq!(randomisation_p(&[], &[], 7), None);
        assert_eq!(randomisation_p(&[0.0], &[f64::NAN], 7), None);
    }

    #[test]
    fn drawn_and_counted_p_values_agree() {
        // 17 differences are drawn; the 16 that matter would have been counted.
        let matter: Vec<f64> = (1..=16).map(|i| f64::from(i) * if i % 4 == 0 { -0.1 } else { 0.1 }).collect();
        let drawn: Vec<f64> = matter.iter().copied().chain([1e-6]).collect();
        let p = |after: &[f64]| randomisation_p(&vec![0.0; after.len()], after, 7).expect("is paired");
        assert!((p(&matter) - p(&drawn)).abs() < 0.01, "{} {}", p(&matter), p(&drawn));
        assert_eq!(p(&drawn), p(&drawn));
        assert!(p(&[0.5; 100]) < 1e-4 && p(&[0.5; 100]) > 0.0);
    }

    /// Where both are the same, 5 of 100 comparisons are significant, however few cases there are; intervals of a
    /// bootstrap exclude 0 more often.
    #[test]
    fn the_randomisation_test_holds_its_level_for_few_cases() {
        let mut random = SplitMix(11);
        let (mut significant, mut excluded) = (0, 0);
        for _ in 0..1000 {
            let after: Vec<f64> = (0..8).map(|_| (random.next() % 2001) as f64 / 1000.0 - 1.0).collect();
            let before = [0.0; 8];
            significant += u32::from(randomisation_p(&before, &after, 7).is_some_and(|p| p < 0.05));
            let interval = paired_difference(&before, &after, 0.95, 300, 7).expect("is paired").interval;
            excluded += u32::from(interval.low > 0.0 || interval.high < 0.0);
        }
        assert!((20..=60).contains(&significant), "{significant} of 1000");
        assert!(excluded > significant, "{excluded} of 1000");
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
