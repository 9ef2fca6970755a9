//! The metrics and the interval that the harness uses.

use crate::corpus::Judgments;

/// |relevant ∩ first k| / |relevant|.
pub fn recall_at(docids: &[&str], judgments: &Judgments, k: usize) -> f64 {
    hits(docids, judgments, k) / relevant(judgments)
}

/// |relevant ∩ first k| / k.
pub fn precision_at(docids: &[&str], judgments: &Judgments, k: usize) -> f64 {
    hits(docids, judgments, k) / k.max(1) as f64
}

/// DCG / ideal DCG, gain = grade, discount log2(rank + 1).
pub fn ndcg_at(docids: &[&str], judgments: &Judgments, k: usize) -> f64 {
    let dcg = |grades: &mut dyn Iterator<Item = i64>| -> f64 {
        grades.take(k).enumerate().map(|(i, g)| g.max(0) as f64 / (i as f64 + 2.0).log2()).sum()
    };
    let mut ideal: Vec<i64> = judgments.values().copied().collect();
    ideal.sort_unstable_by(|a, b| b.cmp(a));
    let best = dcg(&mut ideal.into_iter());
    dcg(&mut docids.iter().map(|docid| judgments.get(*docid).copied().unwrap_or(0))) / best
}

/// 1 / rank of the first relevant document.
pub fn reciprocal_rank(docids: &[&str], judgments: &Judgments) -> f64 {
    docids.iter().position(|docid| is_relevant(docid, judgments)).map_or(0.0, |i| 1.0 / (i as f64 + 1.0))
}

/// The mean, over the relevant documents, of the precision at their ranks.
pub fn average_precision(docids: &[&str], judgments: &Judgments) -> f64 {
    let ranks = docids.iter().enumerate().filter(|(_, docid)| is_relevant(docid, judgments));
    let sum: f64 = ranks.enumerate().map(|(found, (i, _))| (found as f64 + 1.0) / (i as f64 + 1.0)).sum();
    sum / relevant(judgments)
}

fn is_relevant(docid: &str, judgments: &Judgments) -> bool {
    judgments.get(docid).is_some_and(|grade| *grade > 0)
}

fn relevant(judgments: &Judgments) -> f64 {
    judgments.values().filter(|grade| **grade > 0).count() as f64
}

fn hits(docids: &[&str], judgments: &Judgments, k: usize) -> f64 {
    docids.iter().take(k).filter(|docid| is_relevant(docid, judgments)).count() as f64
}

/// The percentile bootstrap 95 % interval of the mean, 1,000 resamples from a fixed seed.
pub fn mean_interval(values: &[f64]) -> (f64, f64) {
    let n = values.len();
    if n == 0 {
        return (0.0, 0.0);
    }
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ (z >> 31)) * n as u128) >> 64) as usize
    };
    let mut means: Vec<f64> =
        (0..1000).map(|_| (0..n).map(|_| values[next()]).sum::<f64>() / n as f64).collect();
    means.sort_unstable_by(f64::total_cmp);
    (means[24], means[974])
}
