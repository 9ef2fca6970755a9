//! Retrieval evals as cargo tests.
//!
//! An eval is judged queries, a closure that searches, scorers and thresholds; each of its cases is a test.
//! [`harness`] runs evals of any engine, [`pipeline`] is a hybrid search engine to start from, [`metrics`] computes
//! what trec_eval computes. The program `rankgate` is a thin layer over these modules.
//!
//! ```
//! use rankgate::metrics::ndcg_at;
//! use rankgate::{Judgments, Ranking};
//!
//! let judgments = Judgments::from([("deploy.md".into(), 3), ("faq.md".into(), 1)]);
//! let ranking = Ranking::from_docids(["deploy.md", "news.md", "faq.md"]);
//! assert_eq!(ndcg_at(1, ranking.docids(), &judgments), Some(1.0));
//! ```
//!
//! Modules are layers, listed from the ground up: each imports only from those above it in this list.

// 1
pub mod error;

// 2
pub mod corpus;
pub mod settings;
pub mod text;

// 3
pub mod metrics;
pub mod trace;

// 4
pub mod record;

// 5
pub mod store;

// 6
pub mod models;

// 7: the two do not know each other
pub mod harness;
pub mod pipeline;

// 8
pub mod gate;
pub mod replay;

// 9
pub mod benchmarks;

pub mod prelude;

// 10
#[doc(hidden)]
pub mod cli;

pub use corpus::{Document, Hit, JudgedQuery, Judgments, Qrels, Query, Ranking};
pub use error::{Error, ErrorKind, Result};
pub use trace::Trace;
