//! Both tokenizers on any test collection: one that nobody looked at when the default was made.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use crate::corpus::{Document, JudgedQuery, beir};
use crate::error::{Error, Result};
use crate::metrics::stats::{Difference, mean, paired_difference};
use crate::metrics::{ndcg_at, recall_at};
use crate::text::Tokenizer;

use super::measure::LIMIT;
use super::words::Words;

/// Both tokenizers on one collection: means over queries that have a relevant document.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Compared {
    /// The folder as it was named.
    pub collection: String,
    /// Documents in it.
    pub documents: usize,
    /// Queries that count.
    pub queries: usize,
    /// The share of relevant documents among the first ten.
    #[serde(rename = "recall@10")]
    pub recall_10: Change,
    /// Grades discounted by rank, against the ideal order.
    #[serde(rename = "ndcg@10")]
    pub ndcg_10: Change,
}

/// A mean with each tokenizer, and the paired difference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Change {
    /// With the plain tokenizer.
    pub words: f64,
    /// With the default.
    pub default: f64,
    /// By how much the default is above.
    pub difference: f64,
    /// 95 % bootstrap interval of that.
    pub interval: [f64; 2],
}

/// Searches the BEIR folder `dir` by words with each tokenizer.
///
/// Fails when it cannot be read, or no query has a relevant document.
pub fn compare(dir: &Path) -> Result<Compared> {
    let documents = beir::documents(dir)?.collect::<Result<Vec<Document>>>()?;
    let mut queries = beir::judged_queries(dir)?;
    queries.retain(|case| case.judgments.values().any(|&grade| grade > 0));
    let search = |tokenizer| -> Result<(Vec<f64>, Vec<f64>)> {
        let words = Words::build(documents.iter().map(|document| ("", document)), tokenizer)?;
        let (mut recall, mut ndcg) = (Vec::new(), Vec::new());
        for JudgedQuery { query, judgments } in &queries {
            let found = words.search(&query.text, None, LIMIT)?;
            recall.extend(recall_at(LIMIT, found.iter().copied(), judgments));
            ndcg.extend(ndcg_at(LIMIT, found.iter().copied(), judgments));
        }
        Ok((recall, ndcg))
    };
    let (before, after) = (search(Tokenizer::Words)?, search(Tokenizer::DEFAULT)?);
    let nothing = || {
        Error::input(format!("{}: no query has a relevant document", dir.display()))
            .with_hint("look at its qrels.tsv, or qrels/test.tsv")
    };
    Ok(Compared {
        collection: dir.display().to_string(),
        documents: documents.len(),
        queries: queries.len(),
        recall_10: change(&before.0, &after.0).ok_or_else(nothing)?,
        ndcg_10: change(&before.1, &after.1).ok_or_else(nothing)?,
    })
}

fn change(before: &[f64], after: &[f64]) -> Option<Change> {
    let Difference { mean: difference, interval } = paired_difference(before, after, 0.95, 1000, 42)?;
    let interval = [interval.low, interval.high];
    Some(Change { words: mean(before)?, default: mean(after)?, difference, interval })
}
