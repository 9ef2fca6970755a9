//! The project's integration tests: one binary, so that it links once.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod harness;
mod layers;
