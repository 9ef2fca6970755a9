//! What an eval file needs: `use rankgate::prelude::*;`.

pub use crate::corpus::{Answer, Expansion, Hit, JudgedQuery, Judgments, Query, Ranking};
pub use crate::error::{Error, Result};
pub use crate::harness::{
    Answered, Asks, Case, Context, Example, Expanded, Judge, Judged, Labelled, Observed, Ranked, Scored,
    Scorer, Suite, abstention, added_relevant_at, average_precision, citations_present, citations_valid,
    expansion_valid, grounded, has_lexical_variants, has_vector_variants, latency, ndcg_at, not_echo,
    precision_at, ranking_lines, recall_at, reciprocal_rank, schema_valid, scorer, topic_coverage, varied,
};
pub use crate::pipeline::{Answerer, AskRequest, Expand, Pipeline, Request};
