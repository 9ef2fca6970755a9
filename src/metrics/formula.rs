//! The formulas of `trec_eval` 10, over a [`Judged`] ranking.
//!
//! Sums run in the order in which `trec_eval` adds, so that results agree to the last bit. R is the number of
//! relevant documents, n the number retrieved, r(k) the number of relevant ones among the first k.

use std::sync::LazyLock;

use super::judged::Judged;

/// What a geometric mean takes for a zero.
const LEAST: f64 = 0.00001;
/// Smooths the two quotients of infAP.
const EPSILON: f64 = 0.00001;

/// Logarithm to base two of a whole number.
fn log2(n: usize) -> f64 {
    static TABLE: LazyLock<Vec<f64>> = LazyLock::new(|| (0..2048).map(|n| f64::from(n).log2()).collect());
    TABLE.get(n).copied().unwrap_or_else(|| (n as f64).log2())
}

/// The sum of `terms`, in their order. (The standard sum of nothing is minus zero, which would be printed.)
fn sum(terms: impl Iterator<Item = f64>) -> f64 {
    terms.fold(0.0, |sum, term| sum + term)
}

/// a / b, and 0 when b is 0.
fn ratio(a: usize, b: usize) -> f64 {
    if b == 0 { 0.0 } else { a as f64 / b as f64 }
}

/// `sum` / R, and 0 when R is 0.
fn per_relevant(judged: &Judged, sum: f64) -> f64 {
    if judged.num_relevant == 0 { 0.0 } else { sum / judged.num_relevant as f64 }
}

/// Average precision: Σ r(k)/k over the ranks k of relevant documents, divided by R.
pub(super) fn average_precision(judged: &Judged) -> f64 {
    average_precision_cut(judged, usize::MAX)
}

/// The same sum over the first `k` documents only, still divided by R.
pub(super) fn average_precision_cut(judged: &Judged, k: usize) -> f64 {
    let ranks = judged.relevant.iter().take_while(|rank| **rank <= k);
    per_relevant(judged, sum(ranks.zip(1..).map(|(rank, hits)| ratio(hits, *rank))))
}

/// Natural logarithm of average precision, for a geometric mean.
pub(super) fn log_average_precision(judged: &Judged) -> f64 {
    average_precision(judged).max(LEAST).ln()
}

/// r(R)/R.
pub(super) fn r_precision(judged: &Judged) -> f64 {
    ratio(judged.hits(judged.num_relevant), judged.num_relevant)
}

/// Precision at the multiple `x` of R: r(c)/c with c = ⌊x·R + 0.9⌋.
pub(super) fn r_precision_multiple(judged: &Judged, x: f64) -> f64 {
    let cut = (x * judged.num_relevant as f64 + 0.9) as usize;
    ratio(judged.hits(cut), cut)
}

/// Binary preference (Buckley and Voorhees, SIGIR 2004): how seldom judged non-relevant documents come first.
pub(super) fn bpref(judged: &Judged) -> f64 {
    let below = judged.levels.iter().filter(|(grade, _)| *grade < judged.level);
    let num_nonrelevant: usize = below.map(|(_, count)| count).sum();
    let bound = num_nonrelevant.min(judged.num_relevant);
    let (mut sum, mut nonrelevant) = (0.0, 0);
    for found in judged.found.iter().filter(|found| found.grade >= 0) {
        if found.grade < judged.level {
            nonrelevant += 1;
        } else if nonrelevant > 0 {
            sum += 1.0 - ratio(nonrelevant.min(judged.num_relevant), bound);
        } else {
            sum += 1.0;
        }
    }
    per_relevant(judged, sum)
}

/// Natural logarithm of bpref, for a geometric mean.
pub(super) fn log_bpref(judged: &Judged) -> f64 {
    bpref(judged).max(LEAST).ln()
}

/// One over the rank of the first relevant document.
pub(super) fn reciprocal_rank(judged: &Judged) -> f64 {
    judged.relevant.first().map_or(0.0, |rank| ratio(1, *rank))
}

/// Interpolated precision at recall `x`: the best r(k)/k at or behind the relevant document number x·R,
/// rounded half up. (Version 9 took ⌊x·R + 0.9⌋.)
pub(super) fn interpolated_precision(judged: &Judged, x: f64) -> f64 {
    let needed = ((x * judged.num_relevant as f64).round() as usize).max(1);
    let behind = judged.relevant.iter().zip(1..).skip(needed - 1);
    behind.map(|(rank, hits)| ratio(hits, *rank)).fold(0.0, f64::max)
}

/// The mean of interpolated precision over `points` of recall.
pub(super) fn eleven_point_average(judged: &Judged, points: &[f64]) -> f64 {
    sum(points.iter().rev().map(|x| interpolated_precision(judged, *x))) / points.len() as f64
}

/// r(k)/k.
pub(super) fn precision(judged: &Judged, k: usize) -> f64 {
    ratio(judged.hits(k), k)
}

/// r(k)/R.
pub(super) fn recall(judged: &Judged, k: usize) -> f64 {
    ratio(judged.hits(k), judged.num_relevant)
}

/// r(k)/min(k, R).
pub(super) fn relative_precision(judged: &Judged, k: usize) -> f64 {
    ratio(judged.hits(k), k.min(judged.num_relevant))
}

/// One when the first `k` hold a relevant document.
pub(super) fn success(judged: &Judged, k: usize) -> f64 {
    f64::from(u8::from(judged.hits(k) > 0))
}

/// The share of the first `k` places that hold a document nobody judged.
pub(super) fn unjudged(judged: &Judged, k: usize) -> f64 {
    let judged_here = judged.first(k).iter().filter(|found| found.grade >= 0).count();
    ratio(k.min(judged.retrieved) - judged_here, k)
}

/// r(n)/n.
pub(super) fn set_precision(judged: &Judged) -> f64 {
    precision(judged, judged.retrieved)
}

/// r(n)/R.
pub(super) fn set_recall(judged: &Judged) -> f64 {
    recall(judged, judged.retrieved)
}

/// r(n)/min(n, R).
pub(super) fn set_relative_precision(judged: &Judged) -> f64 {
    relative_precision(judged, judged.retrieved)
}

/// Precision times recall of the set: r(n)²/(n·R).
pub(super) fn set_map(judged: &Judged) -> f64 {
    let hits = judged.relevant.len();
    ratio(hits * hits, judged.retrieved * judged.num_relevant)
}

/// (x + 1)·P·R/(x·P + R) of the set's precision P and recall R (van Rijsbergen 1979).
pub(super) fn set_f(judged: &Judged, x: &[f64]) -> f64 {
    let (p, r, x) = (set_precision(judged), set_recall(judged), x[0]);
    if p == 0.0 { 0.0 } else { (x + 1.0) * p * r / (x * p + r) }
}

/// A weighted sum of the contingency table, of a collection whose size is taken to be zero.
pub(super) fn utility(judged: &Judged, weights: &[f64]) -> f64 {
    let (hits, retrieved) = (judged.relevant.len() as f64, judged.retrieved as f64);
    let relevant = judged.num_relevant as f64;
    weights[0] * hits
        + weights[1] * (retrieved - hits)
        + weights[2] * (relevant - hits)
        + weights[3] * (hits - retrieved - relevant)
}

/// Average precision estimated from a pool of which only a sample was judged (Yilmaz and Aslam, CIKM 2006).
pub(super) fn inferred_average_precision(judged: &Judged) -> f64 {
    let (mut sum, mut relevant, mut nonrelevant, mut pooled) = (0.0, 0usize, 0usize, 0usize);
    for found in &judged.found {
        if found.grade < 0 {
            pooled += 1;
        } else if found.grade < judged.level {
            nonrelevant += 1;
        } else {
            let before = (found.rank - 1) as f64;
            if found.rank == 1 {
                sum += 1.0;
            } else {
                sum += 1.0 / (before + 1.0)
                    + (before / (before + 1.0))
                        * ((relevant + nonrelevant + pooled) as f64 / before)
                        * ((relevant as f64 + EPSILON) / ((relevant + nonrelevant) as f64 + 2.0 * EPSILON));
            }
            relevant += 1;
        }
    }
    per_relevant(judged, sum)
}

/// Σ 1/log2(2 + non-relevant documents before it) over the relevant ones, divided by R.
pub(super) fn binary_g(judged: &Judged) -> f64 {
    let ranks = judged.relevant.iter().enumerate();
    per_relevant(judged, sum(ranks.map(|(before, rank)| 1.0 / log2(rank - before + 1))))
}

/// Gains that were given in place of grades.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Gains(pub Vec<(i64, f64)>);

impl Gains {
    fn of(&self, grade: i64) -> f64 {
        let given = self.0.iter().find(|(level, _)| *level == grade);
        given.map_or(grade.max(0) as f64, |(_, gain)| *gain)
    }

    /// Each positive gain with its number of documents, best first.
    fn ideal(&self, judged: &Judged) -> Vec<(f64, usize)> {
        let mut ideal: Vec<(f64, usize)> =
            judged.levels.iter().map(|(grade, count)| (self.of(*grade), *count)).collect();
        ideal.retain(|(gain, _)| *gain > 0.0);
        ideal.sort_by(|a, b| b.0.total_cmp(&a.0));
        ideal
    }

    /// Rank and gain of the retrieved documents whose gain is not zero.
    fn found(&self, judged: &Judged) -> impl Iterator<Item = (usize, f64)> {
        judged.found.iter().map(|found| (found.rank, self.of(found.grade))).filter(|(_, gain)| *gain != 0.0)
    }
}

/// The gains of the ideal ranking, one a rank.
fn ideal_gains(ideal: &[(f64, usize)]) -> impl Iterator<Item = f64> {
    ideal.iter().flat_map(|(gain, count)| std::iter::repeat_n(*gain, *count))
}

/// Σ gain/log2(rank + 1) (Järvelin and Kekäläinen 2002).
fn discounted(gains: impl Iterator<Item = (usize, f64)>) -> f64 {
    sum(gains.map(|(rank, gain)| gain / log2(rank + 1)))
}

/// Discounted cumulative gain of the whole ranking.
pub(super) fn dcg(judged: &Judged, gains: &Gains) -> f64 {
    discounted(gains.found(judged))
}

/// Discounted cumulative gain of the best possible ranking.
pub(super) fn ideal_dcg(judged: &Judged, gains: &Gains) -> f64 {
    discounted((1..).zip(ideal_gains(&gains.ideal(judged))))
}

/// dcg over ideal dcg.
pub(super) fn ndcg(judged: &Judged, gains: &Gains) -> f64 {
    let ideal = ideal_dcg(judged, gains);
    if ideal > 0.0 { dcg(judged, gains) / ideal } else { 0.0 }
}

/// dcg over ideal dcg, both of the first `k` documents; gains are the grades.
pub(super) fn ndcg_cut(judged: &Judged, k: usize) -> f64 {
    ndcg_cut_with(judged, k, |grade| grade as f64)
}

/// The same with the gain that `gain` makes of a grade above zero. It must rise with the grade.
pub(super) fn ndcg_cut_with(judged: &Judged, k: usize, gain: impl Fn(i64) -> f64) -> f64 {
    let positive = |grade: i64| grade > 0;
    let levels: Vec<_> = judged.levels.iter().filter(|(grade, _)| positive(*grade)).copied().collect();
    let ideal = levels.iter().flat_map(|(grade, count)| std::iter::repeat_n(gain(*grade), *count));
    let ideal = discounted((1..=k).zip(ideal));
    let found = judged.first(k).iter().filter(|found| positive(found.grade));
    let actual = discounted(found.map(|found| (found.rank, gain(found.grade))));
    if ideal > 0.0 { actual / ideal } else { 0.0 }
}

/// nDCG averaged over the documents with a gain: at each one's rank, or at the end for those not retrieved.
pub(super) fn ndcg_at_relevant(judged: &Judged, gains: &Gains) -> f64 {
    let levels = gains.ideal(judged);
    let mut ideal = (1..).zip(ideal_gains(&levels)).peekable();
    let (mut dcg, mut ideal_dcg, mut sum, mut gained) = (0.0, 0.0, 0.0, 0usize);
    for (rank, gain) in gains.found(judged) {
        dcg += gain / log2(rank + 1);
        while let Some((at, best)) = ideal.next_if(|(at, _)| *at <= rank) {
            ideal_dcg += best / log2(at + 1);
        }
        if gain > 0.0 {
            sum += dcg / ideal_dcg;
            gained += 1;
        }
    }
    for (at, best) in ideal {
        ideal_dcg += best / log2(at + 1);
    }
    let total: usize = levels.iter().map(|(_, count)| count).sum();
    if total == 0 {
        return 0.0;
    }
    sum += (total - gained) as f64 * dcg / ideal_dcg;
    (sum / total as f64).max(0.0)
}

/// nDCG averaged over the ranks where the ideal gain falls, and at the end of a longer ranking.
pub(super) fn ndcg_at_levels(judged: &Judged, gains: &Gains) -> f64 {
    let levels = gains.ideal(judged);
    if judged.num_relevant == 0 || levels.is_empty() {
        return 0.0;
    }
    let mut found = gains.found(judged).peekable();
    let (mut dcg, mut ideal_dcg, mut rank, mut sum, mut points) = (0.0, 0.0, 0, 0.0, 0usize);
    for same in levels.chunk_by(|a, b| a.0 == b.0) {
        let count: usize = same.iter().map(|(_, count)| count).sum();
        for at in rank + 1..=rank + count {
            ideal_dcg += same[0].0 / log2(at + 1);
        }
        rank += count;
        while let Some((at, gain)) = found.next_if(|(at, _)| *at <= rank) {
            dcg += gain / log2(at + 1);
        }
        sum += dcg / ideal_dcg;
        points += 1;
    }
    // trec_eval steps over one document between the last fall and the end.
    if judged.retrieved > rank + 1 {
        dcg = found.fold(dcg, |dcg, (at, gain)| dcg + gain / log2(at + 1));
        sum += dcg / ideal_dcg;
        points += 1;
    }
    sum / points as f64
}

/// Σ gain/log2(2 + ideal gain so far − gain so far), divided by the ideal gain; an ideal gain below one
/// counts one.
pub(super) fn normalized_gain(judged: &Judged, gains: &Gains) -> f64 {
    let levels = gains.ideal(judged);
    let total = sum(ideal_gains(&levels));
    let mut cost = ideal_gains(&levels).map(|gain| gain.max(1.0)).chain(std::iter::repeat(1.0));
    let (mut spent, mut at, mut gained, mut g) = (0.0, 0, 0.0, 0.0);
    for (rank, gain) in gains.found(judged) {
        spent = cost.by_ref().take(rank - at).fold(spent, |spent, step| spent + step);
        at = rank;
        gained += gain;
        g += gain / (2.0 + spent - gained).log2();
    }
    if total > 0.0 { g / total } else { 0.0 }
}
