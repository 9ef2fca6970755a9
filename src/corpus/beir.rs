//! beir
