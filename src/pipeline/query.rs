//! The pipeline: an index, its models, and the three ways to search.

use std::path::Path;
use std::sync::Arc;

use super::bm25::LexicalHit;
use super::expansion::{Expander, Lanes, LexicalExpander, ModelExpander};
use super::found::Found;
use super::fusion::Candidate;
use super::index::IndexReader;
use super::indexer;
use super::progress::IndexBar;
use super::request::{Expand, Request};
use super::vector::VectorHit;
use crate::corpus::{self, Evidence, Hit, Ranking};
use crate::error::{Error, Result};
use crate::models::{self, Embedder, Generator, Reranker};
use crate::record::Tool;
use crate::settings::{Fusion, Preset, SearchSettings, Settings, Thoroughness};
use crate::store::cache::Cache;
use crate::store::captures::Recorder;
use crate::text::{self, snippet};
use crate::trace::{Trace, capture};

/// The collection of an index that holds one corpus.
const COLLECTION: &str = "corpus";
/// Characters of a snippet.
const SNIPPET: usize = 160;
/// Bytes of a text in which a snippet is looked for.
const SNIPPET_FROM: usize = 1 << 18;

/// An index folder with its models: what a search runs on. Shared between threads.
pub struct Pipeline {
    pub(super) index: Arc<IndexReader>,
    pub(super) embedder: Option<Arc<dyn Embedder>>,
    pub(super) reranker: Option<Arc<dyn Reranker>>,
    pub(super) generator: Option<Arc<dyn Generator>>,
    pub(super) expander: Arc<dyn Expander>,
    pub(super) settings: SearchSettings,
    pub(super) recorder: Option<Arc<Recorder>>,
}

impl Pipeline {
    /// Opens the index in `dir` with the models that the settings name; none is loaded before it is needed.
    ///
    /// What models answer is kept in `cache`, if there is one. Queries are expanded by the generator of the preset; by
    /// rules in a build without the feature `local-llm` whose preset is the local model. Fails when there is no index,
    /// when another version made it, and when a model is not there and cannot be fetched.
    pub fn open(dir: &Path, settings: &Settings, cache: Option<Arc<Cache>>) -> Result<Self> {
        let embedder = models::embedder(&settings.models, cache.clone())?;
        let reranker = models::reranker(&settings.models, cache.clone())?;
        Self::with_models(dir, &settings.search, Some(embedder), reranker)?.with_preset(settings, cache)
    }

    /// Brings the index in `dir` up to date with `corpus` (a folder of documents, or a BEIR folder), then opens it.
    ///
    /// Only what changed is read in and embedded. Several processes may do this at once: one indexes, the others
    /// wait. With `vectors` false no model is used. Fails when the index holds other collections, and like [`indexer::build`] and [`open`](Self::open).
    pub fn over(
        corpus: &Path,
        dir: &Path,
        settings: &Settings,
        cache: Option<Arc<Cache>>,
        vectors: bool,
    ) -> Result<Self> {
        let embedder = if vectors { Some(models::embedder(&settings.models, cache.clone())?) } else { None };
        let reranker = if vectors { models::reranker(&settings.models, cache.clone())? } else { None };
        nothing_else(dir)?;
        let mut bar = IndexBar::new(COLLECTION, dir, vectors);
        let documents = corpus::open(corpus).documents()?;
        indexer::build(dir, COLLECTION, documents, embedder.as_deref(), &mut |progress| bar.show(progress))?;
        drop(bar);
        let pipeline = Self::with_models(dir, &settings.search, embedder, reranker)?;
        if vectors { pipeline.with_preset(settings, cache) } else { Ok(pipeline) }
    }

    /// Opens the index in `dir` with these models; without an embedder only [`search`](Self::search) works. Queries
    /// are expanded by rules, unless a [generator](Self::with_generator) is added.
    pub fn with_models(
        dir: &Path,
        settings: &SearchSettings,
        embedder: Option<Arc<dyn Embedder>>,
        reranker: Option<Arc<dyn Reranker>>,
    ) -> Result<Self> {
        let index = Arc::new(IndexReader::open(dir)?);
        let expander = Arc::new(LexicalExpander);
        let settings = settings.clone();
        Ok(Self { index, embedder, reranker, generator: None, expander, settings, recorder: None })
    }

    /// The same pipeline with the generator of the settings' preset; as it is where this build cannot run that.
    fn with_preset(self, settings: &Settings, cache: Option<Arc<Cache>>) -> Result<Self> {
        let models = &settings.models;
        if !cfg!(feature = "local-llm") && models.find_preset(&models.preset)? == Preset::Local {
            return Ok(self);
        }
        Ok(self.with_generator(models::generator(models, cache)?))
    }

    /// The same pipeline with a language model, for answers and, from now on, for expansion.
    #[must_use]
    pub fn with_generator(mut self, generator: Arc<dyn Generator>) -> Self {
        self.expander = Arc::new(ModelExpander::new(generator.clone()));
        self.generator = Some(generator);
        self
    }

    /// The same pipeline with another expander than the lexical one, or its generator's.
    #[must_use]
    pub fn with_expander(mut self, expander: Arc<dyn Expander>) -> Self {
        self.expander = expander;
        self
    }

    /// How many documents the index has.
    pub fn documents(&self) -> Result<u64> {
        Ok(self.index.collections()?.iter().map(|(_, count)| count).sum())
    }

    /// How it searches where a request leaves it open.
    pub fn settings(&self) -> &SearchSettings {
        &self.settings
    }

    /// The index.
    pub fn index(&self) -> &IndexReader {
        &self.index
    }

    /// The embedder, if there is one.
    pub fn embedder(&self) -> Option<&dyn Embedder> {
        self.embedder.as_deref()
    }

    /// Searches by words. Fails only on a request that asks nothing and on a damaged index.
    pub fn search(&self, request: &Request) -> Result<(Ranking, Trace)> {
        let by_words = || Ok((self.by_words(request)?.into(), ()));
        self.entry(Tool::Search, request, by_words).map(|(found, (), trace)| (found.ranking, trace))
    }

    pub(super) fn by_words(&self, request: &Request) -> Result<Ranking> {
        self.check(request)?;
        let found = self.words(request, self.depth(request))?;
        let hit = |(rank, hit): (usize, &LexicalHit)| Candidate {
            key: hit.key,
            score: f64::from(hit.score),
            chunk: None,
            evidence: vec![Evidence::new("bm25", rank, hit.score, f64::from(hit.score))],
        };
        let candidates: Vec<_> = (1..).zip(&found.hits).map(hit).collect();
        self.ranking(request, &candidates)
    }

    /// Searches by meaning: documents by the cosine of their best passage.
    ///
    /// Fails like [`search`](Self::search), and when the embedder does, or did not make the index's vectors.
    pub fn vsearch(&self, request: &Request) -> Result<(Ranking, Trace)> {
        let by_meaning = || Ok((self.by_meaning(request)?.into(), ()));
        self.entry(Tool::Vsearch, request, by_meaning).map(|(found, (), trace)| (found.ranking, trace))
    }

    fn by_meaning(&self, request: &Request) -> Result<Ranking> {
        self.check(request)?;
        let found = self.meaning(request, &self.embed(request)?, self.depth(request))?;
        let hit = |(rank, hit): (usize, &VectorHit)| Candidate {
            key: hit.key,
            score: f64::from(hit.score),
            chunk: Some(hit.chunk),
            evidence: vec![Evidence::new("vector", rank, hit.score, f64::from(hit.score))],
        };
        let candidates: Vec<_> = (1..).zip(&found).map(hit).collect();
        self.ranking(request, &candidates)
    }

    /// Searches as thoroughly as the request or the setting says.
    ///
    /// *Fast* is [`search`](Self::search). *Balanced* searches by words and meaning, fuses both lists and reranks the
    /// head. *Thorough* also searches for what the [expander](super::expansion) proposes, and reranks more. Fails like
    /// [`vsearch`](Self::vsearch), and when a model is asked to expand and there is none; a failing expansion is in the
    /// trace and fails no search.
    pub fn query(&self, request: &Request) -> Result<(Ranking, Trace)> {
        let as_asked = || Ok((self.as_asked(request)?, ()));
        self.entry(Tool::Query, request, as_asked).map(|(found, (), trace)| (found.ranking, trace))
    }

    /// Searches as thoroughly as is asked for.
    pub(super) fn as_asked(&self, request: &Request) -> Result<Found> {
        match self.level(request) {
            Thoroughness::Fast => self.by_words(request).map(Found::from),
            Thoroughness::Balanced | Thoroughness::Thorough => self.hybrid(request),
        }
    }

    fn hybrid(&self, request: &Request) -> Result<Found> {
        let mut lanes = self.lanes(request)?;
        if self.expands(request) {
            lanes = self.expand(request, lanes)?;
        }
        let Lanes { words, vector, meaning, expansion } = lanes;
        let mut fused = match request.fusion.unwrap_or(self.settings.fusion) {
            Fusion::Rrf => self.reciprocal_rank(&words.hits, &meaning),
            Fusion::Adaptive => self.adaptive(request, &words.hits, &meaning, &vector)?,
        };
        self.follow_links(request, &mut fused.candidates)?;
        let agree = words.hits.first().map(|hit| hit.key) == meaning.first().map(|hit| hit.key);
        self.rerank(request, &mut fused, &vector, agree)?;
        Ok(Found { ranking: self.ranking(request, &fused.candidates)?, expansion })
    }

    /// What both lanes find for the plain request.
    pub(super) fn lanes(&self, request: &Request) -> Result<Lanes> {
        self.check(request)?;
        let depth = self.depth(request);
        let words = self.words(request, depth)?;
        let vector = self.embed(request)?;
        let meaning = self.meaning(request, &vector, depth)?;
        Ok(Lanes { words, vector, meaning, expansion: None })
    }

    /// How much work this request asks for.
    pub(super) fn level(&self, request: &Request) -> Thoroughness {
        request.thoroughness.unwrap_or(self.settings.thoroughness)
    }

    pub(super) fn expands(&self, request: &Request) -> bool {
        match request.expand {
            _ if request.expansion.is_some() => true,
            Some(wanted) => wanted != Expand::Never,
            None => self.level(request) == Thoroughness::Thorough,
        }
    }

    /// Checks that the request asks something, of a collection that is there.
    fn check(&self, request: &Request) -> Result<()> {
        request.validate()?;
        let Some(wanted) = &request.collection else { return Ok(()) };
        let known = self.index.collections()?;
        if known.iter().any(|(name, _)| name == wanted) {
            return Ok(());
        }
        let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
        Err(Error::not_found(format!("{}: there is no collection `{wanted}`", self.index.dir().display()))
            .with_hint(format!("known are {}", names.join(", "))))
    }

    /// Documents taken from a lane: more than are wanted, for fusion and because equals at the end of a list are
    /// told apart by id.
    pub(super) fn depth(&self, request: &Request) -> usize {
        self.settings.candidates.max(request.limit)
    }

    /// The hits that are asked for, with what is shown of them. A document that is gone since is left out.
    fn ranking(&self, request: &Request, candidates: &[Candidate]) -> Result<Ranking> {
        let mut hits: Vec<Hit> = Vec::with_capacity(request.limit.min(candidates.len()));
        for candidate in candidates {
            let equal = hits.last().is_some_and(|last| last.score == candidate.score);
            if hits.len() >= request.limit && !equal {
                break;
            }
            let Some(stored) = self.index.document(candidate.key)? else { continue };
            let snippet = if request.snippets {
                self.snippet(request, candidate, &stored.document.body)?
            } else {
                String::new()
            };
            hits.push(Hit {
                hash: stored.short_hash(),
                docid: stored.document.id,
                score: candidate.score,
                collection: stored.collection,
                title: stored.document.title,
                snippet,
                chunk: candidate.chunk,
                evidence: candidate.evidence.clone(),
            });
        }
        // Keys depend on the order of indexing: equal scores are ordered, and cut, by id.
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.docid.cmp(&b.docid)));
        hits.truncate(request.limit);
        Ok(Ranking { hits })
    }

    /// The best stretch of the best passage, else of the whole text.
    fn snippet(&self, request: &Request, candidate: &Candidate, body: &str) -> Result<String> {
        let words = text::parse(&request.question());
        let terms: Vec<&String> = words.terms.iter().chain(&words.phrases).collect();
        let passage = match candidate.chunk {
            Some(chunk) => self.index.passage(candidate.key, chunk)?.map(|(_, text)| text),
            None => None,
        };
        // A snippet of a huge text is looked for in its beginning: nobody waits for the end.
        let text = passage.as_deref().unwrap_or(body);
        Ok(snippet(&text[..text.floor_char_boundary(SNIPPET_FROM)], &terms, SNIPPET))
    }
}

/// Checks that an index in `dir`, if there is one, holds no collection that would be searched with the corpus.
fn nothing_else(dir: &Path) -> Result<()> {
    let Ok(index) = IndexReader::open(dir) else { return Ok(()) };
    match index.collections()?.into_iter().find(|(name, _)| name != COLLECTION) {
        Some((name, _)) => {
            let what = format!(
                "{}: the index holds collection `{name}`, which would be searched, too",
                dir.display()
            );
            Err(Error::usage(what).with_hint("choose a folder for this corpus alone"))
        }
        None => Ok(()),
    }
}

/// Runs `work` and returns its value with the stages that ran.
pub(super) fn traced<T>(work: impl FnOnce() -> Result<T>) -> Result<(T, Trace)> {
    let (value, trace) = capture(work);
    Ok((value?, trace))
}
