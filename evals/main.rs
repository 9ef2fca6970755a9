//! The evals: every `*.eval.rs` beside this file.

rankgate::evals!();
