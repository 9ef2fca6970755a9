//! One run of both tokenizers over the same texts.

use std::collections::BTreeMap;
use std::time::Instant;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;

use crate::corpus::{Document, Judgments};
use crate::error::{Error, ErrorKind, Result};
use crate::metrics::{ndcg_at, recall_at, reciprocal_rank, stats};
use crate::pipeline::bm25::{Lexical, version};
use crate::text::{Tokenizer, parse};

use super::fixture::{CjkQuery, Fixture};
use super::words::{Words, fill};

mod latin;

pub use latin::{Comparison, Identifier, Latin};

/// Documents of each query that count.
pub const LIMIT: usize = 10;

/// Means over queries, each from 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// The share of relevant documents among the first five.
    #[serde(rename = "recall@5")]
    pub recall_5: f64,
    /// The same among the first ten.
    #[serde(rename = "recall@10")]
    pub recall_10: f64,
    /// One over the rank of the first relevant document, within ten.
    pub mrr: f64,
    /// Grades discounted by rank, against the ideal order.
    #[serde(rename = "ndcg@10")]
    pub ndcg_10: f64,
    /// The share of queries that find nothing at all.
    pub zero_result_rate: f64,
}

/// Why a query counts as failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// It found nothing.
    ZeroResult,
    /// A relevant document is not among the first ten.
    #[serde(rename = "not-in-top-10")]
    NotInTop10,
    /// All are, but not among the first five.
    #[serde(rename = "below-rank-5")]
    BelowRank5,
}

/// What one query found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseResult {
    /// The query's id.
    pub id: String,
    /// Its language.
    pub language: String,
    /// Its category.
    pub category: String,
    /// As it was typed.
    pub query: String,
    /// docid → grade.
    pub expected: Judgments,
    /// What was found, best first, at most ten.
    pub found: Vec<String>,
    /// Its figures.
    pub figures: Figures,
    /// Whether every document that answers it (grade 3) is among the first ten.
    pub answered: bool,
    /// Why it failed, if some relevant document is not among the first five.
    pub failure: Option<Failure>,
}

/// One way to search the fixture.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lane {
    /// Means by language, and over `all`.
    pub languages: BTreeMap<String, Figures>,
    /// Each query.
    pub cases: Vec<CaseResult>,
}

/// What it costs; times are absent where they were not taken.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// All files of the fixture's index.
    pub index_bytes: u64,
    /// Median time to index the fixture.
    pub build_ms: Option<f64>,
    /// The first query after the index was opened.
    pub cold_ms: Option<f64>,
    /// Median over passes of the median query.
    pub warm_p50_ms: Option<f64>,
    /// Median over passes of the 95th percentile.
    pub warm_p95_ms: Option<f64>,
}

/// Everything measured of one tokenizer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    /// Which one.
    pub tokenizer: Tokenizer,
    /// The version string of its indexes.
    pub version: String,
    /// BM25 over the fixture.
    pub bm25: Lane,
    /// Text in Latin letters, and identifiers; absent when there was nothing to compare.
    pub latin: Option<Latin>,
    /// What it costs; absent when not measured.
    pub cost: Option<Cost>,
    /// Queries that find other documents in an index which another tokenizer had made before, than in a fresh one.
    /// Absent when that was not tried. With 0 a change of the default can be undone.
    pub switch_differences: Option<usize>,
}

/// Both tokenizers in one run, and two diagnostic lanes without an index.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CoRun {
    /// [`Tokenizer::Words`].
    pub baseline: Measured,
    /// The default tokenizer.
    pub candidate: Measured,
    /// `substring-raw` and `substring-nfc`: every word as typed occurs somewhere in the text.
    pub diagnostics: BTreeMap<String, Lane>,
}

/// Runs `queries` of the fixture with both tokenizers; `passes` of timing, none for 0.
///
/// Fails when a temporary folder cannot be written.
pub fn co_run(
    fixture: &Fixture,
    queries: &[&CjkQuery],
    comparison: Option<&Comparison>,
    passes: usize,
) -> Result<CoRun> {
    let tokenizers = [Tokenizer::Words, Tokenizer::DEFAULT];
    let documents = || fixture.documents.iter().map(|document| ("", document));
    let mut builds = [Vec::new(), Vec::new()];
    let mut indexes = Vec::new();
    for (build, tokenizer) in builds.iter_mut().zip(tokenizers) {
        let words = Words::build(documents(), tokenizer)?;
        build.push(words.build_ms);
        indexes.push(words);
    }
    for _ in 0..passes.div_ceil(10) {
        for (build, tokenizer) in builds.iter_mut().zip(tokenizers) {
            build.push(Words::build(documents(), tokenizer)?.build_ms);
        }
    }
    let times = if passes > 0 { timed(queries, &indexes, passes)? } else { Vec::new() };
    let mut measured = Vec::new();
    for (at, (words, tokenizer)) in indexes.iter().zip(tokenizers).enumerate() {
        let lane = lane(queries, |query| Ok(words.search(&query.query, None, LIMIT)?.to_vec()))?;
        let time = times.get(at);
        measured.push(Measured {
            tokenizer,
            version: version(tokenizer).into(),
            bm25: lane,
            latin: comparison.map(|comparison| comparison.measure(tokenizer)).transpose()?,
            cost: Some(Cost {
                index_bytes: words.bytes()?,
                build_ms: time.and_then(|_| stats::percentile(&builds[at], 50.0)),
                cold_ms: time.map(|time| time.cold),
                warm_p50_ms: time.and_then(|time| stats::percentile(&time.p50, 50.0)),
                warm_p95_ms: time.and_then(|time| stats::percentile(&time.p95, 50.0)),
            }),
            switch_differences: None,
        });
    }
    for (at, differences) in switched(fixture, queries, &indexes, tokenizers)? {
        *measured[at].switch_differences.get_or_insert(0) += differences;
    }
    let [baseline, candidate] = <[Measured; 2]>::try_from(measured)
        .map_err(|_| Error::new(ErrorKind::Internal, "two tokenizers gave not two results"))?;
    Ok(CoRun { baseline, candidate, diagnostics: diagnostics(fixture, queries)? })
}

/// Milliseconds of one index: its first query, and percentiles of each pass.
#[derive(Default)]
struct Times {
    cold: f64,
    p50: Vec<f64>,
    p95: Vec<f64>,
}

/// Passes over all queries, the indexes in turn so that a busy machine slows both.
fn timed(queries: &[&CjkQuery], indexes: &[Words], passes: usize) -> Result<Vec<Times>> {
    let mut times: Vec<Times> = indexes.iter().map(|_| Times::default()).collect();
    for pass in 0..=passes {
        for (words, times) in indexes.iter().zip(&mut times) {
            let mut took = Vec::with_capacity(queries.len());
            for query in queries {
                let start = Instant::now();
                words.search(&query.query, None, LIMIT)?;
                took.push(start.elapsed().as_secs_f64() * 1e3);
            }
            if pass == 0 {
                // The first pass warms up.
                times.cold = took.first().copied().unwrap_or(0.0);
                continue;
            }
            times.p50.extend(stats::percentile(&took, 50.0));
            times.p95.extend(stats::percentile(&took, 95.0));
        }
    }
    Ok(times)
}

/// Makes one index by turns with each tokenizer: candidate, baseline, candidate. How many queries then find other
/// documents than in a fresh index, by place of the tokenizer.
fn switched(
    fixture: &Fixture,
    queries: &[&CjkQuery],
    fresh: &[Words],
    tokenizers: [Tokenizer; 2],
) -> Result<[(usize, usize); 3]> {
    let dir = tempfile::tempdir().map_err(|e| Error::io("make a folder in", &std::env::temp_dir(), e))?;
    let mut turns = [1, 0, 1].map(|at| (at, 0));
    for (at, differences) in &mut turns {
        let documents = fixture.documents.iter().map(|document| ("", document));
        let ids = fill(dir.path(), documents, tokenizers[*at])?;
        let changed = Lexical::open(dir.path())?;
        for query in queries {
            let found = changed.search(&parse(&query.query), None, LIMIT)?;
            let found: Vec<&str> = found.hits.iter().map(|hit| ids[hit.key as usize].as_str()).collect();
            *differences += usize::from(found != fresh[*at].search(&query.query, None, LIMIT)?);
        }
    }
    Ok(turns)
}

/// Searches every query and sums up.
fn lane<S: Into<String>>(
    queries: &[&CjkQuery],
    search: impl Fn(&CjkQuery) -> Result<Vec<S>>,
) -> Result<Lane> {
    let mut cases = Vec::with_capacity(queries.len());
    for query in queries {
        let found: Vec<String> = search(query)?.into_iter().map(Into::into).collect();
        cases.push(case(query, found));
    }
    let mut languages = BTreeMap::new();
    for case in &cases {
        for name in [&case.language, "all"] {
            languages.entry(name.to_owned()).or_insert_with(Vec::new).push(case.figures);
        }
    }
    let languages = languages.into_iter().map(|(name, each)| (name, Figures::mean(&each))).collect();
    Ok(Lane { languages, cases })
}

fn case(query: &CjkQuery, found: Vec<String>) -> CaseResult {
    let judged = &query.judgments;
    let docids = || found.iter().map(String::as_str);
    // A fixture has an answer to each query, so that every measure is defined.
    let figures = Figures {
        recall_5: recall_at(5, docids(), judged).unwrap_or(0.0),
        recall_10: recall_at(LIMIT, docids(), judged).unwrap_or(0.0),
        mrr: reciprocal_rank(docids().take(LIMIT), judged).unwrap_or(0.0),
        ndcg_10: ndcg_at(LIMIT, docids(), judged).unwrap_or(0.0),
        zero_result_rate: f64::from(u8::from(found.is_empty())),
    };
    let failure = match () {
        () if found.is_empty() => Some(Failure::ZeroResult),
        () if figures.recall_10 < 1.0 => Some(Failure::NotInTop10),
        () if figures.recall_5 < 1.0 => Some(Failure::BelowRank5),
        () => None,
    };
    let mut answers = judged.iter().filter(|(_, grade)| **grade == 3);
    CaseResult {
        id: query.id.clone(),
        language: query.language.clone(),
        category: query.category.clone(),
        query: query.query.clone(),
        expected: judged.clone(),
        answered: answers.all(|(docid, _)| found.contains(docid)),
        found,
        figures,
        failure,
    }
}

impl Figures {
    /// The mean of each figure; 0 of none.
    fn mean(each: &[Self]) -> Self {
        let mean =
            |of: fn(&Self) -> f64| stats::mean(&each.iter().map(of).collect::<Vec<_>>()).unwrap_or(0.0);
        Self {
            recall_5: mean(|f| f.recall_5),
            recall_10: mean(|f| f.recall_10),
            mrr: mean(|f| f.mrr),
            ndcg_10: mean(|f| f.ndcg_10),
            zero_result_rate: mean(|f| f.zero_result_rate),
        }
    }
}

/// What a reader finds who looks for the words as they are typed, with and without composing characters first.
fn diagnostics(fixture: &Fixture, queries: &[&CjkQuery]) -> Result<BTreeMap<String, Lane>> {
    let substring = |form: &dyn Fn(&str) -> String| {
        lane(queries, |query| Ok(substring(&fixture.documents, &form(&query.query), form)))
    };
    let raw = substring(&|text| text.to_lowercase())?;
    let nfc = substring(&|text| text.to_lowercase().nfc().collect())?;
    Ok(BTreeMap::from([("substring-raw".into(), raw), ("substring-nfc".into(), nfc)]))
}

/// Documents in whose title and text every word occurs: those with the whole query first, then by how often words
/// occur. Paths are not looked at.
fn substring(documents: &[Document], query: &str, form: &dyn Fn(&str) -> String) -> Vec<String> {
    let words: Vec<&str> = query.split_whitespace().collect();
    let mut found: Vec<(bool, usize, &str)> = Vec::new();
    for Document { id, title, body, .. } in documents {
        let text = form(&format!("{title}\n{body}"));
        let counts: Vec<usize> = words.iter().map(|word| text.matches(word).count()).collect();
        if !counts.is_empty() && counts.iter().all(|&count| count > 0) {
            found.push((text.contains(query), counts.iter().sum(), id));
        }
    }
    found.sort_by(|a, b| (b.0, b.1).cmp(&(a.0, a.1)).then(a.2.cmp(b.2)));
    found.into_iter().take(LIMIT).map(|(_, _, id)| id.to_owned()).collect()
}
