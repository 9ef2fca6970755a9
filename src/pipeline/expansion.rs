//! Expansion: what else is searched for beside a query.
//!
//! A small language model ([`ModelExpander`]) or a few rules ([`LexicalExpander`]) propose other words for the
//! lexical lane, other questions and a hypothetical answer for the vector lane. Neither is trusted: whatever they
//! propose goes through the same guardrails, and counts little beside the query.

use std::time::Duration;

use schemars::Schema;
use sha2::{Digest, Sha256};

use crate::corpus::{Expansion, hex};
use crate::error::Result;

mod guard;
mod lexical;
mod model;
mod signal;
mod stage;

pub use guard::guard;
pub use lexical::LexicalExpander;
pub use model::{ModelExpander, PROMPT_VERSION};
pub(super) use stage::Lanes;

/// The most variants of a kind.
pub const MOST: usize = 5;
/// What stands between the variants in the fields `lexical` and `vector` of the stage `expansion`.
pub const SEPARATOR: &str = " | ";

/// What is to be expanded.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpansionRequest<'a> {
    /// The query as typed.
    pub query: &'a str,
    /// Its language, if stated; else it is guessed.
    pub lang: Option<&'a str>,
    /// What the query is for, in the words of whoever asks.
    pub intent: Option<&'a str>,
    /// The passages that a plain search finds first, best first.
    pub feedback: &'a [String],
    /// 0 takes the model's likeliest answer; above it, answers differ by seed and trial.
    pub temperature: f32,
    /// Where drawing begins.
    pub seed: u64,
    /// Which execution of the same query this is.
    pub trial: u32,
    /// How long it may take.
    pub timeout: Duration,
}

impl<'a> ExpansionRequest<'a> {
    /// A request to expand `query`, without drawing, within a minute.
    pub fn new(query: &'a str) -> Self {
        Self {
            query,
            lang: None,
            intent: None,
            feedback: &[],
            temperature: 0.0,
            seed: 42,
            trial: 0,
            timeout: Duration::from_secs(60),
        }
    }

    /// Identifies the expansion: a SHA-256, in hexadecimal, over the version of the rules or of the prompt, the
    /// model's fingerprint (empty without a model), query, language and intent, joined by NUL.
    pub fn key(&self, version: &str, fingerprint: &str) -> String {
        let parts = [
            version,
            fingerprint,
            self.query,
            self.lang.unwrap_or_default(),
            self.intent.unwrap_or_default(),
        ];
        hex(&Sha256::digest(parts.join("\0")))
    }
}

/// Proposes what else to search for. Implementations are shared between threads.
pub trait Expander: Send + Sync {
    /// `model`, `lexical`, or a name of your own.
    fn name(&self) -> &str;
    /// Changes when equal requests may be answered otherwise: the version of a prompt, or of rules.
    fn version(&self) -> &str;
    /// The fingerprint of the language model, if there is one.
    fn model(&self) -> Option<&str>;
    /// What else to search for; guardrails come after it.
    ///
    /// Fails when a model does, in time or altogether, and when its answer is not of the format `expansion@1.0`.
    fn expand(&self, request: &ExpansionRequest<'_>) -> Result<Expansion>;
}

/// The published JSON schema of an [`Expansion`], `expansion@1.0`: draft-07 and closed.
///
/// ```
/// let schema = rankgate::pipeline::expansion::schema().to_value();
/// assert_eq!(schema["$id"], "rankgate:expansion@1.0");
/// assert_eq!(schema["properties"]["lexicalQueries"]["maxItems"], 5);
/// ```
pub fn schema() -> Schema {
    let generator = schemars::generate::SchemaSettings::draft07().into_generator();
    generator.into_root_schema_for::<Expansion>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_the_one_of_the_format_and_trials_share_it() {
        let request = ExpansionRequest { lang: Some("de"), ..ExpansionRequest::new("Frist") };
        let expected = hex(&Sha256::digest("v1\0model\0Frist\0de\0"));
        assert_eq!(request.key("v1", "model"), expected);
        assert_eq!(ExpansionRequest { trial: 2, ..request.clone() }.key("v1", "model"), expected);
        assert_ne!(ExpansionRequest { intent: Some("law"), ..request }.key("v1", "model"), expected);
    }
}
