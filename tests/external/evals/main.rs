//! Every `*.eval.rs` beside this file.

rankgate::evals!();
