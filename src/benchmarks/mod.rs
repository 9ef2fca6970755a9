//! Benchmarks: what is measured now and then, and kept as an artefact, rather than at every change.

pub mod artefact;
pub mod candidates;
pub mod cjk_lexical;
pub mod rankings;
