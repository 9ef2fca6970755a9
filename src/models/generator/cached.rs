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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::models::ScriptedGenerator;
    use crate::store::cache::CacheMode;
    use crate::trace::{Stage, capture};

    fn prompt(user: &str) -> Prompt {
        Prompt { user: user.into(), ..Prompt::default() }
    }

    /// Fails on every odd call, else says how often it was called.
    fn counting(disk: &Option<Arc<Cache>>) -> Cached<ScriptedGenerator> {
        let calls = AtomicU32::new(0);
        let script = move |_: &Prompt| match calls.fetch_add(1, Ordering::Relaxed) + 1 {
            n if n % 2 == 1 => Err(Error::new(ErrorKind::Timeout, "no answer within 5 ms")),
            n => Ok(format!("call {n}")),
        };
        Cached::new(ScriptedGenerator::new("counting", script), disk.clone())
    }

    fn ask(generator: &dyn Generator, prompt: &Prompt) -> (Result<Generated>, Stage) {
        let (answer, trace) = capture(|| generator.generate(prompt));
        (answer, trace.stages[0].clone())
    }

    #[test]
    fn an_answer_is_kept_and_a_failure_is_not() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let disk = Some(Arc::new(Cache::with_mode(&dir.path().join("cache.db"), CacheMode::On)));
        let generator = counting(&disk);
        let (failed, stage) = ask(&generator, &prompt("one two"));
        assert_eq!(failed.expect_err("fails").kind(), ErrorKind::Timeout);
        assert_eq!(stage.name, "generate");
        assert!(stage.fields["error"].as_str().is_some_and(|e| e.contains("5 ms")), "{stage:?}");

        let (first, stage) = ask(&generator, &prompt("one two"));
        let first = first.expect("answers");
        assert_eq!(first.text, "call 2");
        assert_eq!((&stage.fields["cached"], &stage.fields["output_tokens"]), (&false.into(), &2.into()));

        // Another process, and another time limit.
        let late = Prompt { timeout: std::time::Duration::from_millis(1), ..prompt("one two") };
        let (known, stage) = ask(&counting(&disk), &late);
        assert_eq!(known.expect("is known"), first);
        assert_eq!(stage.fields["cached"], true);
    }

    #[test]
    fn whatever_decides_an_answer_is_part_of_its_key() {
        let generator = counting(&None);
        let base = prompt("a");
        let others = [
            Prompt { trial: 1, ..base.clone() },
            Prompt { seed: 1, ..base.clone() },
            Prompt { temperature: 0.5, ..base.clone() },
            Prompt { max_tokens: 1, ..base.clone() },
            Prompt { system: "a".into(), user: String::new(), ..base.clone() },
            Prompt { examples: vec![("a".into(), String::new())], ..base.clone() },
            Prompt { schema: Some(serde_json::json!({ "required": ["b", "a"] })), ..base.clone() },
            Prompt { schema: Some(serde_json::json!({ "required": ["a", "b"] })), ..base.clone() },
        ];
        let keys: std::collections::HashSet<Key> =
            others.iter().chain([&base]).map(|prompt| generator.key(prompt).expect("is written")).collect();
        assert_eq!(keys.len(), others.len() + 1);
    }
}
