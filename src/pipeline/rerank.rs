//! Reranking: a slower and closer look at the head of the fused list.
//!
//! A cross-encoder is used when one is configured. Otherwise it is late interaction over the embedder's own token
//! vectors (Khattab and Zaharia, *ColBERT*, SIGIR 2020), which needs no other model: for every token of the query
//! the most similar token of the passage, averaged.

use super::fusion::{Candidate, sort};
use crate::corpus::Evidence;
use crate::models::TokenVectors;

/// How many documents late interaction looks at: each costs a pass of the model unless its token vectors are cached.
pub(super) const LATE_DEPTH: usize = 10;

/// Mean over the query's tokens of the highest cosine to any token of the passage, in [−1, 1].
///
/// `None` when one of them has no tokens.
pub(super) fn late_interaction(query: &TokenVectors, passage: &TokenVectors) -> Option<f64> {
    let dims = query.dims;
    if dims == 0 || dims != passage.dims || query.data.is_empty() || passage.data.is_empty() {
        return None;
    }
    let dot = |a: &[f32], b: &[f32]| -> f32 {
        let mut lanes = [0f32; 16];
        let (a, b) = (a.chunks(16), b.chunks(16));
        a.zip(b).for_each(|(a, b)| {
            lanes.iter_mut().zip(a.iter().zip(b)).for_each(|(lane, (a, b))| *lane += a * b)
        });
        lanes.iter().sum()
    };
    let best = |token: &[f32]| {
        passage.data.chunks_exact(dims).map(|other| dot(token, other)).fold(f32::NEG_INFINITY, f32::max)
    };
    let sum: f64 = query.data.chunks_exact(dims).map(|token| f64::from(best(token))).sum();
    Some(sum / (query.data.len() / dims) as f64)
}

/// Puts the head in the order of late interaction plus what the lexical lane gave; the tail stays below it.
///
/// `closeness` has one value a document of the head, `None` where nothing could be compared. Both cosines come from
/// one model, so late interaction takes the place of the cosine in its unit, the fused list's `spread`; scaling the
/// few nearly equal values of the head to [0, 1] instead would inflate noise.
pub(super) fn by_late_interaction(candidates: &mut [Candidate], closeness: &[Option<f64>], spread: f64) {
    let low = closeness.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    let unit = if spread > 0.0 { spread } else { 1.0 };
    let scores: Vec<(f64, f64)> = closeness
        .iter()
        .map(|value| value.map_or((0.0, 0.0), |value| (value, (value - low) / unit)))
        .collect();
    replace_head(candidates, "late-interaction", &scores, |candidate| candidate.contribution("bm25"));
}

/// Puts the head in the order of a cross-encoder's scores and the fused scores, both scaled to [0, 1] over the head:
/// equal votes, because neither has a known unit.
pub(super) fn by_cross_encoder(candidates: &mut [Candidate], scores: &[f32]) {
    let head = &candidates[..scores.len()];
    let fused = scaled(&head.iter().map(|candidate| candidate.score).collect::<Vec<_>>());
    let votes = scaled(&scores.iter().map(|&score| f64::from(score)).collect::<Vec<_>>());
    let scores: Vec<(f64, f64)> = scores.iter().map(|&score| f64::from(score)).zip(votes).collect();
    let mut fused = fused.into_iter();
    replace_head(candidates, "cross-encoder", &scores, |_| fused.next().unwrap_or(0.0));
}

/// Scores the first `scores.len()` candidates anew, as what they `keep` plus the second of each pair, and sorts
/// them. The best score of the tail is added, so that scores fall all the way down the list.
fn replace_head(
    candidates: &mut [Candidate],
    stage: &str,
    scores: &[(f64, f64)],
    mut keep: impl FnMut(&Candidate) -> f64,
) {
    let base = candidates.get(scores.len()).map_or(0.0, |candidate| candidate.score);
    let head = &mut candidates[..scores.len()];
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[b].0.total_cmp(&scores[a].0).then(a.cmp(&b)));
    for (rank, &place) in (1..).zip(&order) {
        let (score, vote) = scores[place];
        head[place].evidence.push(Evidence::new(stage, rank, score, vote));
    }
    for (candidate, (_, vote)) in head.iter_mut().zip(scores) {
        candidate.score = base + keep(candidate) + vote;
    }
    sort(head);
}

fn scaled(values: &[f64]) -> Vec<f64> {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let range = values.iter().copied().fold(f64::NEG_INFINITY, f64::max) - low;
    values.iter().map(|value| if range > 0.0 { (value - low) / range } else { 0.0 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(data: &[f32]) -> TokenVectors {
        TokenVectors { dims: 2, data: data.to_vec() }
    }

    fn candidates(scores: &[f64]) -> Vec<Candidate> {
        let candidate = |(key, &score)| Candidate { key, score, chunk: Some(0), evidence: Vec::new() };
        (1..).zip(scores).map(candidate).collect()
    }

    #[test]
    fn every_query_token_takes_its_best_passage_token() {
        let query = tokens(&[1.0, 0.0, 0.0, 1.0]);
        assert_eq!(
            late_interaction(&query, &tokens(&[1.0, 0.0, 0.6, 0.8])),
            Some((1.0 + f64::from(0.8f32)) / 2.0)
        );
        assert_eq!(late_interaction(&query, &tokens(&[])), None);
    }

    #[test]
    fn the_head_is_reordered_and_the_tail_stays_below() {
        let mut list = candidates(&[0.9, 0.8, 0.7, 0.6]);
        by_late_interaction(&mut list, &[Some(0.80), Some(0.85), None], 0.1);
        assert_eq!(list.iter().map(|c| c.key).collect::<Vec<_>>(), [2, 1, 3, 4]);
        assert!(list.windows(2).all(|pair| pair[0].score >= pair[1].score));
    }

    #[test]
    fn a_cross_encoder_and_the_fused_list_have_equal_votes() {
        let mut list = candidates(&[1.0, 0.9, 0.0]);
        by_cross_encoder(&mut list, &[-3.0, 4.0, -3.0]);
        assert_eq!(list.iter().map(|c| c.key).collect::<Vec<_>>(), [2, 1, 3]);
        assert_eq!(list[0].evidence[0].stage, "cross-encoder");
        assert_eq!(list[0].evidence[0].rank, 1);
    }
}
