//! Whether a difference between paired values is more than chance, and how large one must be to be seen.
//!
//! Sampling is seeded, so the same values give the same answer on every machine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::stats::{SplitMix, mean, normal_quantile, standard_deviation};

/// As many non-zero differences are tested over all their signs; more are sampled.
const EXACT: usize = 16;

/// The answer of [`paired_randomisation`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Randomisation {
    /// The mean of the differences.
    pub mean: f64,
    /// The chance of a mean at least as far from 0, if signs were random.
    pub two_sided: f64,
    /// The chance of a mean at least as low.
    pub lower: f64,
    /// The chance of a mean at least as high.
    pub higher: f64,
    /// Whether all signs were tried, rather than a sample of them.
    pub exact: bool,
}

/// Fisher's randomisation test of paired `differences` (Fisher 1935; for retrieval: Smucker, Allan and Carterette
/// 2007): if the two sides were alike, each difference could as well have the other sign, so the mean that was
/// observed is compared with the means under other signs.
///
/// Up to 16 non-zero differences are tried with all signs, exactly. More are tried with `samples` random signs, and
/// the p-value is (hits + 1) / (samples + 1), so that it is never 0 (Davison and Hinkley 1997).
///
/// `None` for no differences and for any that is not finite.
///
/// ```
/// use rankgate::metrics::significance::paired_randomisation;
/// // Of the eight sign patterns only the observed one reaches a sum of 6, and its mirror −6.
/// let test = paired_randomisation(&[1.0, 2.0, 3.0], 10_000, 7).expect("has values");
/// assert_eq!((test.higher, test.two_sided, test.lower), (1.0 / 8.0, 2.0 / 8.0, 1.0));
/// ```
pub fn paired_randomisation(differences: &[f64], samples: usize, seed: u64) -> Option<Randomisation> {
    let mean = mean(differences)?;
    if differences.iter().any(|value| !value.is_finite()) {
        return None;
    }
    // A zero has no sign: it leaves every sum as it is.
    let sizes: Vec<f64> = differences.iter().map(|value| value.abs()).filter(|size| *size > 0.0).collect();
    let observed: f64 = differences.iter().sum();
    // Sums that differ by rounding alone are equal.
    let slack = 1e-12 * sizes.iter().sum::<f64>();
    let mut counts = Counts { observed, slack, two_sided: 0, lower: 0, higher: 0 };
    let exact = sizes.len() <= EXACT;
    let (extra, total) = if exact {
        let patterns = 1u64 << sizes.len();
        (0..patterns).for_each(|signs| counts.add(&sizes, |index| signs >> index & 1 == 1));
        (0, patterns)
    } else {
        let mut random = SplitMix(seed);
        for _ in 0..samples {
            let mut bits = 0;
            counts.add(&sizes, |index| {
                if index % 64 == 0 {
                    bits = random.next();
                }
                bits >> (index % 64) & 1 == 1
            });
        }
        (1, samples as u64)
    };
    let share = |hits: u64| (hits + extra) as f64 / (total + extra) as f64;
    Some(Randomisation {
        mean,
        two_sided: share(counts.two_sided),
        lower: share(counts.lower),
        higher: share(counts.higher),
        exact,
    })
}

struct Counts {
    observed: f64,
    slack: f64,
    two_sided: u64,
    lower: u64,
    higher: u64,
}

impl Counts {
    fn add(&mut self, sizes: &[f64], mut positive: impl FnMut(usize) -> bool) {
        let signed = |(index, size): (usize, &f64)| if positive(index) { *size } else { -size };
        let sum: f64 = sizes.iter().enumerate().map(signed).sum();
        self.two_sided += u64::from(sum.abs() >= self.observed.abs() - self.slack);
        self.lower += u64::from(sum <= self.observed + self.slack);
        self.higher += u64::from(sum >= self.observed - self.slack);
    }
}

/// P-values raised so that the chance of any false alarm among them stays what it would be for one (Holm 1979), in
/// the order given: the i-th smallest of n is multiplied by n + 1 − i, and none is less than a smaller one became.
///
/// ```
/// use rankgate::metrics::significance::holm;
/// assert_eq!(holm(&[0.01, 0.04, 0.03]), [0.03, 0.06, 0.06]);
/// ```
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut least: f64 = 0.0;
    for (place, index) in order.into_iter().enumerate() {
        least = least.max((p_values[index] * (p_values.len() - place) as f64).min(1.0));
        adjusted[index] = least;
    }
    adjusted
}

/// The smallest true mean difference that a one-sided test at level `alpha` would find with probability `power`:
/// (z₁₋ₐ + z_power) · s / √n, with s the standard deviation of the differences (Bloom 1995, "Minimum detectable
/// effects"; normal approximation). In the unit of the differences.
///
/// `None` for fewer than two differences, and unless 0 < `alpha` ≤ 0.5 ≤ `power` < 1. It is 0 when all differences
/// are equal: nothing is known of their spread then.
///
/// ```
/// use rankgate::metrics::significance::minimum_detectable_effect;
/// // s = 0.1, n = 4: (1.6449 + 0.8416) · 0.1 / 2.
/// let effect = minimum_detectable_effect(&[0.1, -0.1, 0.1, -0.1].map(|d: f64| d * 0.75f64.sqrt()), 0.05, 0.8);
/// assert!((effect.expect("has spread") - 0.12432).abs() < 1e-4);
/// ```
pub fn minimum_detectable_effect(differences: &[f64], alpha: f64, power: f64) -> Option<f64> {
    let in_range = alpha > 0.0 && alpha <= 0.5 && (0.5..1.0).contains(&power);
    if !in_range {
        return None;
    }
    let error = standard_deviation(differences)? / (differences.len() as f64).sqrt();
    Some((normal_quantile(1.0 - alpha) + normal_quantile(power)) * error)
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
/// use rankgate::metrics::significance::randomisation_p;
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

#[cfg(test)]
mod tests {
    use super::super::stats::paired_difference;
    use super::*;

    fn test(differences: &[f64]) -> Randomisation {
        paired_randomisation(differences, 10_000, 1).expect("has finite values")
    }

    #[test]
    fn three_differences_by_hand() {
        // Sums of ±1 ±2 ±3: −6, −4, −2, 0, 0, 2, 4, 6. Observed 1 − 2 + 3 = 2.
        let found = test(&[1.0, -2.0, 3.0]);
        assert_eq!((found.higher, found.lower, found.two_sided), (3.0 / 8.0, 6.0 / 8.0, 6.0 / 8.0));
        assert!(found.exact && (found.mean - 2.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn zeros_change_nothing_but_the_mean() {
        let (with, without) = (test(&[1.0, 0.0, -2.0, 3.0, 0.0]), test(&[1.0, -2.0, 3.0]));
        assert_eq!((with.lower, with.two_sided), (without.lower, without.two_sided));
        let none = test(&[0.0; 30]);
        assert_eq!((none.lower, none.two_sided, none.higher), (1.0, 1.0, 1.0));
    }

    #[test]
    fn sums_that_are_equal_but_for_rounding_count_as_equal() {
        // All 2^10 sums of ±0.1; the observed one has six minus signs. P(at most 4 plus) = 386/1024.
        let found = test(&[0.1, 0.1, 0.1, 0.1, -0.1, -0.1, -0.1, -0.1, -0.1, -0.1]);
        assert_eq!(found.lower, 386.0 / 1024.0);
    }

    #[test]
    fn a_sample_is_near_the_binomial_and_repeats() {
        // 20 differences, five positive: P(at most 5 of 20) = 21700/2^20 = 0.020695.
        let differences: Vec<f64> = (0..20).map(|i| if i < 5 { 1.0 } else { -1.0 }).collect();
        let found = test(&differences);
        assert!(!found.exact && (found.lower - 0.020_695).abs() < 0.005, "{found:?}");
        assert_eq!(test(&differences), found);
        assert!(test(&[-1.0; 200]).lower == 1.0 / 10_001.0, "never 0");
    }

    #[test]
    fn holm_keeps_the_order_of_the_values() {
        assert_eq!(holm(&[0.5, 0.001, 0.2, 0.02]), [0.5, 0.004, 0.4, 0.06]);
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert_eq!(holm(&[]), [0.0; 0]);
    }

    #[test]
    fn what_cannot_be_said_is_none() {
        assert_eq!(paired_randomisation(&[], 100, 1), None);
        assert_eq!(paired_randomisation(&[1.0, f64::NAN], 100, 1), None);
        assert_eq!(minimum_detectable_effect(&[1.0], 0.05, 0.8), None);
        assert_eq!(minimum_detectable_effect(&[1.0, 2.0], 0.0, 0.8), None);
        assert_eq!(minimum_detectable_effect(&[1.0, 1.0], 0.05, 0.8), Some(0.0));
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
}
