//! The system under test: BM25, vectors, fusion and reranking over an index folder.
//!
//! ```text
//! text ─┬─ bm25 ───────────┬─ (expansion) ─ fusion ─ feedback ─ graph ─ rerank ─ ranking
//!       └─ embed ─ vector ─┘
//! ```
//!
//! Every stage is a `tracing` span, so what ran is in the [`Trace`](crate::trace::Trace) that comes back.

mod ask;
pub mod bm25;
pub mod expansion;
mod fingerprints;
mod found;
mod fusion;
pub mod graph;
pub mod index;
pub mod indexer;
mod links;
pub mod progress;
mod query;
mod recorded;
mod request;
mod rerank;
mod stages;
pub mod vector;

pub use ask::{Answerer, AskRequest};
pub use query::Pipeline;
pub use request::{Expand, Request, Sampling};
