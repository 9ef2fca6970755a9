//! What the default tokenizer has to reach, as data, and the function that judges by it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::text::Tokenizer;

use super::measure::{Figures, Measured};

mod promotion;
#[cfg(test)]
mod tests;

pub use promotion::{Decision, Gate, Outcome, promotion};

/// By how much each mean has to rise, and the rate of queries without a result to fall.
const LIFT: f64 = 0.25;

/// `promotion-gates.json`: floors derived once from a frozen baseline, never weakened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromotionGates {
    /// Version of this format.
    pub version: u32,
    /// How they are to be read.
    pub rule: String,
    /// The result that they were derived from.
    pub baseline: Bound,
    /// The texts in Latin letters.
    pub comparison: ComparisonFiles,
    /// Floors by language.
    pub quality: BTreeMap<String, Floors>,
    /// Failed queries of the baseline by category: each has to find all its documents.
    pub failure_coverage: BTreeMap<String, Vec<String>>,
    /// What must not be lost elsewhere.
    pub regression: RegressionLimits,
    /// What it may cost, against the baseline of the same run.
    pub cost: CostLimits,
}

/// A frozen baseline, named and fingerprinted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bound {
    /// Its file, relative to the fixture.
    pub artefact: String,
    /// SHA-256 of that file.
    pub sha256: String,
    /// What it was made from, and what it found.
    pub fingerprints: Fingerprints,
}

/// SHA-256 of canonical JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fingerprints {
    /// Every file of the fixture.
    pub corpus: String,
    /// Limit and lanes.
    pub config: String,
    /// Name and index version of the tokenizer.
    pub tokenizer: String,
    /// What each query found.
    pub result: String,
}

/// Paths relative to the fixture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComparisonFiles {
    /// Folder of documents.
    pub corpus: String,
    /// Judged queries over them.
    pub queries: String,
    /// A lexical matrix with identifiers.
    pub identifiers: String,
}

/// The floors of a language.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Floors {
    /// How many queries there are.
    pub queries: usize,
    /// What the baseline gave.
    pub baseline: Figures,
    /// What a candidate has to give at least, of `zero_result_rate` at most.
    pub required: Figures,
    /// How many more queries have to find their answer.
    pub additional_hits: usize,
}

/// What may be lost on texts in Latin letters, and of identifiers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegressionLimits {
    /// Of mean recall@10.
    #[serde(rename = "recall@10_loss")]
    pub recall_10_loss: f64,
    /// Of mean nDCG@10.
    #[serde(rename = "ndcg@10_loss")]
    pub ndcg_10_loss: f64,
    /// Identifiers that the baseline finds and the candidate does not.
    pub lost_identifiers: usize,
    /// Identifiers with which only the candidate finds nothing at all.
    pub new_zero_results: usize,
}

/// What the candidate may cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostLimits {
    /// Times the baseline's index.
    pub index_bytes_ratio: f64,
    /// Times the baseline's time to index.
    pub build_ratio: f64,
    /// Times the baseline's 95th percentile of a warm query.
    pub warm_p95_ratio: f64,
    /// And so many milliseconds above it.
    pub warm_p95_more_ms: f64,
}

impl PromotionGates {
    /// Derives the gates from what the plain tokenizer gave, which is frozen as `bound`.
    ///
    /// Fails when the baseline is so good that a floor would lie above 1, for then nothing could be promoted.
    pub fn derive(bound: Bound, comparison: ComparisonFiles, baseline: &Measured) -> Result<Self> {
        let mut quality = BTreeMap::new();
        let mut failure_coverage: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (language, &figures) in baseline.bm25.languages.iter().filter(|(name, _)| *name != "all") {
            let queries = baseline.bm25.cases.iter().filter(|case| &case.language == language).count();
            let required = Figures {
                recall_5: figures.recall_5 + LIFT,
                recall_10: figures.recall_10 + LIFT,
                mrr: figures.mrr + LIFT,
                ndcg_10: figures.ndcg_10 + LIFT,
                zero_result_rate: (figures.zero_result_rate - LIFT).max(0.0),
            };
            let highest = required.recall_5.max(required.recall_10).max(required.mrr).max(required.ndcg_10);
            if highest > 1.0 {
                let what = format!("`{language}`: the baseline leaves no room for a gain of {LIFT}");
                return Err(Error::input(what).with_hint("add queries that the plain tokenizer fails"));
            }
            let additional_hits = (LIFT * queries as f64).ceil() as usize;
            quality
                .insert(language.clone(), Floors { queries, baseline: figures, required, additional_hits });
        }
        for case in baseline.bm25.cases.iter().filter(|case| case.failure.is_some()) {
            failure_coverage.entry(case.category.clone()).or_default().push(case.id.clone());
        }
        Ok(Self {
            version: 1,
            rule: "every gate has to pass; none makes up for another; what was not measured has not passed; if one \
                   fails the outcome is no-ship, and no gate is weakened"
                .into(),
            baseline: bound,
            comparison,
            quality,
            failure_coverage,
            regression: RegressionLimits {
                recall_10_loss: 0.02,
                ndcg_10_loss: 0.02,
                lost_identifiers: 0,
                new_zero_results: 0,
            },
            cost: CostLimits {
                index_bytes_ratio: 1.75,
                build_ratio: 2.0,
                warm_p95_ratio: 3.0,
                warm_p95_more_ms: 2.0,
            },
        })
    }
}
