//! Chinese, Japanese and Korean by words: what the default tokenizer gains over a plain one, and what it costs.
//!
//! [`fixture::Fixture`] holds documents and judged queries of three languages. [`measure::co_run`] indexes them with
//! [`Tokenizer::Words`](crate::text::Tokenizer::Words), which is what a search engine for spaced scripts does, and
//! with the default, in one process, and searches both in turn. [`gates::PromotionGates`] are derived once from what
//! the plain tokenizer gave, and bound to that result by fingerprints; [`gates::promotion`] judges two results of one
//! run by them. [`decision`] keeps baseline, gates and decisions as files that nothing overwrites.
//!
//! The fixture is a controlled regression test of 25 queries, no evidence for the quality of a language at large.

pub mod collection;
pub mod decision;
pub mod fixture;
pub mod gates;
pub mod measure;
pub mod page;
mod words;

/// What the benchmark is called, in artefacts and on the command line.
pub const NAME: &str = "cjk-lexical";
