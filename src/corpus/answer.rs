//! Answers that cite passages, and what is put into a search beside the query.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A passage that an answerer was given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Passage {
    /// The document it is from.
    pub docid: String,
    /// The document's short content hash, `#a1b2c3`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hash: String,
    /// The document's title.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// The text.
    pub text: String,
}

/// An answer to a question, with citations `[n]` in its text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// The answer; empty when there is none.
    pub text: String,
    /// Why there is no answer: the evidence is missing, or does not support what was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abstained: Option<String>,
    /// The numbers that the text cites, ascending, each once. Number n is `passages[n - 1]`.
    pub citations: Vec<usize>,
    /// What the answerer was given.
    pub passages: Vec<Passage>,
    /// Citations that were written and resolve to no passage; they are taken out of the text.
    pub invalid_citations: usize,
    /// Who answered: `extractive`, or the generator's name.
    pub answerer: String,
}

/// What is searched for beside a query: other words for the lexical lane, other questions and a hypothetical answer
/// for the vector lane. The format `expansion@1.0`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(title = "rankgate expansion", extend("$id" = "rankgate:expansion@1.0"))]
pub struct Expansion {
    /// For the lexical lane, at most five.
    #[schemars(length(max = 5))]
    pub lexical_queries: Vec<String>,
    /// For the vector lane, at most five.
    #[schemars(length(max = 5))]
    pub vector_queries: Vec<String>,
    /// A passage that would answer the query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hyde: Option<String>,
    /// Remarks of whoever made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
}
