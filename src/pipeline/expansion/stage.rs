//! The stage `expansion` of a search, and what its variants add to the lanes.

use std::sync::Arc;

use tracing::field::Empty;
use tracing::{Span, info_span};

use super::super::bm25::{LexicalHit, LexicalResult};
use super::super::query::{Pipeline, traced};
use super::super::request::{Expand, Request};
use super::super::vector::VectorHit;
use super::{Expander, ExpansionRequest, LexicalExpander, ModelExpander, SEPARATOR, guard, signal};
use crate::corpus::{Expansion, Mode};
use crate::error::{Error, ErrorKind, Result};
use crate::models::TextRole;
use crate::text;
use crate::trace::Trace;

/// What all lexical variants together count beside the query's words.
const LEXICAL: f32 = 0.25;
/// What all vector variants together count beside the query's vector.
const VECTOR: f32 = 0.25;
/// What a hypothetical answer counts beside the query's vector.
const HYDE: f32 = 0.25;

/// What the lanes found.
pub(in super::super) struct Lanes {
    /// By words.
    pub words: LexicalResult,
    /// The query's vector.
    pub vector: Vec<f32>,
    /// By meaning.
    pub meaning: Vec<VectorHit>,
    /// What was searched for beside the query.
    pub expansion: Option<Expansion>,
}

impl Pipeline {
    /// What [`query`](Self::query) would search for beside the text of `request`, even if it were sure without it.
    ///
    /// Fails like `query`, and when the expander does.
    pub fn expansion(&self, request: &Request) -> Result<(Expansion, Trace)> {
        traced(|| {
            let lanes = self.lanes(request)?;
            let span = expansion_span();
            let _entered = span.enter();
            self.propose(request, &*self.expander_of(request)?, &lanes, &span)
        })
    }

    /// The lanes with what an expansion adds to them; as they are when nothing is expanded.
    ///
    /// A failing expander fails no search: the stage says `error`, and the plain query is searched.
    pub(in super::super) fn expand(&self, request: &Request, mut lanes: Lanes) -> Result<Lanes> {
        let Some(expansion) = self.wanted_expansion(request, &lanes)? else { return Ok(lanes) };
        let span = info_span!("variants", lexical = Empty, vector = Empty, near = Empty, hyde = Empty);
        let _entered = span.enter();
        let limit = self.depth(request);
        self.add_words(request, &mut lanes.words, &expansion, limit)?;
        span.record("lexical", expansion.lexical_queries.len());
        if self.add_vectors(&mut lanes, &expansion, &span)? {
            lanes.meaning = self.nearest(request, &lanes.vector, limit)?;
        }
        lanes.expansion = Some(expansion);
        Ok(lanes)
    }

    /// The expansion of the request; `None` when it is not needed, replaced by the request's own parts, or failed.
    fn wanted_expansion(&self, request: &Request, lanes: &Lanes) -> Result<Option<Expansion>> {
        let span = expansion_span();
        let _entered = span.enter();
        if !request.modes.is_empty() {
            // They are in the lanes already.
            span.record("expander", "request");
            record(&span, &own(request));
            return Ok(None);
        }
        if let Some(known) = &request.expansion {
            span.record("expander", "known");
            record(&span, known);
            return Ok(Some(known.clone()));
        }
        let expander = self.expander_of(request)?;
        if signal::is_strong(&lanes.words, &lanes.meaning) {
            span.record("expander", expander.name());
            span.record("skipped", "words and meaning are sure of the first document");
            span.record("needless", true);
            return Ok(None);
        }
        match self.propose(request, &*expander, lanes, &span) {
            Ok(expansion) => Ok(Some(expansion)),
            Err(error) => {
                let error = match error.kind() {
                    ErrorKind::Timeout => {
                        error.with_hint("raise `expand_seconds` under [search], or expand by rules")
                    }
                    _ => error,
                };
                span.record("error", error.report());
                Ok(None)
            }
        }
    }

    /// What `expander` proposes, as far as the guardrails let it through.
    fn propose(
        &self,
        request: &Request,
        expander: &dyn Expander,
        lanes: &Lanes,
        span: &Span,
    ) -> Result<Expansion> {
        span.record("expander", expander.name());
        let feedback = self.feedback_passages(lanes)?;
        let asked = ExpansionRequest {
            query: &request.text,
            lang: request.lang.as_deref(),
            intent: None,
            feedback: &feedback,
            temperature: request.sampling.temperature,
            seed: request.sampling.seed,
            trial: request.sampling.trial,
            timeout: request.expand_within.unwrap_or_else(|| self.settings.expand_within()),
        };
        let model = expander.model().unwrap_or_default();
        span.record("key", asked.key(expander.version(), model));
        if !model.is_empty() {
            span.record("model", model);
        }
        let proposed = expander.expand(&asked)?;
        span.record("proposed", proposed.lexical_queries.len() + proposed.vector_queries.len());
        let near = |text: &str| Ok(self.closeness(text, TextRole::Query, &lanes.vector)?.1 >= bar(lanes));
        let expansion = guard(&request.text, request.lang.as_deref(), proposed, near)?;
        record(span, &expansion);
        Ok(expansion)
    }

    /// Who expands this request.
    fn expander_of(&self, request: &Request) -> Result<Arc<dyn Expander>> {
        match (request.expand, &self.generator) {
            (Some(Expand::Lexical), _) => Ok(Arc::new(LexicalExpander)),
            (Some(Expand::Model), Some(generator)) => Ok(Arc::new(ModelExpander::new(generator.clone()))),
            (Some(Expand::Model), None) => {
                Err(Error::usage("an expansion by a model needs a generator, and this pipeline has none")
                    .with_hint("set `[models] preset`, or take the lexical expander"))
            }
            _ => Ok(self.expander.clone()),
        }
    }

    /// The best passages of the documents that the plain query finds first.
    fn feedback_passages(&self, lanes: &Lanes) -> Result<Vec<String>> {
        let Lanes { words, vector, meaning, .. } = lanes;
        let best = self.first(&words.hits, meaning, vector)?;
        best.into_iter()
            .filter_map(|(key, chunk)| self.index.passage(key, chunk?).transpose())
            .map(|passage| passage.map(|(_, text)| text))
            .collect()
    }

    /// Adds the scores of the lexical variants, and no document that has what the query excludes.
    fn add_words(
        &self,
        request: &Request,
        found: &mut LexicalResult,
        expansion: &Expansion,
        limit: usize,
    ) -> Result<()> {
        let excluded = text::parse(&request.text).excluded;
        let top = found.hits.first().map_or(0.0, |hit| hit.score);
        let weight = LEXICAL / expansion.lexical_queries.len().max(1) as f32;
        for variant in &expansion.lexical_queries {
            let mut parsed = text::parse(variant);
            parsed.excluded.extend_from_slice(&excluded);
            let more = self.index.lexical().search(&parsed, request.collection.as_deref(), limit)?;
            strengthen(found, &more.hits, weight, top);
        }
        found.hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.key.cmp(&b.key)));
        found.hits.truncate(limit);
        Ok(())
    }

    /// Moves the query's vector towards those variants that are near it; false when none is.
    fn add_vectors(&self, lanes: &mut Lanes, expansion: &Expansion, span: &Span) -> Result<bool> {
        let bar = bar(lanes);
        let mut near = Vec::new();
        for variant in &expansion.vector_queries {
            let (vector, cosine) = self.closeness(variant, TextRole::Query, &lanes.vector)?;
            if cosine >= bar {
                near.push(vector);
            }
        }
        span.record("vector", expansion.vector_queries.len());
        span.record("near", near.len());
        let mut sum = lanes.vector.clone();
        let weight = VECTOR / near.len().max(1) as f32;
        let mut any = !near.is_empty();
        near.iter().for_each(|vector| add(&mut sum, vector, weight));
        if let Some(answer) = &expansion.hyde {
            let (vector, cosine) = self.closeness(answer, TextRole::Passage, &lanes.vector)?;
            let near = cosine >= bar;
            span.record("hyde", near);
            any |= near;
            if near {
                add(&mut sum, &vector, HYDE);
            }
        }
        super::super::stages::normalise(&mut sum);
        lanes.vector = sum;
        Ok(any)
    }

    /// The vector of `text`, and its cosine to the query's.
    fn closeness(&self, text: &str, role: TextRole, query: &[f32]) -> Result<(Vec<f32>, f32)> {
        let vector = self.required_embedder()?.embed(&[text], role)?.data;
        let cosine = vector.iter().zip(query).map(|(a, b)| a * b).sum();
        Ok((vector, cosine))
    }
}

fn add(sum: &mut [f32], vector: &[f32], weight: f32) {
    sum.iter_mut().zip(vector).for_each(|(sum, component)| *sum += weight * component);
}

/// Adds the scores of a variant, whose best document counts no more than `weight` of the query's own best, `top`.
///
/// What share of the query a document has is not for a variant to say.
fn strengthen(found: &mut LexicalResult, more: &[LexicalHit], weight: f32, top: f32) {
    let best = more.first().map_or(0.0, |hit| hit.score);
    let scale = if best > top { weight * top / best } else { weight };
    for hit in more {
        match found.hits.iter_mut().find(|known| known.key == hit.key) {
            Some(known) => known.score += scale * hit.score,
            None => found.hits.push(LexicalHit { score: scale * hit.score, matched: 0.0, ..*hit }),
        }
    }
}

/// How near a variant must be to the query: as near as the best passage. What is farther is another subject.
fn bar(lanes: &Lanes) -> f32 {
    lanes.meaning.first().map_or(f32::INFINITY, |hit| hit.score)
}

/// The parts of the request itself.
fn own(request: &Request) -> Expansion {
    let parts = |mode| request.parts(mode).map(str::to_string).collect();
    Expansion {
        lexical_queries: parts(Mode::Term),
        vector_queries: parts(Mode::Intent),
        hyde: request.parts(Mode::Hyde).next().map(str::to_string),
        notes: None,
    }
}

fn expansion_span() -> Span {
    info_span!(
        "expansion",
        expander = Empty,
        key = Empty,
        model = Empty,
        proposed = Empty,
        lexical = Empty,
        vector = Empty,
        hyde = Empty,
        skipped = Empty,
        needless = Empty,
        error = Empty,
    )
}

fn record(span: &Span, expansion: &Expansion) {
    span.record("lexical", expansion.lexical_queries.join(SEPARATOR));
    span.record("vector", expansion.vector_queries.join(SEPARATOR));
    if let Some(answer) = &expansion.hyde {
        span.record("hyde", answer);
    }
}
