//! The evals.
fn main() {}
