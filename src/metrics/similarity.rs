//! How alike two rankings are, where nobody says which is right.
//!
//! A document that a ranking repeats counts where it stands first.

use std::collections::HashSet;

/// The share of common documents: |A ∩ B| / |A ∪ B| (Jaccard 1901). Order plays no part; two empty rankings are
/// equal, 1.
///
/// ```
/// assert_eq!(rankgate::metrics::jaccard(["a", "b"], ["a", "c"]), 1.0 / 3.0);
/// ```
pub fn jaccard<'a>(
    first: impl IntoIterator<Item = &'a str>,
    second: impl IntoIterator<Item = &'a str>,
) -> f64 {
    let first: HashSet<&str> = first.into_iter().collect();
    let second: HashSet<&str> = second.into_iter().collect();
    let common = first.intersection(&second).count();
    let all = first.len() + second.len() - common;
    if all == 0 { 1.0 } else { common as f64 / all as f64 }
}

/// Whether both rankings begin with the same document, or both are empty.
///
/// ```
/// assert!(rankgate::metrics::same_top1(["a", "b"], ["a"]) && rankgate::metrics::same_top1([], []));
/// ```
pub fn same_top1<'a>(
    first: impl IntoIterator<Item = &'a str>,
    second: impl IntoIterator<Item = &'a str>,
) -> bool {
    first.into_iter().next() == second.into_iter().next()
}

/// Rank-biased overlap, extrapolated: RBO_EXT of Webber, Moffat and Zobel, "A similarity measure for indefinite
/// rankings" (2010), equation 32, for rankings of any lengths. 1 for equal rankings and for two empty ones, 0 where
/// nothing is common or one is empty.
///
/// `p` in (0, 1) is the chance that a reader goes on to the next rank: with 0.9 the first ten ranks carry 86 % of
/// the weight. `None` for any other `p`.
///
/// ```
/// use rankgate::metrics::rank_biased_overlap;
/// assert_eq!(rank_biased_overlap(["a", "b"], ["c"], 0.9), Some(0.0));
/// // Agreement 0 at depth 1, 1 at depth 2 and beyond: p.
/// let swapped = rank_biased_overlap(["a", "b"], ["b", "a"], 0.9).expect("0.9 is in range");
/// assert!((swapped - 0.9).abs() < 1e-12);
/// ```
pub fn rank_biased_overlap<'a>(
    first: impl IntoIterator<Item = &'a str>,
    second: impl IntoIterator<Item = &'a str>,
    p: f64,
) -> Option<f64> {
    if !(p > 0.0 && p < 1.0) {
        return None;
    }
    let (first, second) = (distinct(first), distinct(second));
    let (long, short) = if first.len() >= second.len() { (first, second) } else { (second, first) };
    if short.is_empty() {
        return Some(if long.is_empty() { 1.0 } else { 0.0 });
    }
    let s = short.len() as f64;
    let mut seen = HashSet::new();
    // Common documents at a depth; those at the depth of the shorter one; the sum of the two series.
    let (mut common, mut common_at_s, mut sum, mut weight) = (0.0, 0.0, 0.0, 1.0);
    for (index, document) in long.iter().enumerate() {
        let depth = (index + 1) as f64;
        let other = short.get(index);
        if other == Some(document) {
            common += 1.0;
        } else {
            for document in [Some(document), other].into_iter().flatten() {
                common += f64::from(u8::from(!seen.insert(*document)));
            }
        }
        if other.is_some() {
            common_at_s = common;
        }
        weight *= p;
        sum += common / depth * weight;
        if depth > s {
            sum += common_at_s * (depth - s) / (s * depth) * weight;
        }
    }
    let tail = (common - common_at_s) / long.len() as f64 + common_at_s / s;
    Some((1.0 - p) / p * sum + tail * weight)
}

fn distinct<'a>(ranking: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = HashSet::new();
    ranking.into_iter().filter(|document| seen.insert(*document)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rbo(first: &str, second: &str) -> f64 {
        rank_biased_overlap(first.split_terminator(' '), second.split_terminator(' '), 0.9)
            .expect("0.9 is in range")
    }

    fn near(found: f64, wanted: f64) {
        assert!((found - wanted).abs() < 1e-9, "{found} is not {wanted}");
    }

    #[test]
    fn overlap_of_even_lists_by_hand() {
        near(rbo("a b c", "a b c"), 1.0);
        near(rbo("a b", "c d"), 0.0);
        // Agreements 1, 1/2, 2/3: 0.1 (1 + 0.9/2 + 0.81·2/3) + 0.729·2/3 = 0.199 + 0.486.
        near(rbo("a b c", "a c d"), 0.685);
        // Agreements 0, 1/2, 2/3: 0.1 (0.45 + 0.54) + 0.486.
        near(rbo("a b c", "b d a"), 0.585);
    }

    #[test]
    fn overlap_of_uneven_lists_by_hand() {
        // s = 1, l = 3, X = 1, 1, 1. First series 0.1 (1 + 0.9/2 + 0.81/3) = 0.172; second 0.1 (0.9·1/2 + 0.81·2/3)
        // = 0.099; tail (0/3 + 1)·0.729. Sum 1: the short list agrees as far as it goes.
        near(rbo("a", "a b c"), 1.0);
        // s = 2, l = 4, X = 0, 1, 2, 2. First series 0.1 (0 + 0.9/2 + 0.81·2/3 + 0.729·2/4) = 0.13545; second
        // 0.1 (0.81·1/(2·3) + 0.729·2/(2·4)) = 0.031725; tail ((2 − 1)/4 + 1/2)·0.6561 = 0.492075.
        near(rbo("a b", "c a b d"), 0.65925);
        near(rbo("c a b d", "a b"), 0.65925);
    }

    #[test]
    fn nothing_repetitions_and_a_wrong_p() {
        near(rbo("", ""), 1.0);
        near(rbo("", "a"), 0.0);
        near(rbo("a a b", "a b b"), 1.0);
        assert_eq!(jaccard([], []), 1.0);
        assert_eq!(jaccard(["a"], []), 0.0);
        assert_eq!(jaccard(["a", "a", "b"], ["b", "a"]), 1.0);
        assert!(!same_top1(["a"], []) && !same_top1(["a", "b"], ["b", "a"]));
        for p in [0.0, 1.0, -1.0, f64::NAN] {
            assert_eq!(rank_biased_overlap(["a"], ["a"], p), None);
        }
    }

    proptest! {
        #[test]
        fn overlap_is_symmetric_and_a_share(
            first in proptest::collection::vec("[a-h]", 0..10), second in proptest::collection::vec("[a-h]", 0..10),
            p in 0.01f64..0.99,
        ) {
            let of = |a: &[String], b: &[String]| {
                rank_biased_overlap(a.iter().map(String::as_str), b.iter().map(String::as_str), p).expect("p is in range")
            };
            let found = of(&first, &second);
            prop_assert!((found - of(&second, &first)).abs() < 1e-12);
            prop_assert!((-1e-12..=1.0 + 1e-12).contains(&found), "{}", found);
            prop_assert!((of(&first, &first) - 1.0).abs() < 1e-9);
        }
    }
}
