//! The project's integration tests: one binary, so that it links once.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod ask;
mod bench;
mod candidates;
mod capture;
mod common;
mod expansion;
mod faults;
mod gate;
mod generator;
mod harness;
mod index;
mod layers;
mod lexical;
mod metrics_props;
mod metrics_trec;
mod models;
mod pipeline;
mod replay;
mod schemas;
mod scorers;
mod server;
mod xquad;
