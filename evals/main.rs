//! The evals: every `*.eval.rs` beside this file.

mod fixtures;

rankgate::evals!();
