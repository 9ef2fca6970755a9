//! The stages of a search, each a span that says what it was asked, what it returned and what ran.

use std::collections::HashSet;

use serde_json::json;
use tracing::field::Empty;
use tracing::info_span;

use super::bm25::{LexicalHit, LexicalResult};
use super::fusion::{self, Candidate, Fused};
use super::graph::{self, Bounds};
use super::indexer::passage_text;
use super::query::Pipeline;
use super::request::Request;
use super::rerank::{self, LATE_DEPTH};
use super::vector::{VectorHit, Vectors};
use crate::corpus::{Evidence, Mode};
use crate::error::{Error, Result};
use crate::models::{Embedder, TextRole};
use crate::settings::Thoroughness;
use crate::text;

/// Weight of an `intent:` part beside the query's own text, and of `term:` parts likewise.
const VARIANT: f32 = 0.25;
/// Weight of a `hyde:` part beside the query's own text.
const HYDE: f32 = 0.35;
/// Documents whose passages refine the query's vector.
const FEEDBACK_DOCUMENTS: usize = 3;
/// The share of the query that the best document must contain before its vector is trusted: the majority.
const ON_TOPIC: f64 = 0.5;
/// Documents that are reranked at the highest thoroughness.
const THOROUGH_DEPTH: usize = 40;
/// What a linked document gets of the score of the best one.
const GRAPH: f64 = 0.4;

impl Pipeline {
    /// The lexical lane: the text and, with less weight, each `term:` part.
    pub(super) fn words(&self, request: &Request, limit: usize) -> Result<LexicalResult> {
        let span = info_span!(
            "bm25",
            query = request.text,
            limit,
            hits = Empty,
            documents = Empty,
            coverage = Empty,
            level = Empty,
            terms = Empty,
        )
        .entered();
        let collection = request.collection.as_deref();
        let lexical = self.index.lexical();
        let query = text::parse(&request.text);
        let mut found = lexical.search(&query, collection, limit)?;
        for part in request.parts(Mode::Term) {
            let weight = if request.text.trim().is_empty() { 1.0 } else { VARIANT };
            let mut part = text::parse(part);
            part.excluded.extend_from_slice(&query.excluded);
            add(&mut found, lexical.search(&part, collection, limit)?, weight);
        }
        found.hits.truncate(limit);
        span.record("hits", found.hits.len());
        span.record("documents", found.documents);
        span.record("coverage", found.coverage);
        span.record("level", json!(found.level).as_str().unwrap_or_default());
        let terms: Vec<_> = found.terms.iter().map(|term| format!("{}:{}", term.term, term.df)).collect();
        span.record("terms", terms.join(" "));
        Ok(found)
    }

    /// The query's vector: the text and, with less weight, its `intent:` and `hyde:` parts; L2 norm 1.
    pub(super) fn embed(&self, request: &Request) -> Result<Vec<f32>> {
        let embedder = self.required_embedder()?;
        let mut sum = vec![0.0; embedder.dims()];
        let mut add = |text: &str, role, weight: f32| -> Result<()> {
            let vector = embedder.embed(&[text], role)?.data;
            sum.iter_mut().zip(vector).for_each(|(sum, component)| *sum += weight * component);
            Ok(())
        };
        let alone = [Mode::Intent, Mode::Hyde].iter().all(|&mode| request.parts(mode).next().is_none());
        if !request.text.trim().is_empty() {
            add(&request.wanted(), TextRole::Query, 1.0)?;
        } else if alone {
            request.parts(Mode::Term).try_for_each(|part| add(part, TextRole::Query, 1.0))?;
        }
        request.parts(Mode::Intent).try_for_each(|part| add(part, TextRole::Query, VARIANT))?;
        request.parts(Mode::Hyde).try_for_each(|part| add(part, TextRole::Passage, HYDE))?;
        normalise(&mut sum);
        Ok(sum)
    }

    /// The vector lane.
    pub(super) fn meaning(&self, request: &Request, vector: &[f32], limit: usize) -> Result<Vec<VectorHit>> {
        let span = info_span!("vector", limit, hits = Empty, passages = Empty, model = Empty).entered();
        let vectors = self.vectors()?;
        let found = self.nearest(request, vector, limit)?;
        span.record("hits", found.len());
        span.record("passages", vectors.len());
        span.record("model", self.embedder().map_or("", |embedder| embedder.fingerprint()));
        Ok(found)
    }

    /// The documents nearest to `vector`, without those that have a word which the request excludes.
    pub(super) fn nearest(&self, request: &Request, vector: &[f32], limit: usize) -> Result<Vec<VectorHit>> {
        let collection = request.collection.as_deref();
        let excluded = self.index.lexical().excluded(&text::parse(&request.text), collection)?;
        let mut found = self.vectors()?.search(vector, limit.saturating_add(excluded.len()), collection)?;
        found.retain(|hit| !excluded.contains(&hit.key));
        found.truncate(limit);
        Ok(found)
    }

    fn vectors(&self) -> Result<&Vectors> {
        self.index.vectors(self.required_embedder()?)
    }

    pub(super) fn required_embedder(&self) -> Result<&dyn Embedder> {
        self.embedder().ok_or_else(|| {
            Error::usage("a search by meaning needs an embedder, and this pipeline has none")
                .with_hint("open it with one, or search by words")
        })
    }

    pub(super) fn reciprocal_rank(&self, words: &[LexicalHit], meaning: &[VectorHit]) -> Fused {
        let span = info_span!("fusion", rule = "rrf", k = self.settings.rrf_k, documents = Empty).entered();
        let fused = fusion::reciprocal_rank(words, meaning, self.settings.rrf_k);
        span.record("documents", fused.candidates.len());
        fused
    }

    /// Fuses by the adaptive rule; when the words say that the top is on topic, once more with a refined vector.
    pub(super) fn adaptive(
        &self,
        request: &Request,
        words: &[LexicalHit],
        meaning: &[VectorHit],
        vector: &[f32],
    ) -> Result<Fused> {
        let fuse = |meaning: &[VectorHit], vector: &[f32]| -> Result<Fused> {
            let span =
                info_span!("fusion", rule = "adaptive", documents = Empty, matched = Empty, spread = Empty);
            let _entered = span.enter();
            let fused = fusion::adaptive(words, &self.cosines(words, meaning, vector)?);
            span.record("documents", fused.candidates.len());
            span.record("matched", fused.matched);
            span.record("spread", fused.spread);
            Ok(fused)
        };
        let fused = fuse(meaning, vector)?;
        let span = info_span!("feedback", documents = Empty, skipped = Empty).entered();
        if fused.matched < ON_TOPIC {
            span.record("skipped", "no document contains the majority of the query");
            return Ok(fused);
        }
        let refined = self.refine(vector, &fused.candidates)?;
        span.record("documents", FEEDBACK_DOCUMENTS.min(fused.candidates.len()));
        let meaning = self.nearest(request, &refined, self.depth(request))?;
        fuse(&meaning, &refined)
    }

    /// The documents that fusion would put first, with their best passages.
    pub(super) fn first(
        &self,
        words: &[LexicalHit],
        meaning: &[VectorHit],
        vector: &[f32],
    ) -> Result<Vec<(u64, Option<u32>)>> {
        let fused = fusion::adaptive(words, &self.cosines(words, meaning, vector)?);
        Ok(fused.candidates.iter().take(FEEDBACK_DOCUMENTS).map(|c| (c.key, c.chunk)).collect())
    }

    /// The vector list and the cosines of the documents that only the lexical list has.
    fn cosines(&self, words: &[LexicalHit], meaning: &[VectorHit], vector: &[f32]) -> Result<Vec<VectorHit>> {
        let known: HashSet<u64> = meaning.iter().map(|hit| hit.key).collect();
        let missing = words.iter().map(|hit| hit.key).filter(|key| !known.contains(key));
        let mut all = self.vectors()?.nearest(vector, missing)?;
        all.extend_from_slice(meaning);
        Ok(all)
    }

    /// The query's vector moved halfway to the passages of the best documents (Rocchio, 1971, weights 1 : 1).
    fn refine(&self, vector: &[f32], candidates: &[Candidate]) -> Result<Vec<f32>> {
        let vectors = self.vectors()?;
        let mut centre = vec![0.0; vector.len()];
        for candidate in candidates.iter().take(FEEDBACK_DOCUMENTS) {
            let passage = candidate.chunk.and_then(|chunk| vectors.vector(candidate.key, chunk));
            if let Some(passage) = passage {
                centre.iter_mut().zip(passage).for_each(|(sum, component)| *sum += component);
            }
        }
        // The mean of unit vectors; dividing by their number leaves its length below 1 when they disagree.
        let count = FEEDBACK_DOCUMENTS.min(candidates.len()).max(1) as f32;
        let mut refined: Vec<f32> = vector.iter().zip(centre).map(|(q, c)| q + c / count).collect();
        normalise(&mut refined);
        Ok(refined)
    }

    /// Adds documents that are linked with the best ones, below them.
    pub(super) fn follow_links(&self, request: &Request, candidates: &mut Vec<Candidate>) -> Result<()> {
        let enabled = request.graph.unwrap_or(self.settings.graph);
        let keys: Vec<u64> = candidates.iter().map(|candidate| candidate.key).collect();
        let Ok(neighbours) = graph::expand(&self.index, &keys, enabled, Bounds::default())? else {
            return Ok(());
        };
        let (Some(best), Some(&(_, strongest))) = (candidates.first().map(|c| c.score), neighbours.first())
        else {
            return Ok(());
        };
        for (rank, (key, strength)) in (1..).zip(neighbours) {
            let gain = GRAPH * best * strength / strongest;
            let evidence = Evidence::new("graph", rank, strength, gain);
            match candidates.iter_mut().find(|candidate| candidate.key == key) {
                Some(candidate) => {
                    candidate.score += gain;
                    candidate.evidence.push(evidence);
                }
                None => {
                    candidates.push(Candidate { key, score: gain, chunk: None, evidence: vec![evidence] })
                }
            }
        }
        fusion::sort(candidates);
        Ok(())
    }

    /// Looks closer at the head of the list, unless that is not wanted or nothing is in doubt.
    pub(super) fn rerank(
        &self,
        request: &Request,
        fused: &mut Fused,
        vector: &[f32],
        agree: bool,
    ) -> Result<()> {
        let span = info_span!(
            "rerank",
            method = Empty,
            model = Empty,
            documents = Empty,
            skipped = Empty,
            needless = Empty
        )
        .entered();
        let thorough = self.level(request) == Thoroughness::Thorough;
        let full = self.settings.rerank_depth.max(if thorough { THOROUGH_DEPTH } else { 0 });
        let depth = match &self.reranker {
            Some(_) => full,
            // The less the words say, the further down the answer may lie.
            None if fused.matched < ON_TOPIC => full,
            None => LATE_DEPTH.min(full),
        };
        let head = depth.min(fused.candidates.len());
        let question = request.question();
        let skipped = if !request.rerank || depth == 0 {
            Some("not wanted")
        } else if head < 2 {
            Some("nothing to reorder")
        } else if self.reranker.is_none() && agree {
            Some("both lanes have the same document first")
        } else {
            None
        };
        if let Some(reason) = skipped {
            span.record("skipped", reason);
            // Whoever asked for it got all that it has to say; who did not, asked for none.
            span.record("needless", request.rerank && depth > 0);
            return Ok(());
        }
        span.record("documents", head);
        let passages = self.passages(vector, &fused.candidates[..head])?;
        let texts: Vec<&str> = passages.iter().map(String::as_str).collect();
        if let Some(reranker) = &self.reranker {
            span.record("method", "cross-encoder");
            span.record("model", reranker.fingerprint());
            rerank::by_cross_encoder(&mut fused.candidates, &reranker.score(&question, &texts)?);
        } else if let Some(embedder) = self.embedder() {
            span.record("method", "late-interaction");
            span.record("model", embedder.fingerprint());
            let tokens = embedder.embed_tokens(&[&question], TextRole::Query)?;
            let passages = embedder.embed_tokens(&texts, TextRole::Passage)?;
            let closeness: Vec<_> = tokens
                .iter()
                .flat_map(|query| passages.iter().map(|passage| rerank::late_interaction(query, passage)))
                .collect();
            rerank::by_late_interaction(&mut fused.candidates, &closeness, fused.spread);
        }
        Ok(())
    }

    /// The text of each candidate's best passage for `vector`, as the embedder read it.
    fn passages(&self, vector: &[f32], candidates: &[Candidate]) -> Result<Vec<String>> {
        let nearest = self.vectors()?.nearest(vector, candidates.iter().map(|candidate| candidate.key))?;
        candidates
            .iter()
            .map(|candidate| {
                let chunk = nearest.iter().find(|hit| hit.key == candidate.key).map_or(0, |hit| hit.chunk);
                let title = self.index.title(candidate.key)?.unwrap_or_default();
                let text =
                    self.index.passage(candidate.key, chunk)?.map(|(_, text)| text).unwrap_or_default();
                Ok(passage_text(&title, &text))
            })
            .collect()
    }
}

/// Adds the scores of a further query, as if its words had been typed with `weight`.
fn add(found: &mut LexicalResult, more: LexicalResult, weight: f32) {
    for hit in more.hits {
        match found.hits.iter_mut().find(|known| known.key == hit.key) {
            Some(known) => {
                known.score += weight * hit.score;
                known.matched = known.matched.max(hit.matched);
            }
            None => found.hits.push(LexicalHit { score: weight * hit.score, ..hit }),
        }
    }
    found.hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.key.cmp(&b.key)));
    found.terms.extend(more.terms);
    found.documents = found.documents.max(more.documents);
    found.coverage = found.coverage.max(more.coverage);
}

pub(super) fn normalise(vector: &mut [f32]) {
    let norm = vector.iter().map(|component| component * component).sum::<f32>().sqrt();
    if norm > 0.0 {
        vector.iter_mut().for_each(|component| *component /= norm);
    }
}
