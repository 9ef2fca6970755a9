//! Generators: language models that write text, in this process or on a server.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Result;
use crate::settings::ModelSettings;
use crate::store::cache::Cache;

mod cached;
mod client;
#[cfg(feature = "local-llm")]
mod local;
mod preset;
mod server;

pub use preset::{PresetStatus, presets};

/// What a generator is asked. Equal prompts to equal models have equal answers from the cache; the time limit
/// is no part of that.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prompt {
    /// What the model is to do.
    pub system: String,
    /// Worked examples: what was asked, what was answered.
    pub examples: Vec<(String, String)>,
    /// What is asked.
    pub user: String,
    /// The JSON schema of the answer; keys are written in its order. `None` asks for plain text.
    pub schema: Option<Value>,
    /// The longest answer in tokens. With a schema it must leave room for the longest valid one.
    pub max_tokens: u32,
    /// 0 takes the likeliest token every time; above it, tokens are drawn.
    pub temperature: f32,
    /// Where drawing begins: equal seeds, equal answers.
    pub seed: u64,
    /// Which execution of the same question this is; part of where drawing begins.
    pub trial: u32,
    /// How long the answer may take, retries included.
    #[serde(skip)]
    pub timeout: Duration,
}

impl Default for Prompt {
    fn default() -> Self {
        Self {
            system: String::new(),
            examples: Vec::new(),
            user: String::new(),
            schema: None,
            max_tokens: 512,
            temperature: 0.0,
            seed: 42,
            trial: 0,
            timeout: Duration::from_secs(60),
        }
    }
}

/// What a generator answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Generated {
    /// The text. When a schema was given, JSON that is valid under it.
    pub text: String,
    /// Tokens read.
    pub prompt_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// US dollars, where the preset states prices.
    pub cost: Option<f64>,
    /// Whether the answer was cut at `max_tokens`. Never so with a schema: that is an error.
    pub cut: bool,
}

/// Writes text. Implementations are shared between threads.
pub trait Generator: Send + Sync {
    /// The catalogue's or the preset's name of the model.
    fn name(&self) -> &str;
    /// Identifies weights and implementation: equal fingerprints answer alike. Known without loading the model.
    fn fingerprint(&self) -> &str;
    /// The answer to `prompt`.
    ///
    /// Fails when the model cannot be loaded or reached, with [`ErrorKind::Timeout`](crate::ErrorKind::Timeout)
    /// when the time limit ran out, and when a schema was given and the answer is not valid under it.
    fn generate(&self, prompt: &Prompt) -> Result<Generated>;
}

/// The generator of the preset that `settings` name, answering from `cache` what it was asked before.
///
/// Nothing is loaded, fetched or called before the first question that the cache cannot answer. Fails when the
/// preset is unknown, or local while the feature `local-llm` is off.
pub fn generator(settings: &ModelSettings, cache: Option<Arc<Cache>>) -> Result<Arc<dyn Generator>> {
    preset::open(&settings.preset, settings, cache)
}
