//! Models: the traits a pipeline sees, the catalogue of pinned artefacts, and how they reach the machine.

use std::sync::Arc;

use crate::error::Result;
use crate::settings::{ModelRole, ModelSettings};
use crate::store::cache::Cache;

mod cached;
pub mod catalogue;
mod check;
mod e5s1;
mod embedder;
mod fake;
mod fetch;
mod folder;
mod generator;
mod hub;
pub mod inventory;
mod languages;
mod logits;
mod onnx;
pub mod onnx_writer;
pub mod progress;
#[cfg(feature = "local-llm")]
mod requantise;
mod reranker;
mod resolve;
mod runtime;
mod support;
mod vectors;
mod wheel;

pub use fake::{HashEmbedder, ScriptedGenerator};
pub use folder::models_folder;
pub use generator::{Generated, Generator, PresetStatus, Prompt, generator, presets};
pub use support::{Support, UNRELATED, support};

/// What a text is to an embedder that treats questions and passages differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextRole {
    /// A question or a query.
    Query,
    /// A passage to be found.
    Passage,
}

/// Vectors of equal length, one row a text, each of L2 norm 1.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Embeddings {
    /// Components a row.
    pub dims: usize,
    /// Row-major components, `rows × dims`.
    pub data: Vec<f32>,
    /// How many of the texts were longer than the model reads and lost their end.
    pub truncated: usize,
}

impl Embeddings {
    /// The rows, in the order of the texts.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.data.chunks_exact(self.dims.max(1))
    }
}

/// The vectors of one text's tokens, each of L2 norm 1; special tokens are left out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TokenVectors {
    /// Components a token.
    pub dims: usize,
    /// Row-major components, `tokens × dims`.
    pub data: Vec<f32>,
}

/// Turns texts into vectors. Implementations are shared between threads.
pub trait Embedder: Send + Sync {
    /// The catalogue's or configuration's name.
    fn name(&self) -> &str;
    /// Identifies weights, runtime and conventions (pooling, prefixes, length): equal fingerprints mean
    /// comparable vectors. Known without loading the model.
    fn fingerprint(&self) -> &str;
    /// Components of a vector.
    fn dims(&self) -> usize;
    /// One vector a text, in order. Fails when the model or its runtime cannot be loaded or run.
    fn embed(&self, texts: &[&str], role: TextRole) -> Result<Embeddings>;
    /// One set of token vectors a text, in order, for late interaction. Fails like [`Embedder::embed`].
    fn embed_tokens(&self, texts: &[&str], role: TextRole) -> Result<Vec<TokenVectors>>;
}

/// Scores passages against a query together (a cross-encoder). Implementations are shared between threads.
pub trait Reranker: Send + Sync {
    /// The configuration's name.
    fn name(&self) -> &str;
    /// Identifies weights, runtime and conventions. Known without loading the model.
    fn fingerprint(&self) -> &str;
    /// One score a passage, in order; higher is more relevant, comparable only for one query.
    fn score(&self, query: &str, passages: &[&str]) -> Result<Vec<f32>>;
}

/// The embedder that `settings` name, answering from `cache` what it was asked before.
///
/// Nothing is loaded until a vector is missing from the cache, and then the model is fetched first, if it is
/// not on the machine. Two embedders of equal fingerprint give comparable vectors. The name `hash` gives a
/// [`HashEmbedder`]. Fails when the name is unknown or is no embedder's.
///
/// ```no_run
/// use rankgate::models::{self, TextRole};
///
/// let embedder = models::embedder(&Default::default(), None)?;
/// let vectors = embedder.embed(&["how do I cancel?"], TextRole::Query)?;
/// assert_eq!(vectors.data.len(), 384);
/// # Ok::<(), rankgate::Error>(())
/// ```
pub fn embedder(settings: &ModelSettings, cache: Option<Arc<Cache>>) -> Result<Arc<dyn Embedder>> {
    if settings.embedder == fake::HASH {
        return Ok(Arc::new(cached::Cached::new(HashEmbedder::default(), None)));
    }
    let resolved = resolve::Resolved::find(&settings.embedder, ModelRole::Embedder, settings)?;
    Ok(Arc::new(cached::Cached::new(embedder::OnnxEmbedder::new(resolved, settings)?, cache)))
}

/// The cross-encoder that `settings` name, or `None` when they name none; else like [`embedder`].
pub fn reranker(settings: &ModelSettings, cache: Option<Arc<Cache>>) -> Result<Option<Arc<dyn Reranker>>> {
    if settings.reranker.is_empty() {
        return Ok(None);
    }
    let resolved = resolve::Resolved::find(&settings.reranker, ModelRole::CrossEncoder, settings)?;
    Ok(Some(Arc::new(cached::Cached::new(reranker::CrossEncoder::new(resolved, settings)?, cache))))
}
