//! rerank
