//! The metrics and the interval that the harness uses.

use crate::corpus::Judgments;

/// |relevant ∩ first k| / |relevant|.
pub fn recall_at(k: usize, docids: Vec<&str>, judgments: &Judgments) -> Option<f64> {
    Some(hits(&docids, judgments, k) / relevant(judgments)?)
}

/// |relevant ∩ first k| / k.
pub fn precision_at(k: usize, docids: Vec<&str>, judgments: &Judgments) -> Option<f64> {
    relevant(judgments)?;
    Some(hits(&docids, judgments, k) / k.max(1) as f64)
}

/// DCG / ideal DCG, gain = grade, discount log2(rank + 1).
pub fn ndcg_at(k: usize, docids: Vec<&str>, judgments: &Judgments) -> Option<f64> {
    relevant(judgments)?;
    let dcg = |grades: &mut dyn Iterator<Item = i64>| -> f64 {
        grades.take(k).enumerate().map(|(i, g)| g.max(0) as f64 / (i as f64 + 2.0).log2()).sum()
    };
    let mut ideal: Vec<i64> = judgments.values().copied().collect();
    ideal.sort_unstable_by(|a, b| b.cmp(a));
    let best = dcg(&mut ideal.into_iter());
    Some(dcg(&mut docids.iter().map(|docid| judgments.get(*docid).copied().unwrap_or(0))) / best)
}

/// 1 / rank of the first relevant document.
pub fn reciprocal_rank(docids: Vec<&str>, judgments: &Judgments) -> Option<f64> {
    relevant(judgments)?;
    let first = docids.iter().position(|docid| is_relevant(docid, judgments));
    Some(first.map_or(0.0, |i| 1.0 / (i as f64 + 1.0)))
}

/// The mean, over the relevant documents, of the precision at their ranks.
pub fn average_precision(docids: Vec<&str>, judgments: &Judgments) -> Option<f64> {
    let ranks = docids.iter().enumerate().filter(|(_, docid)| is_relevant(docid, judgments));
    let sum: f64 = ranks.enumerate().map(|(found, (i, _))| (found as f64 + 1.0) / (i as f64 + 1.0)).sum();
    Some(sum / relevant(judgments)?)
}

fn is_relevant(docid: &str, judgments: &Judgments) -> bool {
    judgments.get(docid).is_some_and(|grade| *grade > 0)
}

/// None where nothing is relevant: no metric says anything then.
fn relevant(judgments: &Judgments) -> Option<f64> {
    let n = judgments.values().filter(|grade| **grade > 0).count();
    (n > 0).then_some(n as f64)
}

fn hits(docids: &[&str], judgments: &Judgments, k: usize) -> f64 {
    docids.iter().take(k).filter(|docid| is_relevant(docid, judgments)).count() as f64
}

pub mod stats {
    //! The interval of a mean.

    /// From `low` to `high`.
    pub struct Interval {
        pub low: f64,
        pub high: f64,
    }

    /// The percentile bootstrap interval of the mean; none for no values.
    pub fn bootstrap_mean_ci(values: &[f64], level: f64, resamples: usize, seed: u64) -> Option<Interval> {
        let n = values.len();
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((u128::from(z ^ (z >> 31)) * n as u128) >> 64) as usize
        };
        if n == 0 {
            return None;
        }
        let mut means: Vec<f64> =
            (0..resamples).map(|_| (0..n).map(|_| values[next()]).sum::<f64>() / n as f64).collect();
        means.sort_unstable_by(f64::total_cmp);
        let tail = ((1.0 - level) / 2.0 * resamples as f64) as usize;
        Some(Interval { low: *means.get(tail)?, high: *means.get(resamples - 1 - tail)? })
    }
}
