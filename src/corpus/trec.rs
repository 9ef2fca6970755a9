//! trec
