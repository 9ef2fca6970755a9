//! Retrieval evals as cargo tests.

pub mod error;

pub mod corpus;
pub mod settings;
pub mod text;

pub mod metrics;
pub mod trace;

pub mod record;

pub mod store;

pub mod models;

pub mod harness;
pub mod pipeline;

pub mod prelude;

#[doc(hidden)]
pub mod cli;

pub use corpus::{Document, Hit, JudgedQuery, Judgments, Qrels, Query, Ranking};
pub use error::{Error, ErrorKind, Result};
pub use trace::Trace;
