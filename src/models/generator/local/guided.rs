//! Which tokens may come next: only those with which the answer can still become valid under a schema.

use std::sync::Arc;

use llguidance::api::TopLevelGrammar;
use llguidance::earley::SlicedBiasComputer;
use llguidance::toktrie::{InferenceCapabilities, SimpleVob, TokEnv, TokRxInfo, TokTrie, TokenizerEnv};
use llguidance::{Matcher, ParserFactory};
use serde_json::{Value, json};

use super::tokens::Vocabulary;
use crate::error::{Error, ErrorKind, Result};

/// Compiles schemas for one vocabulary.
pub(super) struct Grammars {
    factory: ParserFactory,
    /// Every token that stands for text, and the one that ends it.
    text: SimpleVob,
}

/// What comes next.
pub(super) enum Step {
    /// The answer is complete.
    Done,
    /// Nothing else is possible, so the model need not be asked.
    Forced(Vec<u32>),
    /// One of these.
    Choose(SimpleVob),
}

impl Grammars {
    pub(super) fn new(vocabulary: Arc<Vocabulary>) -> Result<Self> {
        let info = TokRxInfo::new(vocabulary.words.len() as u32, vocabulary.end);
        let trie = TokTrie::from(&info, &vocabulary.words);
        let mut text = trie.alloc_token_set();
        for token in 0..info.vocab_size {
            if token == vocabulary.end || vocabulary.is_text(token) {
                text.allow_token(token);
            }
        }
        let tokens: TokEnv = Arc::new(Tokens { trie, vocabulary });
        let forced = InferenceCapabilities { ff_tokens: true, ..Default::default() };
        let mut factory = ParserFactory::new(&tokens, forced, &SlicedBiasComputer::json_slices())
            .map_err(|e| Error::new(ErrorKind::Internal, "llguidance does not start").with_source(e))?;
        factory.quiet();
        Ok(Self { factory, text })
    }

    /// A guide through one answer; without a schema, to any text. Fails when the schema cannot be used.
    pub(super) fn guide(&self, schema: Option<&Value>) -> Result<Guide> {
        let Some(schema) = schema else { return Ok(Guide::Text(self.text.clone())) };
        let Value::Object(keys) = schema else {
            return Err(Error::usage(format!("the answer's schema must be an object, not `{schema}`")));
        };
        let mut keys = keys.clone();
        // Blanks between the parts would cost tokens, and a model of this size can lose itself in them; \u
        // escapes would let a short string take six tokens a character.
        let compact = json!({ "whitespace_flexible": false, "json_allowed_escapes": "n\"\\" });
        keys.insert("x-guidance".into(), compact);
        let grammar = TopLevelGrammar::from_json_schema(Value::Object(keys));
        let matcher = Matcher::new(self.factory.create_parser(grammar));
        match matcher.get_error() {
            Some(e) => Err(Error::usage("the answer's schema cannot be used").with_source(e)),
            None => Ok(Guide::Schema(Box::new(matcher))),
        }
    }
}

/// The state of one answer.
pub(super) enum Guide {
    Schema(Box<Matcher>),
    Text(SimpleVob),
}

impl Guide {
    /// What may come after what was accepted so far. What is forced counts as accepted.
    pub(super) fn step(&mut self) -> Result<Step> {
        let matcher = match self {
            Self::Schema(matcher) => matcher,
            Self::Text(any) => return Ok(Step::Choose(any.clone())),
        };
        let forced = if matcher.is_stopped() { Vec::new() } else { matcher.consume_ff_tokens() };
        match matcher.get_error() {
            Some(e) => Err(failed(e)),
            None if !forced.is_empty() => Ok(Step::Forced(forced)),
            None if matcher.is_stopped() => Ok(Step::Done),
            None => matcher.compute_mask().map(Step::Choose).map_err(|e| failed(e.to_string())),
        }
    }

    /// Takes a token of the mask.
    pub(super) fn accept(&mut self, token: u32) -> Result<()> {
        match self {
            Self::Schema(matcher) => matcher.consume_token(token).map_err(|e| failed(e.to_string())),
            Self::Text(_) => Ok(()),
        }
    }
}

fn failed(why: String) -> Error {
    Error::new(ErrorKind::Model, "the answer cannot be kept to its schema").with_source(why)
}

/// The vocabulary as llguidance sees it. Text that is forced is tokenised as the model learnt it.
struct Tokens {
    trie: TokTrie,
    vocabulary: Arc<Vocabulary>,
}

impl TokenizerEnv for Tokens {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<u32> {
        let tokens = |text: &str| self.vocabulary.tokens(text).unwrap_or_default();
        self.trie.tokenize_with_greedy_fallback(bytes, tokens)
    }

    fn tokenize_is_canonical(&self) -> bool {
        true
    }
}
