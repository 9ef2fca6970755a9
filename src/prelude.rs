//! What an eval file needs: `use rankgate::prelude::*;`.

pub use crate::corpus::{Hit, JudgedQuery, Judgments, Query, Ranking};
pub use crate::error::{Error, Result};
pub use crate::harness::{
    Case, Context, Example, Judged, Observed, Ranked, Scored, Scorer, Suite, average_precision, latency,
    ndcg_at, precision_at, ranking_lines, recall_at, reciprocal_rank, schema_valid, scorer,
};
pub use crate::pipeline::{Pipeline, Request};
