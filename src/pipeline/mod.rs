//! The system under test: BM25, vectors, fusion and reranking over an index folder.

pub mod bm25;
pub mod fusion;
pub mod graph;
pub mod index;
pub mod indexer;
pub mod query;
pub mod rerank;
pub mod vector;
