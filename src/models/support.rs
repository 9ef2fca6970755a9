//! How far a passage supports a sentence, without a judge.

use super::{Embedder, TextRole};
use crate::error::Result;

/// How far the best of some passages supports a sentence.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Support {
    /// The share of the sentence's telling words that the passage has, in [0, 1].
    pub lexical: f64,
    /// The cosine of the sentence and the nearest sentence of the passage; `None` without an embedder.
    pub semantic: Option<f64>,
    /// Both in one number in [0, 1]; from 0.5 the sentence counts as supported.
    pub score: f64,
}

/// How far the best of `passages` supports `sentence`; all zero when there is none.
pub fn support(sentence: &str, passages: &[&str], embedder: Option<&dyn Embedder>) -> Result<Support> {
    let _ = (sentence, passages, embedder.map(|e| e.embed(&[sentence], TextRole::Passage)));
    todo!()
}
