//! The rows and queries that a reader should look at first.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::correctness::Retrieved;
use super::qrels::{KnownQuery, SourceSlug};
use crate::record::diff::RankedDiff;
use crate::record::{Captured, ReplayedRow};
use crate::text::one_line;

/// Characters of a query in a title.
const TITLE: usize = 60;

/// A captured search that returns something else now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorstRow {
    /// The row's number where it was captured.
    pub id: Option<i64>,
    /// The command that searched.
    pub tool_name: String,
    /// The text.
    pub query: String,
    /// The share of common documents; absent when the row failed.
    pub jaccard: Option<f64>,
    /// Whether the first document stayed; absent when the row failed.
    pub top1_match: Option<bool>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What entered, left and moved, and which stage lost a document; absent when the row failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<RankedDiff>,
}

impl WorstRow {
    /// A row with its ranked-list diff.
    pub fn new(row: &ReplayedRow, diff: Option<RankedDiff>) -> Self {
        Self {
            id: row.id,
            tool_name: row.tool_name.name().into(),
            query: row.query.clone(),
            jaccard: row.jaccard(),
            top1_match: row.top1_match(),
            error: row.error_message.clone(),
            diff,
        }
    }

    /// One line: `jaccard=0.20 top1=lost  query #12 "how to …"`.
    pub fn title(&self) -> String {
        let figures = match (self.jaccard, self.top1_match) {
            (Some(jaccard), top1) => {
                let order = if jaccard < 1.0 { "" } else { " order=changed" };
                format!(
                    "jaccard={jaccard:.2} top1={}{order}",
                    if top1 == Some(true) { "kept" } else { "lost" }
                )
            }
            (None, _) => "failed".into(),
        };
        let id = self.id.map(|id| format!(" #{id}")).unwrap_or_default();
        format!("{figures}  {}{id} \"{}\"", self.tool_name, brief(&self.query))
    }

    /// What is below the title.
    pub fn lines(&self) -> Vec<String> {
        let diff = self.diff.iter().map(RankedDiff::to_string).collect::<String>();
        self.error.iter().map(|error| one_line(error)).chain(diff.lines().map(one_line)).collect()
    }
}

/// Keeps the few rows of a replay that changed most: failed ones, then by the sum of what a gate looks at, common
/// documents, the first one and the order, so that whichever was missed is among them. Rows that did not change are
/// never among them; equal rows stay in their order.
#[derive(Debug, Clone, Default)]
pub struct WorstRows {
    limit: usize,
    rows: Vec<(Captured, ReplayedRow)>,
}

impl WorstRows {
    /// At most `limit` rows.
    pub fn new(limit: usize) -> Self {
        Self { limit, rows: Vec::new() }
    }

    /// Looks at a row and forgets it unless it is among the worst so far.
    pub fn add(&mut self, captured: Captured, row: ReplayedRow) {
        let shown = row.error_message.is_some() || row.changed();
        let place = self.rows.partition_point(|(_, kept)| kept_of(kept) <= kept_of(&row));
        if shown && place < self.limit {
            self.rows.insert(place, (captured, row));
            self.rows.truncate(self.limit);
        }
    }

    /// The rows, worst first.
    pub fn into_rows(self) -> Vec<(Captured, ReplayedRow)> {
        self.rows
    }
}

/// How much is as it was, from 0 to 3; −1 for a failed row.
fn kept_of(row: &ReplayedRow) -> f64 {
    let figures = (row.jaccard(), row.top1_match(), row.rank_biased_overlap());
    let (Some(jaccard), Some(top1), Some(overlap)) = figures else { return -1.0 };
    jaccard + f64::from(u8::from(top1)) + overlap
}

/// A known query whose answer is not where it should be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorstQuery {
    /// Its id in the file.
    pub id: String,
    /// The text.
    pub query: String,
    /// The share of the relevant documents that were found; absent when the search failed.
    pub recall: Option<f64>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The expected first document, where another one came first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_top1: Option<String>,
    /// The document that came first, where it is not relevant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwanted_first: Option<String>,
    /// Relevant documents that are not among the first k: docids, as `collection::docid` where an index has several
    /// collections.
    pub missing: Vec<String>,
    /// The first k documents, best first.
    pub retrieved: Vec<String>,
}

impl WorstQuery {
    fn new(
        query: &KnownQuery,
        retrieved: &Retrieved,
        k: usize,
        name: &impl Fn(&SourceSlug) -> String,
    ) -> Self {
        let mut found = Self {
            id: query.id.clone(),
            query: query.query.clone(),
            recall: None,
            error: None,
            expected_top1: None,
            unwanted_first: None,
            missing: Vec::new(),
            retrieved: Vec::new(),
        };
        match retrieved {
            Err(message) => found.error = Some(message.clone()),
            Ok(keys) => {
                let mut seen = HashSet::new();
                let first: Vec<_> = keys.iter().filter(|key| seen.insert(*key)).take(k).collect();
                let missing = query.relevant.iter().filter(|key| !first.contains(key));
                found.missing = missing.map(name).collect();
                found.recall = Some(1.0 - found.missing.len() as f64 / query.relevant.len() as f64);
                let expected = query.expected_top1.as_ref().filter(|expected| keys.first() != Some(expected));
                found.expected_top1 = expected.map(name);
                found.unwanted_first = keys.first().filter(|key| !query.relevant.contains(key)).map(name);
                found.retrieved = first.into_iter().map(name).collect();
            }
        }
        found
    }

    /// How much is as it should be, from 0 to 2; −1 for a failed search.
    fn reached(&self) -> f64 {
        let Some(recall) = self.recall else { return -1.0 };
        let first = self.expected_top1.is_none() && self.unwanted_first.is_none();
        recall + f64::from(u8::from(first))
    }

    /// One line: `recall=0.50  q1 "fintech founder"`.
    pub fn title(&self) -> String {
        let figure = self.recall.map_or("failed".into(), |recall| format!("recall={recall:.2}"));
        format!("{figure}  {} \"{}\"", one_line(&self.id), brief(&self.query))
    }

    /// What is below the title: why it failed, or what is missing and what came instead.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.error.iter().map(|error| one_line(error)).collect();
        lines.extend(self.expected_top1.iter().map(|key| format!("not first: {}", one_line(key))));
        lines.extend(self.unwanted_first.iter().map(|key| format!("unwanted:  {} is first", one_line(key))));
        lines.extend(self.missing.iter().map(|key| format!("missing:   {}", one_line(key))));
        let ranked = (1..).zip(&self.retrieved);
        lines.extend(ranked.map(|(rank, key)| format!("{rank:>7}.   {}", one_line(key))));
        lines
    }
}

/// The `limit` queries that miss most: failed ones, then by what a gate looks at, recall and the first document, so that
/// whichever was missed is among them. Queries that miss nothing are never among them. `name` is what documents are called.
pub fn worst_queries(
    results: &[(&KnownQuery, Retrieved)],
    k: usize,
    limit: usize,
    name: impl Fn(&SourceSlug) -> String,
) -> Vec<WorstQuery> {
    let mut worst: Vec<WorstQuery> = results
        .iter()
        .map(|(query, retrieved)| WorstQuery::new(query, retrieved, k, &name))
        .filter(|found| found.reached() < 2.0)
        .collect();
    worst.sort_by(|a, b| a.reached().total_cmp(&b.reached()));
    worst.truncate(limit);
    worst
}

/// A query in one line, cut where it is long.
fn brief(query: &str) -> String {
    let line = one_line(query);
    if line.chars().count() <= TITLE {
        return line;
    }
    line.chars().take(TITLE - 1).chain(['…']).collect()
}
