//! Ranking metrics that agree with `trec_eval` 10, and statistics over their values.
//!
//! [`evaluate`] measures a run file. For a single ranking there is one function a metric, over docids and
//! [`Judgments`]:
//!
//! ```
//! use rankgate::metrics::{ndcg_at, recall_at};
//!
//! let judgments = [("guide".to_string(), 2), ("faq".to_string(), 1)].into();
//! let ranking = ["faq", "news", "guide"];
//! assert_eq!(recall_at(1, ranking, &judgments), Some(0.5));
//! // Gains 1, 0, 2 at discounts 1, log2(3), 2; ideally 2, 1.
//! let expected = (1.0 + 2.0 / 2.0) / (2.0 + 1.0 / 3f64.log2());
//! assert!((ndcg_at(3, ranking, &judgments).expect("is defined") - expected).abs() < 1e-12);
//! ```
//!
//! The same three rules hold for all of them. A document is relevant from grade 1. A document that comes
//! again is passed over, so that ranks count distinct documents. Where nothing is relevant no metric says
//! anything, and the result is `None`: leave such a query out of a mean. (`trec_eval` counts it as 0; so does
//! [`evaluate`].)

use crate::corpus::Judgments;

pub mod agreement;
mod evaluate;
mod formula;
mod judged;
mod measure;
pub mod significance;
mod similarity;
pub mod stats;

pub use evaluate::{Evaluation, Options, REPORT_VERSION, Report, Value, evaluate, schema};
pub use measure::Measures;
pub use similarity::{jaccard, rank_biased_overlap, same_top1};

use judged::{Judge, Judged, View};

/// Hands the judged form of a ranking to `of`; `None` when nothing is relevant.
fn score<'a>(
    ranking: impl IntoIterator<Item = &'a str>,
    judgments: &'a Judgments,
    of: impl FnOnce(&Judged) -> f64,
) -> Option<f64> {
    let mut judge = Judge::default();
    let judged = judge.judge(ranking, judgments, View::default());
    (judged.num_relevant > 0).then(|| of(judged))
}

/// Recall: the share of relevant documents that are among the first `k`. `recall_k` of `trec_eval`.
pub fn recall_at<'a>(
    k: usize,
    ranking: impl IntoIterator<Item = &'a str>,
    judgments: &'a Judgments,
) -> Option<f64> {
    score(ranking, judgments, |judged| formula::recall(judged, k))
}

/// Precision: the relevant ones among the first `k`, divided by `k` even if fewer were retrieved; 0 for `k` =
/// 0. `P_k` of `trec_eval`.
pub fn precision_at<'a>(
    k: usize,
    ranking: impl IntoIterator<Item = &'a str>,
    judgments: &'a Judgments,
) -> Option<f64> {
    score(ranking, judgments, |judged| formula::precision(judged, k))
}

/// The harmonic mean of precision and recall at `k`, 0 when both are (van Rijsbergen 1979).
pub fn f1_at<'a>(
    k: usize,
    ranking: impl IntoIterator<Item = &'a str>,
    judgments: &'a Judgments,
) -> Option<f64> {
    score(ranking, judgments, |judged| {
        let (p, r) = (formula::precision(judged, k), formula::recall(judged, k));
        if p + r > 0.0 { 2.0 * p * r / (p + r) } else { 0.0 }
    })
}

/// Whether a relevant document is among the first `k`: 1 or 0. `success_k` of `trec_eval`.
pub fn success_at<'a>(
    k: usize,
    ranking: impl IntoIterator<Item = &'a str>,
    judgments: &'a Judgments,
) -> Option<f64> {
    score(ranking, judgments, |judged| formula::success(judged, k))
}

/// One over the rank of the first relevant document, 0 when none was retrieved. `recip_rank` of `trec_eval`.
///
/// It looks at the whole ranking; give it `ranking.take(10)` for MRR@10.
pub fn reciprocal_rank<'a>(
    ranking: impl IntoIterator<Item = &'a str>,
    judgments: &'a Judgments,
) -> Option<f64> {
    score(ranking, judgments, formula::reciprocal_rank)
}

/// The mean, over all relevant documents, of precision at their ranks, 0 for those not retrieved. `map` of
/// `trec_eval`.
///
/// ```
/// let judgments = [("a".to_string(), 1), ("b".to_string(), 1)].into();
/// // Relevant at ranks 1 and 4: (1/1 + 2/4) / 2.
/// assert_eq!(rankgate::metrics::average_precision(["a", "x", "y", "b"], &judgments), Some(0.75));
/// ```
pub fn average_precision<'a>(
    ranking: impl IntoIterator<Item = &'a str>,
    judgments: &'a Judgments,
) -> Option<f64> {
    score(ranking, judgments, formula::average_precision)
}

/// Normalised discounted cumulative gain of the first `k`: gain = grade, discount log2(rank + 1), divided by
/// the same sum for the best order of all judged documents (Järvelin and Kekäläinen 2002). `ndcg_cut_k` of
/// `trec_eval`.
pub fn ndcg_at<'a>(
    k: usize,
    ranking: impl IntoIterator<Item = &'a str>,
    judgments: &'a Judgments,
) -> Option<f64> {
    score(ranking, judgments, |judged| formula::ndcg_cut(judged, k))
}

/// The same with gain = 2^grade − 1, which sets high grades further apart (Burges et al. 2005). Grades above
/// 1000 count as 1000. `trec_eval` has no such measure; with grades 0 and 1 it equals [`ndcg_at`].
pub fn ndcg_exp_at<'a>(
    k: usize,
    ranking: impl IntoIterator<Item = &'a str>,
    judgments: &'a Judgments,
) -> Option<f64> {
    let gain = |grade: i64| f64::from(grade.min(1000) as i32).exp2() - 1.0;
    score(ranking, judgments, |judged| formula::ndcg_cut_with(judged, k, gain))
}

/// The share of the first `k` places that hold a document somebody judged, whatever the grade. A low value
/// means that the other metrics rest on guesses: what nobody judged counts as not relevant.
///
/// Empty places of a short ranking count as judged; 1 for `k` = 0. 1 − `unj_k` of `trec_eval`.
pub fn judged_at<'a>(
    k: usize,
    ranking: impl IntoIterator<Item = &'a str>,
    judgments: &'a Judgments,
) -> Option<f64> {
    score(ranking, judgments, |judged| 1.0 - formula::unjudged(judged, k))
}
