//! Models behind a cache: what was asked before is answered without loading anything. Also the place where
//! a model reports itself to the trace.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::field::Empty;
use tracing::info_span;

use super::{Embedder, Embeddings, Reranker, TextRole, TokenVectors};
use crate::error::Result;
use crate::store::cache::{Cache, Key, cache_key};

/// Bytes of token vectors that stay in memory.
const TOKEN_MEMORY: usize = 128 << 20;
/// Passages that may be asked for again, as by the support of a sentence.
const FEW: usize = 64;

/// An embedder or reranker whose answers are kept on disk. Passages' vectors are not: an index keeps them.
///
/// Queries are embedded one by one. With 8-bit activations a vector depends a little on the texts that are
/// in the batch with it, and what is cached must not.
pub(super) struct Cached<M> {
    model: M,
    disk: Option<Arc<Cache>>,
    tokens: Mutex<Generations>,
}

impl<M> Cached<M> {
    pub(super) fn new(model: M, disk: Option<Arc<Cache>>) -> Self {
        Self { model, disk, tokens: Mutex::default() }
    }

    fn get(&self, key: &Key) -> Option<Vec<u8>> {
        self.disk.as_ref()?.get(key)
    }

    fn put(&self, key: &Key, value: impl FnOnce() -> Vec<u8>) {
        if let Some(disk) = &self.disk {
            disk.put(key, &value());
        }
    }
}

impl<E: Embedder> Cached<E> {
    fn key(&self, stage: &str, text: &str, role: TextRole) -> Key {
        let role: &[u8] = if role == TextRole::Query { b"query" } else { b"passage" };
        cache_key(stage, &[self.model.fingerprint().as_bytes(), role, text.as_bytes()])
    }

    /// One query's vector, whether the query was truncated, and whether both were known.
    fn query(&self, text: &str) -> Result<(Vec<f32>, bool, bool)> {
        let key = self.key("embed", text, TextRole::Query);
        if let Some((vector, truncated)) = self.get(&key).and_then(|v| decode_vector(&v, self.model.dims())) {
            return Ok((vector, truncated, true));
        }
        let Embeddings { data, truncated, .. } = self.model.embed(&[text], TextRole::Query)?;
        self.put(&key, || encode_vector(&data, truncated > 0));
        Ok((data, truncated > 0, false))
    }

    /// The vectors of passages, and how many were known. A few are kept, as one entry, since what is batched together
    /// shows in the last digits; many are an index's, which keeps them itself.
    fn passages(&self, texts: &[&str]) -> Result<(Embeddings, usize)> {
        if texts.len() > FEW {
            return Ok((self.model.embed(texts, TextRole::Passage)?, 0));
        }
        let parts: Vec<&[u8]> =
            [self.model.fingerprint()].iter().chain(texts).map(|part| part.as_bytes()).collect();
        let key = cache_key("embed_passages", &parts);
        if let Some(known) = self.get(&key).and_then(|v| decode_vectors(&v, self.model.dims(), texts.len())) {
            return Ok((known, texts.len()));
        }
        let found = self.model.embed(texts, TextRole::Passage)?;
        self.put(&key, || encode_vectors(&found));
        Ok((found, 0))
    }

    /// Known token vectors of a text, from memory or disk.
    fn known_tokens(&self, key: &Key) -> Option<Arc<QuantisedTokens>> {
        let mut memory = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        memory.get(key).or_else(|| {
            let tokens = Arc::new(QuantisedTokens::decode(self.get(key)?, self.model.dims())?);
            memory.put(*key, tokens.clone());
            Some(tokens)
        })
    }
}

impl<E: Embedder> Embedder for Cached<E> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn fingerprint(&self) -> &str {
        self.model.fingerprint()
    }

    fn dims(&self) -> usize {
        self.model.dims()
    }

    fn embed(&self, texts: &[&str], role: TextRole) -> Result<Embeddings> {
        let span = info_span!(
            "embed",
            model = self.fingerprint(),
            texts = texts.len(),
            truncated = Empty,
            cached = Empty,
            error = Empty
        );
        let _entered = span.enter();
        let embed = || match role {
            TextRole::Passage => self.passages(texts),
            TextRole::Query => {
                let mut all = Embeddings { dims: self.dims(), ..Embeddings::default() };
                let mut known = 0;
                for text in texts {
                    let (vector, truncated, cached) = self.query(text)?;
                    all.data.extend(vector);
                    all.truncated += usize::from(truncated);
                    known += usize::from(cached);
                }
                Ok((all, known))
            }
        };
        let (embeddings, cached) = reported(&span, embed())?;
        span.record("truncated", embeddings.truncated);
        span.record("cached", cached);
        Ok(embeddings)
    }

    fn embed_tokens(&self, texts: &[&str], role: TextRole) -> Result<Vec<TokenVectors>> {
        let span = info_span!(
            "embed_tokens",
            model = self.fingerprint(),
            texts = texts.len(),
            cached = Empty,
            error = Empty
        );
        let _entered = span.enter();
        let keys: Vec<Key> = texts.iter().map(|text| self.key("embed_tokens", text, role)).collect();
        let mut found: Vec<Option<Arc<QuantisedTokens>>> =
            keys.iter().map(|key| self.known_tokens(key)).collect();
        let missing: Vec<usize> = (0..texts.len()).filter(|&i| found[i].is_none()).collect();
        span.record("cached", texts.len() - missing.len());
        if !missing.is_empty() {
            let asked: Vec<&str> = missing.iter().map(|&i| texts[i]).collect();
            let vectors = reported(&span, self.model.embed_tokens(&asked, role))?;
            for (&i, vectors) in missing.iter().zip(&vectors) {
                let tokens = Arc::new(QuantisedTokens::new(vectors));
                self.put(&keys[i], || tokens.components.clone());
                self.tokens.lock().unwrap_or_else(PoisonError::into_inner).put(keys[i], tokens.clone());
                found[i] = Some(tokens);
            }
        }
        // New vectors go through eight bits like known ones: the answer does not depend on what was cached.
        Ok(found.into_iter().flatten().map(|tokens| tokens.vectors()).collect())
    }
}

impl<R: Reranker> Reranker for Cached<R> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn fingerprint(&self) -> &str {
        self.model.fingerprint()
    }

    fn score(&self, query: &str, passages: &[&str]) -> Result<Vec<f32>> {
        let span = info_span!(
            "cross_encode",
            model = self.fingerprint(),
            texts = passages.len(),
            truncated = Empty,
            cached = Empty,
            error = Empty
        );
        let _entered = span.enter();
        let key = |passage: &&str| {
            cache_key("score", &[self.fingerprint().as_bytes(), query.as_bytes(), passage.as_bytes()])
        };
        let keys: Vec<Key> = passages.iter().map(key).collect();
        let known = |key| self.get(key)?.try_into().ok().map(f32::from_le_bytes);
        let mut scores: Vec<Option<f32>> = keys.iter().map(known).collect();
        let missing: Vec<usize> = (0..passages.len()).filter(|&i| scores[i].is_none()).collect();
        span.record("cached", passages.len() - missing.len());
        if !missing.is_empty() {
            let asked: Vec<&str> = missing.iter().map(|&i| passages[i]).collect();
            let found = reported(&span, self.model.score(query, &asked))?;
            for (&i, score) in missing.iter().zip(found) {
                self.put(&keys[i], || score.to_le_bytes().to_vec());
                scores[i] = Some(score);
            }
        }
        Ok(scores.into_iter().flatten().collect())
    }
}

/// Notes a failure in the stage's trace.
fn reported<T>(span: &tracing::Span, result: Result<T>) -> Result<T> {
    result.inspect_err(|error| {
        span.record("error", error.to_string());
    })
}

/// A byte for "truncated", then the components, little-endian.
fn encode_vector(vector: &[f32], truncated: bool) -> Vec<u8> {
    let mut bytes = vec![u8::from(truncated)];
    bytes.extend(vector.iter().flat_map(|x| x.to_le_bytes()));
    bytes
}

fn decode_vector(bytes: &[u8], dims: usize) -> Option<(Vec<f32>, bool)> {
    let (&truncated, vector) = bytes.split_first()?;
    let vector: Vec<f32> = vector.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect();
    (bytes.len() == 1 + 4 * dims && vector.len() == dims).then_some((vector, truncated == 1))
}

/// Four bytes for how many were truncated, then the components, little-endian.
fn encode_vectors(vectors: &Embeddings) -> Vec<u8> {
    let mut bytes = (vectors.truncated as u32).to_le_bytes().to_vec();
    bytes.extend(vectors.data.iter().flat_map(|x| x.to_le_bytes()));
    bytes
}

fn decode_vectors(bytes: &[u8], dims: usize, rows: usize) -> Option<Embeddings> {
    let (truncated, components) = bytes.split_first_chunk()?;
    let (components, []) = components.as_chunks() else { return None };
    let data: Vec<f32> = components.iter().map(|&b| f32::from_le_bytes(b)).collect();
    let truncated = u32::from_le_bytes(*truncated) as usize;
    (data.len() == dims * rows).then_some(Embeddings { dims, data, truncated })
}

/// Token vectors in a quarter of their size: signed bytes. All have norm 1, so no scale need be kept.
#[derive(Debug, PartialEq)]
struct QuantisedTokens {
    dims: usize,
    components: Vec<u8>,
}

impl QuantisedTokens {
    fn new(vectors: &TokenVectors) -> Self {
        let dims = vectors.dims.max(1);
        let mut components = Vec::with_capacity(vectors.data.len());
        for token in vectors.data.chunks_exact(dims) {
            let largest = token.iter().fold(f32::MIN_POSITIVE, |largest, x| largest.max(x.abs()));
            components.extend(token.iter().map(|x| (x / largest * 127.0).round() as i8 as u8));
        }
        Self { dims, components }
    }

    fn decode(bytes: Vec<u8>, dims: usize) -> Option<Self> {
        bytes.len().is_multiple_of(dims).then_some(Self { dims, components: bytes })
    }

    /// The vectors again, each of norm 1.
    fn vectors(&self) -> TokenVectors {
        let mut data: Vec<f32> = self.components.iter().map(|&x| f32::from(x as i8)).collect();
        for token in data.chunks_exact_mut(self.dims) {
            let norm = token.iter().map(|x| x * x).sum::<f32>().sqrt().max(1.0);
            token.iter_mut().for_each(|x| *x /= norm);
        }
        TokenVectors { dims: self.dims, data }
    }
}

/// A bounded memory that forgets what was not used lately. What is asked for moves to the young half; when
/// that is full, it becomes the old half, and the former old half is forgotten.
#[derive(Default)]
struct Generations {
    young: HashMap<Key, Arc<QuantisedTokens>>,
    old: HashMap<Key, Arc<QuantisedTokens>>,
    young_bytes: usize,
}

impl Generations {
    fn get(&mut self, key: &Key) -> Option<Arc<QuantisedTokens>> {
        if let Some(found) = self.young.get(key) {
            return Some(found.clone());
        }
        let found = self.old.remove(key)?;
        self.put(*key, found.clone());
        Some(found)
    }

    fn put(&mut self, key: Key, tokens: Arc<QuantisedTokens>) {
        let bytes = tokens.components.len();
        if self.young_bytes + bytes > TOKEN_MEMORY / 2 {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        self.young_bytes += bytes;
        self.young.insert(key, tokens);
    }
}

#[cfg(test)]
mod tests {
    use super::super::HashEmbedder;
    use super::*;
    use crate::store::cache::CacheMode;

    fn cache(dir: &tempfile::TempDir) -> Option<Arc<Cache>> {
        Some(Arc::new(Cache::with_mode(&dir.path().join("cache.db"), CacheMode::On)))
    }

    #[test]
    fn token_vectors_survive_eight_bits_and_the_disk() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let texts = ["cancel the contract", "", "weather"];
        let exact = HashEmbedder::new(64).embed_tokens(&texts, TextRole::Passage).expect("embeds");
        let first = Cached::new(HashEmbedder::new(64), cache(&dir));
        let found = first.embed_tokens(&texts, TextRole::Passage).expect("embeds");
        for (exact, found) in exact.iter().zip(&found) {
            assert_eq!(exact.data.len(), found.data.len());
            for (a, b) in exact.data.chunks(64).zip(found.data.chunks(64)) {
                let cosine: f32 = a.iter().zip(b).map(|(x, y)| x * y).sum();
                assert!(cosine > 0.9999, "{cosine}");
            }
        }
        let second = Cached::new(HashEmbedder::new(64), cache(&dir));
        let (known, trace) = crate::trace::capture(|| second.embed_tokens(&texts, TextRole::Passage));
        assert_eq!(known.expect("embeds"), found);
        assert_eq!(trace.stages[0].fields["cached"], 3);
    }

    #[test]
    fn a_query_is_no_passage_and_another_model_no_hit() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let embed = |dims, role| {
            let embedder = Cached::new(HashEmbedder::new(dims), cache(&dir));
            let (_, trace) = crate::trace::capture(|| embedder.embed(&["text"], role));
            trace.stages[0].fields["cached"].clone()
        };
        assert_eq!(embed(64, TextRole::Query), 0);
        assert_eq!(embed(64, TextRole::Query), 1);
        assert_eq!(embed(32, TextRole::Query), 0);
        assert_eq!(embed(64, TextRole::Passage), 0);
        assert_eq!(embed(64, TextRole::Passage), 1);
        assert_eq!(embed(32, TextRole::Passage), 0);
    }

    #[test]
    fn a_few_passages_are_kept_as_they_came() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let embedder = Cached::new(HashEmbedder::new(64), cache(&dir));
        let texts = ["cancel the contract", "", "weather"];
        let first = embedder.embed(&texts, TextRole::Passage).expect("embeds");
        let (again, trace) = crate::trace::capture(|| embedder.embed(&texts, TextRole::Passage));
        assert_eq!(again.expect("embeds"), first);
        assert_eq!(trace.stages[0].fields["cached"], 3);
        assert_eq!(decode_vectors(&encode_vectors(&first)[1..], 64, 3), None, "damaged");
    }

    #[test]
    fn memory_is_bounded_and_keeps_what_is_used() {
        let mut memory = Generations::default();
        let large = || Arc::new(QuantisedTokens { dims: 1, components: vec![0; TOKEN_MEMORY / 8] });
        let key = |n: u8| [n; 32];
        for n in 0..20 {
            memory.put(key(n), large());
            assert!(memory.get(&key(0)).is_some(), "asked for all the time");
        }
        assert!(memory.get(&key(1)).is_none(), "forgotten");
        assert!(memory.young.len() + memory.old.len() <= 8);
    }
}
