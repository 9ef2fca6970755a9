//! The figures of `rankgate score`, as JSON and as a table.

use std::collections::BTreeMap;
use std::fmt::Write;

use schemars::JsonSchema;
use serde::Serialize;

use crate::corpus::{JudgedQuery, Judgments, Ranking};
use crate::metrics::{self, stats};

/// What `rankgate score --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct Output {
    /// Version of this format.
    pub(super) version: u32,
    /// The corpus folder as given; absent when stored runs were scored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) corpus: Option<String>,
    /// Documents in the index; absent when stored runs were scored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) documents: Option<u64>,
    /// Queries with at least one relevant document; the others are not scored.
    pub(super) queries: usize,
    /// Documents of each query that count.
    pub(super) limit: u32,
    /// Fingerprint of the embedder that ran; absent when only words were used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) embedder: Option<String>,
    /// Figures by mode, or by the path of a stored run.
    pub(super) modes: BTreeMap<String, Figures>,
}

/// The figures of one mode: means over the queries, each in [0, 1], and milliseconds a query.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Figures {
    #[serde(rename = "recall@5")]
    recall_5: f64,
    #[serde(rename = "recall@10")]
    recall_10: f64,
    #[serde(rename = "recall@100")]
    recall_100: f64,
    #[serde(rename = "ndcg@10")]
    ndcg_10: f64,
    mrr: f64,
    map: f64,
    /// 95 % bootstrap interval of ndcg@10 over the queries.
    #[serde(rename = "ndcg@10_ci")]
    ndcg_10_ci: [f64; 2],
    /// Absent when a stored run was scored; so is the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    p50_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p95_ms: Option<f64>,
    /// Queries whose expansion failed, so that the plain query was searched; absent where nothing is expanded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) failed_expansions: Option<usize>,
}

impl Figures {
    /// The figures of one ranking a case, in the order of the cases, and how many milliseconds each took.
    pub(super) fn new(cases: &[JudgedQuery], rankings: &[Ranking], took: Option<&[f64]>) -> Self {
        // Every case has a relevant document, so every measure is defined.
        let each = |measure: &dyn Fn(&Ranking, &Judgments) -> Option<f64>| -> Vec<f64> {
            cases
                .iter()
                .zip(rankings)
                .filter_map(|(case, ranking)| measure(ranking, &case.judgments))
                .collect()
        };
        let mean = |measure: &dyn Fn(&Ranking, &Judgments) -> Option<f64>| {
            stats::mean(&each(measure)).unwrap_or(0.0)
        };
        let ndcg = each(&|ranking, judged| metrics::ndcg_at(10, ranking.docids(), judged));
        let interval = stats::bootstrap_mean_ci(&ndcg, 0.95, 1000, 42);
        let percentile = |p| stats::percentile(took?, p);
        Self {
            recall_5: mean(&|ranking, judged| metrics::recall_at(5, ranking.docids(), judged)),
            recall_10: mean(&|ranking, judged| metrics::recall_at(10, ranking.docids(), judged)),
            recall_100: mean(&|ranking, judged| metrics::recall_at(100, ranking.docids(), judged)),
            ndcg_10: stats::mean(&ndcg).unwrap_or(0.0),
            mrr: mean(&|ranking, judged| metrics::reciprocal_rank(ranking.docids(), judged)),
            map: mean(&|ranking, judged| metrics::average_precision(ranking.docids(), judged)),
            ndcg_10_ci: interval.map_or([0.0; 2], |interval| [interval.low, interval.high]),
            p50_ms: percentile(50.0),
            p95_ms: percentile(95.0),
            failed_expansions: None,
        }
    }
}

/// The table for people, in the order of `modes`.
pub(super) fn table(output: &Output, modes: &[String]) -> String {
    let mut text = match (&output.corpus, output.documents) {
        (Some(corpus), Some(documents)) => format!("{corpus}: {documents} documents, "),
        _ => String::new(),
    };
    let width = modes.iter().map(|mode| mode.chars().count()).max().unwrap_or(0).max(17);
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{} queries, {} documents of each count\n", output.queries, output.limit);
    let _ = writeln!(
        text,
        "{:<width$} {:>8} {:>9} {:>10}  {:<22} {:>6} {:>6}  {:>7} {:>7}",
        "mode", "recall@5", "recall@10", "recall@100", "ndcg@10 (95 %)", "mrr", "map", "p50 ms", "p95 ms"
    );
    for mode in modes {
        let f = &output.modes[mode];
        let ndcg = format!("{:.4} [{:.3}, {:.3}]", f.ndcg_10, f.ndcg_10_ci[0], f.ndcg_10_ci[1]);
        let _ = writeln!(
            text,
            "{:<width$} {:>8.4} {:>9.4} {:>10.4}  {:<22} {:>6.4} {:>6.4}  {:>7} {:>7}",
            super::super::line(mode),
            f.recall_5,
            f.recall_10,
            f.recall_100,
            ndcg,
            f.mrr,
            f.map,
            milliseconds(f.p50_ms),
            milliseconds(f.p95_ms)
        );
    }
    text
}

fn milliseconds(took: Option<f64>) -> String {
    took.map_or("–".into(), |took| format!("{took:.1}"))
}
