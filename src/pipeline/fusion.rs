//! Fusion: the lexical and the vector list become one, a document once.
//!
//! No fixed weight is right for every query. Where the collection hardly has the query's words (a question in
//! another language), what BM25 says is noise; where some document has nearly all of them, it is the best
//! evidence there is. So the lexical lane's vote is weighted by how much of the query some document really
//! contains, and nothing else has to be known about language, corpus or query:
//!
//! ```text
//! b      = max over documents d of Σ idf(t)² for query terms t in d / Σ idf(t)² for all query terms t
//! score  = (cosine − min) / (max − min)  +  b · bm25 / max bm25
//! ```
//!
//! b is the squared cosine between the query's idf vector and its best matched part: 1 when one document has every
//! term, near 0 when only function words match. With b = 1 both lanes have equal votes. Minimum and maximum are over
//! the union of both lists, and the cosine of a document that only the lexical list has is looked up, so that no
//! document is punished for the length of a list.

use std::collections::HashMap;

use super::bm25::LexicalHit;
use super::vector::VectorHit;
use crate::corpus::Evidence;

/// A document on its way through the stages.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Candidate {
    /// The document.
    pub key: u64,
    /// What it is ranked by.
    pub score: f64,
    /// Its best passage for the query; `None` when the document has no vector.
    pub chunk: Option<u32>,
    /// What each stage said of it.
    pub evidence: Vec<Evidence>,
}

impl Candidate {
    /// What the stage `name` added to the score, 0 if it said nothing.
    pub fn contribution(&self, name: &str) -> f64 {
        self.evidence.iter().find(|e| e.stage == name).map_or(0.0, |e| e.contribution)
    }
}

/// A fused list, best first, and what it rests on.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Fused {
    /// The documents.
    pub candidates: Vec<Candidate>,
    /// b: the share of the query that the best matching document contains, from 0 to 1.
    pub matched: f64,
    /// Difference between the highest and the lowest cosine of the union.
    pub spread: f64,
}

/// The share of the query that the best matching document contains: b.
pub(super) fn best_match(lexical: &[LexicalHit]) -> f64 {
    lexical.iter().map(|hit| f64::from(hit.matched)).fold(0.0, f64::max)
}

/// Fuses by the adaptive rule. `cosines` covers the vector list and every document of the lexical list that has a
/// vector, in any order; a document without one counts as the farthest.
pub(super) fn adaptive(lexical: &[LexicalHit], cosines: &[VectorHit]) -> Fused {
    let matched = best_match(lexical);
    let top = lexical.iter().map(|hit| f64::from(hit.score)).fold(0.0, f64::max);
    let scores = || cosines.iter().map(|hit| f64::from(hit.score));
    let low = scores().fold(f64::INFINITY, f64::min);
    let spread = if cosines.is_empty() { 0.0 } else { scores().fold(f64::NEG_INFINITY, f64::max) - low };
    let words = |hit: &LexicalHit| if top > 0.0 { matched * f64::from(hit.score) / top } else { 0.0 };
    let meaning = |hit: &VectorHit| if spread > 0.0 { (f64::from(hit.score) - low) / spread } else { 0.0 };
    Fused { candidates: union(lexical, cosines, |_, hit| words(hit), |_, hit| meaning(hit)), matched, spread }
}

/// Fuses by reciprocal ranks, 1 / (k + rank), each lane equal. Cormack, Clarke and Büttcher, SIGIR 2009.
pub(super) fn reciprocal_rank(lexical: &[LexicalHit], vector: &[VectorHit], k: f64) -> Fused {
    let share = |rank: usize| 1.0 / (k + rank as f64);
    Fused {
        candidates: union(lexical, vector, |rank, _| share(rank), |rank, _| share(rank)),
        matched: best_match(lexical),
        spread: 0.0,
    }
}

/// One candidate a document, scored by the sum of what both lanes give; best first, equal scores by key.
fn union(
    lexical: &[LexicalHit],
    cosines: &[VectorHit],
    words: impl Fn(usize, &LexicalHit) -> f64,
    meaning: impl Fn(usize, &VectorHit) -> f64,
) -> Vec<Candidate> {
    let mut candidates: Vec<Candidate> = Vec::with_capacity(lexical.len() + cosines.len());
    let mut places = HashMap::new();
    for (rank, hit) in (1..).zip(lexical) {
        let evidence = Evidence::new("bm25", rank, hit.score, words(rank, hit));
        places.insert(hit.key, candidates.len());
        candidates.push(Candidate {
            key: hit.key,
            score: evidence.contribution,
            chunk: None,
            evidence: vec![evidence],
        });
    }
    let mut nearest: Vec<&VectorHit> = cosines.iter().collect();
    nearest.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.key.cmp(&b.key)));
    for (rank, hit) in (1..).zip(nearest) {
        let evidence = Evidence::new("vector", rank, hit.score, meaning(rank, hit));
        let place = *places.entry(hit.key).or_insert_with(|| {
            candidates.push(Candidate { key: hit.key, score: 0.0, chunk: None, evidence: Vec::new() });
            candidates.len() - 1
        });
        let candidate = &mut candidates[place];
        candidate.score += evidence.contribution;
        candidate.chunk = Some(hit.chunk);
        candidate.evidence.push(evidence);
    }
    sort(&mut candidates);
    candidates
}

/// Best first; equal scores by key, so that the order never depends on how it came about.
pub(super) fn sort(candidates: &mut [Candidate]) {
    candidates.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.key.cmp(&b.key)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(key: u64, score: f32, matched: f32) -> LexicalHit {
        LexicalHit { key, score, matched }
    }

    fn near(key: u64, score: f32) -> VectorHit {
        VectorHit { key, chunk: 0, score }
    }

    fn order(fused: &Fused) -> Vec<u64> {
        fused.candidates.iter().map(|c| c.key).collect()
    }

    #[test]
    fn words_decide_when_a_document_has_them_all_and_hardly_when_not() {
        let cosines = [near(1, 0.90), near(2, 0.88), near(3, 0.70)];
        let sure = adaptive(&[word(2, 9.0, 1.0), word(1, 3.0, 0.2)], &cosines);
        assert_eq!(order(&sure), [2, 1, 3]);
        let doubtful = adaptive(&[word(2, 9.0, 0.05), word(1, 3.0, 0.02)], &cosines);
        assert_eq!(order(&doubtful), [1, 2, 3]);
        assert!((doubtful.matched - 0.05).abs() < 1e-6);
        assert!((doubtful.spread - 0.2).abs() < 1e-6);
    }

    #[test]
    fn evidence_for_one_document_adds_up() {
        let fused = adaptive(&[word(7, 2.0, 1.0)], &[near(7, 0.9), near(8, 0.7)]);
        assert_eq!(fused.candidates[0].key, 7);
        assert!((fused.candidates[0].score - 2.0).abs() < 1e-9);
        assert_eq!(fused.candidates[0].evidence.len(), 2);
    }

    #[test]
    fn reciprocal_ranks_follow_the_paper() {
        let fused =
            reciprocal_rank(&[word(1, 5.0, 1.0), word(2, 4.0, 1.0)], &[near(2, 0.9), near(3, 0.8)], 60.0);
        assert_eq!(order(&fused), [2, 1, 3]);
        assert!((fused.candidates[0].score - (1.0 / 62.0 + 1.0 / 61.0)).abs() < 1e-12);
    }

    #[test]
    fn one_empty_lane_leaves_the_other_in_its_order() {
        assert_eq!(order(&adaptive(&[], &[near(4, 0.8), near(5, 0.9)])), [5, 4]);
        assert_eq!(order(&adaptive(&[word(5, 2.0, 0.5), word(4, 1.0, 0.1)], &[])), [5, 4]);
        assert_eq!(order(&adaptive(&[], &[])), [] as [u64; 0]);
    }
}
