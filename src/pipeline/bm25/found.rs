//! What a query finds, and why.

use serde::Serialize;

use super::LexicalField;

/// How far a query had to be relaxed to be answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Some document has every word.
    AllTerms,
    /// Documents have some of the words, or words similar to them.
    AnyTerm,
    /// No document has anything that was asked for.
    #[default]
    Nothing,
}

/// A word of the query in the collection that was searched.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TermStatistics {
    /// The word, normalised; a compound without its joiners.
    pub term: String,
    /// Documents that have it, in any form and field.
    pub df: u64,
    /// ln(1 + (N − df + 0.5) / (df + 0.5)).
    pub idf: f32,
}

/// One document that was found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LexicalHit {
    /// The key it was put under.
    pub key: u64,
    /// Its score, above 0.
    pub score: f32,
    /// Σ idf² of the query's words that it has over Σ idf² of all of them, from 0 to 1: squares, because function
    /// words are many and would add up to a large share of a long question.
    pub matched: f32,
}

/// The answer to a query, with what a fusion needs to know of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LexicalResult {
    /// Documents by score, highest first; equal scores by key, lowest first.
    pub hits: Vec<LexicalHit>,
    /// The query's distinct words, in the order in which they were typed.
    pub terms: Vec<TermStatistics>,
    /// Documents in the collection that was searched.
    pub documents: u64,
    /// The share of the query's idf mass whose words occur in the collection at all, from 0 to 1.
    pub coverage: f32,
    /// How far the query was relaxed.
    pub level: Level,
}

/// A part of a document's score.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contribution {
    /// Where the word was found.
    pub field: LexicalField,
    /// The word of the query, or what supports it.
    pub term: String,
    /// In which form: `exact`, `stem`, `joined`, `apart`, `side by side` or `similar`.
    pub how: &'static str,
    /// What it adds to the score.
    pub score: f32,
}
