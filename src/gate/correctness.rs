//! Do searches with a known answer find it?

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::qrels::{KnownQuery, SourceSlug};
use super::significance::{MetricTest, Significance};
use super::{Breach, Breaches, Verdict, WorstQuery};
use crate::error::{Error, Result};
use crate::metrics::stats;
use crate::record::Faults;

/// The metric that says whether the others can be relied on.
const JUDGED: &str = "mean_judged_at_k";

/// What the known queries have to reach, all from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CorrectnessThresholds {
    /// Least mean recall among the first k.
    pub recall_at_k: f64,
    /// Least share of queries whose first document is relevant.
    pub first_relevant_hit: f64,
    /// Least share of queries whose first document is the expected one, among those that expect one.
    pub expected_top1: f64,
    /// Least share of the first k that somebody judged, where the file says who was judged. Below it the other
    /// figures rest on guesses, and the gate does not decide.
    pub judged_at_k: f64,
}

impl Default for CorrectnessThresholds {
    fn default() -> Self {
        Self { recall_at_k: 0.70, first_relevant_hit: 0.60, expected_top1: 0.50, judged_at_k: 0.50 }
    }
}

impl CorrectnessThresholds {
    /// Fails on a value outside 0 to 1: it would hold always or never.
    pub fn check(&self) -> Result<()> {
        for (name, value) in [
            ("recall_at_k", self.recall_at_k),
            ("first_relevant_hit", self.first_relevant_hit),
            ("expected_top1", self.expected_top1),
            ("judged_at_k", self.judged_at_k),
        ] {
            if !(0.0..=1.0).contains(&value) {
                return Err(Error::usage(format!("threshold `{name}` is {value}, not from 0 to 1")));
            }
        }
        Ok(())
    }
}

/// What was measured. Means are over the queries that ran, null where there is none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CorrectnessSummary {
    /// How many documents count.
    pub k: usize,
    /// All queries.
    pub queries_total: usize,
    /// Those that ran.
    pub queries_run: usize,
    /// Those that failed.
    pub queries_errored: usize,
    /// Mean share of the relevant documents that are among the first k.
    pub mean_recall_at_k: Option<f64>,
    /// Share of queries whose first document is relevant.
    pub first_relevant_hit_rate: Option<f64>,
    /// Share of queries whose first document is the expected one.
    pub expected_top1_hit_rate: Option<f64>,
    /// How many queries expect one.
    pub expected_top1_denominator: usize,
    /// Mean share of the first k that somebody judged, over the queries that say so.
    pub mean_judged_at_k: Option<f64>,
}

/// The answer, with what it rests on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CorrectnessGate {
    /// Whether it was asked. All else is absent when not.
    pub ran: bool,
    /// The file of known queries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qrels_path: Option<String>,
    /// What was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<CorrectnessSummary>,
    /// What it had to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thresholds: Option<CorrectnessThresholds>,
    /// What does not hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub breaches: Vec<Breach>,
    /// What cannot be decided: by chance, or because too few documents were judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undecided: Vec<Breach>,
    /// The queries that miss most, worst first: a few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worst: Vec<WorstQuery>,
    /// One test a metric, where they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<MetricTest>,
    /// What a reader should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl CorrectnessGate {
    /// The verdict on this question alone.
    pub fn verdict(&self) -> Verdict {
        Verdict::of(&self.breaches, &self.undecided)
    }

    /// Whether too few of the documents found were judged for the other figures to say anything.
    pub fn unjudged(&self) -> bool {
        self.undecided.iter().any(|breach| breach.metric == JUDGED)
    }
}

/// What a search for a known query returned: documents, best first, or why it failed.
pub type Retrieved = Result<Vec<SourceSlug>, String>;

/// One value a query that ran.
#[derive(Default)]
struct Values {
    recall: Vec<f64>,
    first: Vec<f64>,
    expected: Vec<f64>,
    judged: Vec<f64>,
    errored: Faults,
}

impl Values {
    fn add(&mut self, query: &KnownQuery, retrieved: &[SourceSlug], k: usize) {
        let share = |yes: bool| f64::from(u8::from(yes));
        // A document of which several passages were found counts once, where it stands first.
        let mut seen = HashSet::new();
        let first: Vec<&SourceSlug> = retrieved.iter().filter(|key| seen.insert(*key)).take(k).collect();
        let found = first.iter().filter(|key| query.relevant.contains(**key)).count();
        self.recall.push(found as f64 / query.relevant.len() as f64);
        self.first.push(share(retrieved.first().is_some_and(|key| query.relevant.contains(key))));
        if let Some(expected) = &query.expected_top1 {
            self.expected.push(share(retrieved.first() == Some(expected)));
        }
        self.judged.extend(query.judged_share(retrieved, k));
    }
}

/// Holds what known queries retrieved against `thresholds`; with `significance`, tests every metric as well.
///
/// Breaches: a failed query, no query that ran, a mean recall, a share of relevant or of expected first documents
/// below its threshold; the last only where a query expects one. When too few of the documents were judged, what
/// misses and what holds are both undecided: only failed queries remain a breach.
///
/// Fails on thresholds that are not numbers in range, and when `k` is 0.
pub fn correctness(
    results: &[(&KnownQuery, Retrieved)],
    k: usize,
    thresholds: CorrectnessThresholds,
    significance: Option<&Significance>,
) -> Result<CorrectnessGate> {
    thresholds.check()?;
    if k == 0 {
        return Err(Error::usage("`k` is 0: no document would count"));
    }
    let mut values = Values::default();
    for (query, retrieved) in results {
        match retrieved {
            Ok(retrieved) => values.add(query, retrieved, k),
            Err(message) => values.errored.add(&query.id, message),
        }
    }
    let summary = summary(&values, results.len(), k);
    let mut failed = Breaches::default();
    failed.at_most("queries_errored", values.errored.count as f64, 0.0, Some(values.errored.first.clone()));
    failed.at_least("queries_run", Some(summary.queries_run as f64), 1.0);
    let mut missed = Breaches::default();
    missed.at_least("mean_recall_at_k", summary.mean_recall_at_k, thresholds.recall_at_k);
    missed.at_least(
        "first_relevant_hit_rate",
        summary.first_relevant_hit_rate,
        thresholds.first_relevant_hit,
    );
    if summary.expected_top1_denominator > 0 {
        missed.at_least("expected_top1_hit_rate", summary.expected_top1_hit_rate, thresholds.expected_top1);
    }

    let (mut breaches, mut undecided, mut notes) = (failed.0, Breaches::default(), Vec::new());
    if let Some(judged) = summary.mean_judged_at_k.filter(|judged| *judged < thresholds.judged_at_k) {
        undecided.at_least(JUDGED, Some(judged), thresholds.judged_at_k);
        undecided.0.extend(missed.0);
        notes.push(format!(
            "only {:.0} % of the first {k} documents were judged: judge more of them, or accept that with --min-judged",
            100.0 * judged
        ));
    } else {
        breaches.extend(missed.0);
    }
    let tests = significance.map_or_else(Vec::new, |options| tests(options, &values, &thresholds));
    Ok(CorrectnessGate {
        ran: true,
        qrels_path: None,
        summary: Some(summary),
        thresholds: Some(thresholds),
        breaches,
        undecided: undecided.0,
        worst: Vec::new(),
        tests,
        notes,
    })
}

fn summary(values: &Values, queries_total: usize, k: usize) -> CorrectnessSummary {
    CorrectnessSummary {
        k,
        queries_total,
        queries_run: values.recall.len(),
        queries_errored: values.errored.count,
        mean_recall_at_k: stats::mean(&values.recall),
        first_relevant_hit_rate: stats::mean(&values.first),
        expected_top1_hit_rate: stats::mean(&values.expected),
        expected_top1_denominator: values.expected.len(),
        mean_judged_at_k: stats::mean(&values.judged),
    }
}

fn tests(options: &Significance, values: &Values, thresholds: &CorrectnessThresholds) -> Vec<MetricTest> {
    [
        ("mean_recall_at_k", &values.recall, thresholds.recall_at_k),
        ("first_relevant_hit_rate", &values.first, thresholds.first_relevant_hit),
        ("expected_top1_hit_rate", &values.expected, thresholds.expected_top1),
    ]
    .into_iter()
    .filter_map(|(metric, values, threshold)| {
        let margins: Vec<f64> = values.iter().map(|value| value - threshold).collect();
        options.test(metric, &margins)
    })
    .collect()
}
