//! The two questions of a gate in one form, for whoever shows them.

use super::regression::STALE;
use super::significance::MetricTest;
use super::{Breach, CorrectnessGate, GateReport, RegressionGate, Verdict};

/// What a value has to keep to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Limit {
    Floor(f64),
    Ceiling(f64),
}

/// One value of a question.
#[derive(Debug, Clone, Copy)]
pub(super) struct Figure {
    pub(super) metric: &'static str,
    pub(super) value: Option<f64>,
    pub(super) limit: Option<Limit>,
}

impl Figure {
    fn new(metric: &'static str, value: Option<f64>, limit: Limit) -> Self {
        Self { metric, value, limit: Some(limit) }
    }

    fn count(metric: &'static str, count: usize, limit: Limit) -> Self {
        Self::new(metric, Some(count as f64), limit)
    }
}

/// One question that was asked.
pub(super) struct Question<'a> {
    pub(super) name: &'static str,
    pub(super) path: Option<&'a str>,
    pub(super) verdict: Verdict,
    /// What the figures rest on, in one line behind its name.
    pub(super) basis: (&'static str, String),
    /// Rows or queries by what became of them.
    pub(super) counts: Vec<Figure>,
    pub(super) figures: Vec<Figure>,
    pub(super) breaches: &'a [Breach],
    pub(super) undecided: &'a [Breach],
    pub(super) tests: &'a [MetricTest],
    pub(super) notes: &'a [String],
    /// The worst rows or queries: a title, and lines below it.
    pub(super) worst: Vec<(String, Vec<String>)>,
}

impl<'a> Question<'a> {
    /// A breach in words, with the file: a list of reasons is read far from its heading.
    pub(super) fn reason(&self, breach: &Breach) -> String {
        let file = self.path.map(|path| format!(" ({path})")).unwrap_or_default();
        format!("{}{file}", breach.reason())
    }

    /// All that does not hold, then what cannot be decided.
    pub(super) fn reasons(&self) -> Vec<String> {
        self.breaches.iter().chain(self.undecided).map(|breach| self.reason(breach)).collect()
    }

    /// The breach of a metric, and whether it is certain.
    pub(super) fn missed(&self, metric: &str) -> Option<(&'a Breach, bool)> {
        let of = |list: &[Breach]| list.iter().position(|breach| breach.metric == metric);
        match (of(self.breaches), of(self.undecided)) {
            (Some(at), _) => Some((&self.breaches[at], true)),
            (None, Some(at)) => Some((&self.undecided[at], false)),
            (None, None) => None,
        }
    }
}

impl GateReport {
    /// The questions that were asked.
    pub(super) fn questions(&self) -> Vec<Question<'_>> {
        [of_regression(&self.regression_gate), of_correctness(&self.correctness_gate)]
            .into_iter()
            .flatten()
            .collect()
    }
}

fn of_regression(gate: &RegressionGate) -> Option<Question<'_>> {
    use Limit::{Ceiling, Floor};
    if gate.is_refused() {
        return Some(of_stale(gate));
    }
    let (summary, thresholds) = (gate.summary.as_ref()?, gate.thresholds.as_ref()?);
    let floors = thresholds.floors;
    let basis = format!(
        "{} of {} replayed, {} skipped, {} errored",
        summary.rows_replayed, summary.rows_total, summary.rows_skipped, summary.rows_errored
    );
    Some(Question {
        name: "regression",
        path: gate.baseline_path.as_deref(),
        verdict: gate.verdict(),
        basis: ("rows", basis),
        counts: vec![
            Figure::count("rows_errored", summary.rows_errored, Ceiling(0.0)),
            Figure::count("rows_skipped", summary.rows_skipped, Ceiling(thresholds.max_skipped as f64)),
            Figure::count("rows_replayed", summary.rows_replayed, Floor(1.0)),
            Figure::count("rows_with_documents", summary.rows_replayed - summary.rows_empty, Floor(1.0)),
        ],
        figures: vec![
            Figure::new("mean_jaccard", summary.mean_jaccard, Floor(floors.jaccard)),
            Figure::new("top1_stability_rate", summary.top1_stability_rate, Floor(floors.top1)),
            Figure {
                metric: "mean_rank_biased_overlap",
                value: summary.mean_rank_biased_overlap,
                limit: None,
            },
            Figure::new("latency_ratio", summary.latency_ratio, Ceiling(floors.latency_multiplier)),
        ],
        breaches: &gate.breaches,
        undecided: &gate.undecided,
        tests: &gate.tests,
        notes: &gate.notes,
        worst: gate.worst.iter().map(|row| (row.title(), row.lines())).collect(),
    })
}

/// A baseline that was not replayed.
fn of_stale(gate: &RegressionGate) -> Question<'_> {
    Question {
        name: "regression",
        path: gate.baseline_path.as_deref(),
        verdict: gate.verdict(),
        basis: ("rows", "none replayed: the baseline is stale".into()),
        counts: vec![Figure::count(STALE, gate.stale.len(), Limit::Ceiling(0.0))],
        figures: Vec::new(),
        breaches: &gate.breaches,
        undecided: &gate.undecided,
        tests: &gate.tests,
        notes: &gate.notes,
        worst: Vec::new(),
    }
}

fn of_correctness(gate: &CorrectnessGate) -> Option<Question<'_>> {
    use Limit::{Ceiling, Floor};
    let (summary, thresholds) = (gate.summary.as_ref()?, gate.thresholds.as_ref()?);
    let basis = format!(
        "{} of {} run, {} errored, k = {}",
        summary.queries_run, summary.queries_total, summary.queries_errored, summary.k
    );
    let first = summary.first_relevant_hit_rate;
    let mut figures = vec![
        Figure::new("mean_recall_at_k", summary.mean_recall_at_k, Floor(thresholds.recall_at_k)),
        Figure::new("first_relevant_hit_rate", first, Floor(thresholds.first_relevant_hit)),
    ];
    if summary.expected_top1_denominator > 0 {
        let rate = summary.expected_top1_hit_rate;
        figures.push(Figure::new("expected_top1_hit_rate", rate, Floor(thresholds.expected_top1)));
    }
    if summary.mean_judged_at_k.is_some() {
        let judged = summary.mean_judged_at_k;
        figures.push(Figure::new("mean_judged_at_k", judged, Floor(thresholds.judged_at_k)));
    }
    Some(Question {
        name: "correctness",
        path: gate.qrels_path.as_deref(),
        verdict: gate.verdict(),
        basis: ("queries", basis),
        counts: vec![
            Figure::count("queries_errored", summary.queries_errored, Ceiling(0.0)),
            Figure::count("queries_run", summary.queries_run, Floor(1.0)),
        ],
        figures,
        breaches: &gate.breaches,
        undecided: &gate.undecided,
        tests: &gate.tests,
        notes: &gate.notes,
        worst: gate.worst.iter().map(|query| (query.title(), query.lines())).collect(),
    })
}
