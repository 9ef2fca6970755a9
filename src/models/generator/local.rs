//! A language model in this process: SmolLM2 through candle, kept to a schema by llguidance.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use candle_core::quantized::gguf_file::Content;
use once_cell::sync::OnceCell;
use sha2::{Digest, Sha256};

use super::{Generated, Generator, Prompt};
use crate::corpus::hex;
use crate::error::{Error, ErrorKind, Result};
use crate::models::catalogue::{self, Entry, GENERATOR};
use crate::models::fetch::{Trust, ensure};
use crate::settings::ModelSettings;

mod guided;
mod llama;
mod sampler;
mod threads;
mod tokens;

use guided::{Grammars, Guide, Step};
use llama::{Llama, Reading};
use sampler::Sampler;
use tokens::Vocabulary;

/// What decides an answer beside weights and prompt. The libraries' versions are those of `Cargo.toml`.
const IMPLEMENTATION: [&str; 3] = ["candle 0.11.1", "llguidance 1.9.1", "rankgate 1"];

/// Runs the catalogue's generator. It is loaded, and if need be fetched, at the first prompt, and answers one
/// prompt at a time.
///
/// A prompt's time limit covers reading and writing, but neither the wait for other callers nor the loading:
/// under parallel tests these say nothing about the model.
pub(super) struct LocalGenerator {
    entry: &'static Entry,
    settings: ModelSettings,
    fingerprint: String,
    model: OnceCell<Model>,
}

impl LocalGenerator {
    /// Nothing is loaded yet, nor fetched.
    pub(super) fn new(settings: &ModelSettings) -> Result<Self> {
        let entry = catalogue::find(GENERATOR).ok_or_else(|| catalogue::unknown(GENERATOR, settings))?;
        let files: Vec<_> = entry.files().iter().map(|file| file.sha256).collect();
        let canonical = serde_json::json!([files, IMPLEMENTATION]);
        let fingerprint = hex(&Sha256::digest(canonical.to_string()));
        Ok(Self { entry, settings: settings.clone(), fingerprint, model: OnceCell::new() })
    }
}

impl Generator for LocalGenerator {
    fn name(&self) -> &str {
        self.entry.name
    }

    fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    fn generate(&self, prompt: &Prompt) -> Result<Generated> {
        let named = |e: Error| e.context(format!("model `{}`", self.entry.name));
        let model = self.model.get_or_try_init(|| {
            // Files are installed verified; their hash is all there is to prove.
            let folder = ensure(self.entry, &self.settings, Trust::Size, |_, _, _| Ok(()))?;
            Model::load(&folder.join(self.entry.files()[0].name)).map_err(named)
        })?;
        threads::with(self.settings.threads, || model.answer(prompt)).map_err(named)
    }
}

/// A loaded model.
struct Model {
    vocabulary: Arc<Vocabulary>,
    grammars: Grammars,
    llama: Mutex<Llama>,
}

impl Model {
    fn load(path: &Path) -> Result<Self> {
        let failed = |e: candle_core::Error| {
            Error::new(ErrorKind::Model, format!("{} cannot be loaded", path.display()))
                .with_source(e.to_string())
                .with_hint(format!(
                    "it may be damaged: `rankgate models verify` tells, `rankgate models fetch {GENERATOR}` repairs"
                ))
        };
        let file = std::fs::File::open(path).map_err(|e| Error::io("read", path, e))?;
        let mut reader = std::io::BufReader::new(file);
        let content = Content::read(&mut reader).map_err(failed)?;
        let vocabulary = Arc::new(Vocabulary::read(&content).map_err(failed)?);
        let llama = Llama::read(content, &mut reader).map_err(failed)?;
        let grammars = Grammars::new(vocabulary.clone())?;
        Ok(Self { vocabulary, grammars, llama: Mutex::new(llama) })
    }

    fn answer(&self, prompt: &Prompt) -> Result<Generated> {
        let guide = self.grammars.guide(prompt.schema.as_ref())?;
        // A panic of another thread leaves the weights as usable as before: every answer works on a copy.
        let mut llama = self.llama.lock().unwrap_or_else(PoisonError::into_inner);
        let end = Instant::now().checked_add(prompt.timeout);
        let in_time = || match end {
            Some(end) if Instant::now() >= end => Err(late(prompt)),
            _ => Ok(()),
        };
        fits(self.vocabulary.least(prompt), prompt, llama.context)?;
        let chat = self.vocabulary.chat(prompt).map_err(llama::failed)?;
        fits(chat.len(), prompt, llama.context)?;
        let mut reading = llama.after(&chat.shared, &in_time)?;
        let scores = reading.read(&chat.own, &in_time)?;
        let (written, cut) = self.write(prompt, guide, reading, scores, &in_time)?;
        if cut && prompt.schema.is_some() {
            return Err(Error::new(
                ErrorKind::Model,
                format!("the answer was cut at {} tokens, before its JSON was complete", prompt.max_tokens),
            )
            .with_hint("raise `max_tokens` above the longest answer that the schema allows"));
        }
        Ok(Generated {
            text: self.vocabulary.text(&written),
            prompt_tokens: chat.len() as u64,
            output_tokens: written.len() as u64,
            cost: None,
            cut,
        })
    }

    /// The answer's tokens after the prompt that was read, and whether `max_tokens` cut it.
    fn write(
        &self,
        prompt: &Prompt,
        mut guide: Guide,
        mut reading: Reading,
        mut scores: Vec<f32>,
        in_time: &dyn Fn() -> Result<()>,
    ) -> Result<(Vec<u32>, bool)> {
        let mut sampler = Sampler::new(prompt);
        let mut written = Vec::new();
        loop {
            let next = match guide.step()? {
                Step::Done => return Ok((written, false)),
                Step::Forced(tokens) => tokens,
                Step::Choose(allowed) => {
                    let token = sampler.pick(scores, &written, |token| allowed.is_allowed(token));
                    let token = token.ok_or_else(|| Error::new(ErrorKind::Model, "no token has a score"))?;
                    if token == self.vocabulary.end {
                        return Ok((written, false));
                    }
                    guide.accept(token)?;
                    vec![token]
                }
            };
            if written.len() + next.len() > prompt.max_tokens as usize {
                return Ok((written, true));
            }
            written.extend(&next);
            scores = reading.read(&next, in_time)?;
        }
    }
}

/// Fails unless `tokens` and the answer fit into what the model reads.
fn fits(tokens: usize, prompt: &Prompt, context: usize) -> Result<()> {
    if tokens.saturating_add(prompt.max_tokens as usize) <= context {
        return Ok(());
    }
    Err(Error::input(format!(
        "a prompt of at least {tokens} tokens and an answer of {} are too long together: it reads {context}",
        prompt.max_tokens
    ))
    .with_hint("shorten the prompt, or lower `max_tokens`"))
}

fn late(prompt: &Prompt) -> Error {
    Error::new(ErrorKind::Timeout, format!("no answer within {} ms", prompt.timeout.as_millis()))
        .with_hint("raise the time limit, or lower `max_tokens`")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A library that computes otherwise must not be answered for by the cache of another.
    #[test]
    fn the_fingerprint_names_the_versions_that_are_built() {
        let manifest = include_str!("../../../Cargo.toml");
        for (package, named) in [("candle-core", IMPLEMENTATION[0]), ("llguidance", IMPLEMENTATION[1])] {
            let version = named.split_once(' ').expect("has a version").1;
            assert!(manifest.contains(&format!("{package} = {{ version = \"={version}\"")), "{named}");
        }
    }
}
