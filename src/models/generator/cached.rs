//! A generator that answers from the cache what it was asked before, and reports itself as the stage `generate`.

use std::sync::Arc;

use tracing::field::Empty;
use tracing::info_span;

use super::{Generated, Generator, Prompt};
use crate::error::{Error, ErrorKind, Result};
use crate::store::cache::{Cache, Key, cache_key};

/// Keeps the answers of `model` on disk. Failures are not kept: whoever asks again, tries again.
pub(super) struct Cached<G> {
    model: G,
    disk: Option<Arc<Cache>>,
}

impl<G: Generator> Cached<G> {
    pub(super) fn new(model: G, disk: Option<Arc<Cache>>) -> Self {
        Self { model, disk }
    }

    fn key(&self, prompt: &Prompt) -> Result<Key> {
        let prompt = serde_json::to_vec(prompt)
            .map_err(|e| Error::new(ErrorKind::Internal, "a prompt cannot be written").with_source(e))?;
        Ok(cache_key("generate", &[self.model.fingerprint().as_bytes(), &prompt]))
    }

    /// The answer, and whether it was known.
    fn answer(&self, prompt: &Prompt) -> Result<(Generated, bool)> {
        let Some(disk) = &self.disk else { return Ok((self.model.generate(prompt)?, false)) };
        let key = self.key(prompt)?;
        if let Some(known) = disk.get(&key).and_then(|value| serde_json::from_slice(&value).ok()) {
            return Ok((known, true));
        }
        let answer = self.model.generate(prompt)?;
        if let Ok(value) = serde_json::to_vec(&answer) {
            disk.put(&key, &value);
        }
        Ok((answer, false))
    }
}

impl<G: Generator> Generator for Cached<G> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn fingerprint(&self) -> &str {
        self.model.fingerprint()
    }

    /// In the trace, `cost` is what was spent now: a known answer has none.
    fn generate(&self, prompt: &Prompt) -> Result<Generated> {
        let span = info_span!(
            "generate",
            model = self.fingerprint(),
            trial = prompt.trial,
            prompt_tokens = Empty,
            output_tokens = Empty,
            cost = Empty,
            cached = Empty,
            error = Empty
        );
        let _entered = span.enter();
        let (answer, known) = self.answer(prompt).inspect_err(|error| {
            span.record("error", error.to_string());
        })?;
        span.record("prompt_tokens", answer.prompt_tokens);
        span.record("output_tokens", answer.output_tokens);
        if let Some(cost) = answer.cost.filter(|_| !known) {
            span.record("cost", cost);
        }
        span.record("cached", known);
        Ok(answer)
    }
}
