//! Captured searches that were run again, and how alike the two answers are.

use std::fmt::{Display, Write};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::captured::{Captured, Tool};
use crate::metrics::{jaccard, rank_biased_overlap, same_top1, stats};
use crate::text::one_line;

/// How deep rank-biased overlap looks: the chance that a reader goes on to the next rank.
const PERSISTENCE: f64 = 0.9;

/// Characters of a query that name a row.
const QUERY: usize = 60;

/// One captured search and what became of it when it was run again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayedRow {
    /// The row's number where it was captured; may be repeated.
    pub id: Option<i64>,
    /// Which command searched.
    pub tool_name: Tool,
    /// The text.
    pub query: String,
    /// Docids as captured, best first.
    pub captured_slugs: Vec<String>,
    /// Docids now, best first.
    pub current_slugs: Vec<String>,
    /// Milliseconds as captured, where they were.
    pub captured_latency_ms: Option<f64>,
    /// Milliseconds now.
    pub current_latency_ms: Option<f64>,
    /// Why the search was not run again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_reason: Option<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
}

impl ReplayedRow {
    fn of(row: &Captured) -> Self {
        Self {
            id: row.id,
            tool_name: row.tool_name,
            query: row.query.clone(),
            captured_slugs: row.retrieved_slugs.clone(),
            current_slugs: Vec::new(),
            captured_latency_ms: row.latency_ms,
            current_latency_ms: None,
            skip_reason: None,
            error_message: None,
        }
    }

    /// A row that was run again.
    pub fn ran(row: &Captured, current_slugs: Vec<String>, current_latency_ms: f64) -> Self {
        Self { current_slugs, current_latency_ms: Some(current_latency_ms), ..Self::of(row) }
    }

    /// A row that was left out, and why.
    pub fn skipped(row: &Captured, reason: impl Into<String>) -> Self {
        Self { skip_reason: Some(reason.into()), ..Self::of(row) }
    }

    /// A row that failed, and why.
    pub fn errored(row: &Captured, message: impl Into<String>) -> Self {
        Self { error_message: Some(message.into()), ..Self::of(row) }
    }

    /// Whether it was run again and answered.
    pub fn replayed(&self) -> bool {
        self.skip_reason.is_none() && self.error_message.is_none()
    }

    fn captured(&self) -> impl Iterator<Item = &str> {
        self.captured_slugs.iter().map(String::as_str)
    }

    fn current(&self) -> impl Iterator<Item = &str> {
        self.current_slugs.iter().map(String::as_str)
    }

    /// Whether it was replayed and returns another list.
    pub fn changed(&self) -> bool {
        let distinct = |slugs: &[String]| {
            let mut seen = std::collections::HashSet::new();
            slugs.iter().filter(|slug| seen.insert(slug.to_string())).cloned().collect::<Vec<_>>()
        };
        self.replayed() && distinct(&self.captured_slugs) != distinct(&self.current_slugs)
    }

    /// The share of common documents; `None` unless [`ReplayedRow::replayed`]. So for all that follow.
    pub fn jaccard(&self) -> Option<f64> {
        self.replayed().then(|| jaccard(self.captured(), self.current()))
    }

    /// Whether the first document stayed; nothing before and nothing now counts as stable.
    pub fn top1_match(&self) -> Option<bool> {
        self.replayed().then(|| same_top1(self.captured(), self.current()))
    }

    /// Rank-biased overlap with p = 0.9.
    pub fn rank_biased_overlap(&self) -> Option<f64> {
        self.replayed().then(|| rank_biased_overlap(self.captured(), self.current(), PERSISTENCE))?
    }

    /// Milliseconds as captured and now, where both were measured. A captured 0 was not: rows written by hand have
    /// it.
    pub fn latencies(&self) -> Option<(f64, f64)> {
        let captured = self.captured_latency_ms.filter(|captured| *captured > 0.0)?;
        Some((captured, self.current_latency_ms.filter(|_| self.replayed())?))
    }
}

/// What the rows of a replay say together. Means are over the rows that were replayed, null where there is none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplaySummary {
    /// All rows.
    pub rows_total: usize,
    /// Those that were run again and answered.
    pub rows_replayed: usize,
    /// Those that were left out.
    pub rows_skipped: usize,
    /// Those that failed.
    pub rows_errored: usize,
    /// Those that were run again and found nothing, then and now; they count as stable.
    #[serde(default)]
    pub rows_empty: usize,
    /// Mean Jaccard coefficient of the two answers.
    pub mean_jaccard: Option<f64>,
    /// Share of rows whose first document stayed.
    pub top1_stability_rate: Option<f64>,
    /// Mean milliseconds that a search takes longer than when it was captured.
    pub mean_latency_delta_ms: Option<f64>,
    /// Rows that take more than twice as long.
    pub rows_over_2x_latency: usize,
    /// Mean rank-biased overlap, p = 0.9.
    pub mean_rank_biased_overlap: Option<f64>,
    /// Mean latency now over mean latency when captured, over the rows where both were measured.
    pub latency_ratio: Option<f64>,
}

/// Gathers replayed rows without keeping them: 40 bytes a row, however long its rankings are.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReplayTally {
    /// Jaccard coefficient of each replayed row.
    pub jaccard: Vec<f64>,
    /// 1 for each replayed row whose first document stayed, else 0.
    pub top1: Vec<f64>,
    /// Rank-biased overlap of each replayed row.
    pub rank_biased_overlap: Vec<f64>,
    /// Milliseconds as captured and now, of each replayed row where both were measured.
    pub latencies: Vec<(f64, f64)>,
    /// How many replayed rows found nothing then and nothing now.
    pub empty: usize,
    /// Rows left out.
    pub skipped: Faults,
    /// Rows that failed.
    pub errored: Faults,
}

/// Rows that were not replayed: how many, and what the first of them say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Faults {
    /// How many.
    pub count: usize,
    /// `id: reason` of the first five, of rows `#12 "query": reason`, ` | ` between them.
    pub first: String,
}

impl Faults {
    /// Counts one; `id` names the row or query.
    pub fn add(&mut self, id: impl Display, reason: &str) {
        if self.count < 5 {
            let gap = if self.count > 0 { " | " } else { "" };
            // Writing to a String cannot fail.
            let _ = write!(self.first, "{gap}{id}: {reason}");
        }
        self.count += 1;
    }
}

impl ReplayTally {
    /// Adds a row, which speaks for itself, whatever its id.
    pub fn add(&mut self, row: &ReplayedRow) {
        let id = || {
            let number = row.id.map(|id| format!("#{id} ")).unwrap_or_default();
            let query: String = one_line(&row.query).chars().take(QUERY).collect();
            format!("{number}\"{query}\"")
        };
        match (&row.skip_reason, &row.error_message) {
            (Some(reason), _) => self.skipped.add(id(), reason),
            (None, Some(message)) => self.errored.add(id(), message),
            (None, None) => {}
        }
        let nothing = row.captured_slugs.is_empty() && row.current_slugs.is_empty();
        self.empty += usize::from(row.replayed() && nothing);
        self.jaccard.extend(row.jaccard());
        self.top1.extend(row.top1_match().map(|same| f64::from(u8::from(same))));
        self.rank_biased_overlap.extend(row.rank_biased_overlap());
        self.latencies.extend(row.latencies());
    }

    /// The summary of all rows so far.
    pub fn summary(&self) -> ReplaySummary {
        let (before, now): (Vec<f64>, Vec<f64>) = self.latencies.iter().copied().unzip();
        let means = stats::mean(&before).zip(stats::mean(&now));
        ReplaySummary {
            rows_total: self.jaccard.len() + self.skipped.count + self.errored.count,
            rows_replayed: self.jaccard.len(),
            rows_skipped: self.skipped.count,
            rows_errored: self.errored.count,
            rows_empty: self.empty,
            mean_jaccard: stats::mean(&self.jaccard),
            top1_stability_rate: stats::mean(&self.top1),
            mean_latency_delta_ms: means.map(|(before, now)| now - before),
            rows_over_2x_latency: self.latencies.iter().filter(|(before, now)| *now > 2.0 * before).count(),
            mean_rank_biased_overlap: stats::mean(&self.rank_biased_overlap),
            latency_ratio: means.map(|(before, now)| now / before),
        }
    }
}

impl<'a> FromIterator<&'a ReplayedRow> for ReplayTally {
    fn from_iter<I: IntoIterator<Item = &'a ReplayedRow>>(rows: I) -> Self {
        let mut tally = Self::default();
        rows.into_iter().for_each(|row| tally.add(row));
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(captured: &[&str], captured_ms: f64) -> Captured {
        let slugs = captured.iter().map(|slug| slug.to_string()).collect();
        Captured { id: Some(1), latency_ms: Some(captured_ms), ..Captured::new(Tool::Query, "x", slugs) }
    }

    fn ran(captured: &[&str], current: &[&str], captured_ms: f64, ms: f64) -> ReplayedRow {
        ReplayedRow::ran(
            &row(captured, captured_ms),
            current.iter().map(|slug| slug.to_string()).collect(),
            ms,
        )
    }

    #[test]
    fn nothing_before_and_now_is_stable() {
        let empty = ran(&[], &[], 1.0, 1.0);
        assert_eq!(
            (empty.jaccard(), empty.top1_match(), empty.rank_biased_overlap()),
            (Some(1.0), Some(true), Some(1.0))
        );
        let lost = ran(&["a"], &[], 1.0, 1.0);
        assert_eq!((lost.jaccard(), lost.top1_match()), (Some(0.0), Some(false)));
        let swapped = ran(&["a", "b"], &["b", "a"], 1.0, 1.0);
        assert_eq!((swapped.jaccard(), swapped.top1_match()), (Some(1.0), Some(false)));
    }

    #[test]
    fn rows_speak_for_themselves_whatever_their_id() {
        // All have id 1. Over twice: 10 → 21 alone; 100 → 150 would be over twice 10.
        let rows = [
            ran(&["a"], &["a"], 10.0, 21.0),
            ran(&["a"], &["a"], 100.0, 150.0),
            ran(&["a"], &["a"], 10.0, 20.0),
        ];
        let summary = ReplayTally::from_iter(&rows).summary();
        assert_eq!(summary.rows_over_2x_latency, 1);
        assert!((summary.mean_latency_delta_ms.expect("was measured") - 71.0 / 3.0).abs() < 1e-9);
        assert!((summary.latency_ratio.expect("was measured") - 191.0 / 120.0).abs() < 1e-12);
    }

    #[test]
    fn what_was_not_measured_is_in_no_mean() {
        let captured = row(&["a"], 5.0);
        let by_hand = Captured { latency_ms: None, ..captured.clone() };
        let rows = [
            ran(&["a", "b"], &["a", "c"], 0.0, 80.0),
            ReplayedRow::ran(&by_hand, vec!["a".into()], 9.0),
            ReplayedRow::skipped(&captured, "empty query"),
            ReplayedRow::errored(&captured, "no index"),
        ];
        let summary = ReplayTally::from_iter(&rows).summary();
        let counts = (summary.rows_total, summary.rows_replayed, summary.rows_skipped, summary.rows_errored);
        assert_eq!(counts, (4, 2, 1, 1));
        let tally = ReplayTally::from_iter(&rows);
        assert_eq!(
            (tally.skipped.first.as_str(), tally.errored.first.as_str()),
            ("#1 \"x\": empty query", "#1 \"x\": no index")
        );
        assert_eq!(summary.mean_jaccard, Some((1.0 / 3.0 + 1.0) / 2.0));
        assert_eq!(
            (summary.mean_latency_delta_ms, summary.latency_ratio, summary.rows_over_2x_latency),
            (None, None, 0)
        );
        assert_eq!(ReplayTally::default().summary().mean_jaccard, None);
    }
}
