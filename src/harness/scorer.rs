//! Scorers: what turns an output into a number in [0, 1].

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use crate::corpus::Judgments;
use crate::trace::Trace;

use super::case::{BoxError, Judged, Ranked, report};
use crate::metrics;

/// All that a scorer may look at.
#[derive(Debug)]
pub struct Observed<'a, C, O> {
    /// The case.
    pub case: &'a C,
    /// What the subject returned.
    pub output: &'a O,
    /// Time inside the subject.
    pub took: Duration,
    /// The stages the subject went through.
    pub trace: &'a Trace,
    /// Which trial of the case this is, from 0.
    pub trial: u32,
}

/// What a scorer says.
#[derive(Debug, Clone, PartialEq)]
pub enum Scored {
    /// A value in [0, 1], higher is better, and anything worth keeping beside it.
    Value(f64, Value),
    /// A value that is shown and kept out of every verdict of this run.
    Informs {
        /// In [0, 1].
        value: f64,
        /// Anything worth keeping beside it.
        detail: Value,
        /// Why it does not count: `the judge agrees too little with its labels`.
        why: String,
    },
    /// There is nothing to score, for this reason. The case leaves this scorer's mean.
    Skipped(String),
    /// The scorer failed. The case stays in the mean, with 0.
    Failed(String),
}

impl Scored {
    /// Left out of the mean for a reason: no judge is configured, nothing is judged.
    pub fn skipped(reason: impl Into<String>) -> Self {
        Self::Skipped(reason.into())
    }
}

impl From<f64> for Scored {
    fn from(value: f64) -> Self {
        Self::Value(value, Value::Null)
    }
}

impl From<bool> for Scored {
    fn from(yes: bool) -> Self {
        Self::from(f64::from(u8::from(yes)))
    }
}

impl<T: Into<Scored>, E: Into<BoxError>> From<Result<T, E>> for Scored {
    fn from(result: Result<T, E>) -> Self {
        match result {
            Ok(value) => value.into(),
            Err(error) => Self::Failed(report(&error.into())),
        }
    }
}

type Run<C, O> = dyn Fn(&Observed<'_, C, O>) -> Scored + Send + Sync;

/// A named function from an output to a score, with the threshold of its mean.
pub struct Scorer<C, O> {
    pub(super) name: String,
    pub(super) threshold: Option<f64>,
    pub(super) gates: bool,
    pub(super) of_case: bool,
    pub(super) run: Box<Run<C, O>>,
}

impl<C, O> Scorer<C, O> {
    /// A scorer that looks at everything [`Observed`] has. For case and output alone, see [`scorer`].
    pub fn new<R: Into<Scored>>(
        name: impl Into<String>,
        run: impl Fn(&Observed<'_, C, O>) -> R + Send + Sync + 'static,
    ) -> Self {
        let run = move |seen: &Observed<'_, C, O>| run(seen).into();
        Self { name: name.into(), threshold: None, gates: true, of_case: true, run: Box::new(run) }
    }

    /// The threshold of this scorer's mean, instead of the eval's.
    #[must_use]
    pub fn at_least(mut self, threshold: f64) -> Self {
        self.threshold = Some(threshold);
        self
    }

    /// Counts for the gate's mean and not for the verdict of a case: for what varies from run to run.
    #[must_use]
    pub fn gate_only(mut self) -> Self {
        self.of_case = false;
        self
    }

    /// Shows the score and keeps it out of every verdict. An error still counts.
    #[must_use]
    pub fn report_only(mut self) -> Self {
        self.gates = false;
        self
    }
}

/// A scorer from a closure over case and output, which returns a number, a `bool`, a [`Scored`], or a
/// `Result` of one of them. Inside an eval, [`Eval::score_with`](super::Eval::score_with) knows the types.
///
/// ```
/// use rankgate::prelude::*;
/// let polite = scorer("says please", |_: &Example<&str>, answer: &String| answer.contains("please"));
/// let gated = polite.at_least(0.9);
/// ```
pub fn scorer<C, O, R: Into<Scored>>(
    name: impl Into<String>,
    run: impl Fn(&C, &O) -> R + Send + Sync + 'static,
) -> Scorer<C, O> {
    Scorer::new(name, move |seen| run(seen.case, seen.output))
}

/// The share of the relevant documents among the first `k`.
pub fn recall_at<C: Judged, O: Ranked>(k: usize) -> Scorer<C, O> {
    judged(format!("recall@{k}"), move |docids, judgments| metrics::recall_at(k, docids, judgments))
}

/// The share of relevant documents among the first `k` places; a short ranking does not get a smaller k.
pub fn precision_at<C: Judged, O: Ranked>(k: usize) -> Scorer<C, O> {
    judged(format!("precision@{k}"), move |docids, judgments| metrics::precision_at(k, docids, judgments))
}

/// Normalised discounted cumulative gain of the first `k`.
pub fn ndcg_at<C: Judged, O: Ranked>(k: usize) -> Scorer<C, O> {
    judged(format!("ndcg@{k}"), move |docids, judgments| metrics::ndcg_at(k, docids, judgments))
}

/// One over the rank of the first relevant document; its mean is MRR.
pub fn reciprocal_rank<C: Judged, O: Ranked>() -> Scorer<C, O> {
    judged("mrr".into(), |docids, judgments| metrics::reciprocal_rank(docids, judgments))
}

/// Average precision; its mean is MAP.
pub fn average_precision<C: Judged, O: Ranked>() -> Scorer<C, O> {
    judged("map".into(), |docids, judgments| metrics::average_precision(docids, judgments))
}

fn judged<C: Judged, O: Ranked>(
    name: String,
    measure: impl for<'a> Fn(Vec<&'a str>, &'a Judgments) -> Option<f64> + Send + Sync + 'static,
) -> Scorer<C, O> {
    Scorer::new(name, move |seen: &Observed<'_, C, O>| {
        let ranking = seen.output.ranking();
        if let Some(docid) = ranking.duplicate() {
            return Scored::Failed(format!(
                "the ranking names docid `{docid}` twice (rank documents, not their passages)"
            ));
        }
        match measure(ranking.docids().collect(), seen.case.judgments()) {
            Some(value) => Scored::from(value),
            None => Scored::skipped("no document is judged relevant"),
        }
    })
}

/// 1 within the budget b; above it max(0, 1 − (d − b) / b) for a duration d, so 0 from twice the budget.
///
/// The score depends on the machine and its load, so it counts for the gate's mean only, not for single cases.
///
/// # Panics
/// When the budget is zero.
pub fn latency<C, O>(budget: Duration) -> Scorer<C, O> {
    assert!(!budget.is_zero(), "latency: the budget is zero");
    Scorer::new(format!("latency<{}ms", budget.as_millis()), move |seen| {
        let (took, budget) = (seen.took.as_secs_f64() * 1e3, budget.as_secs_f64() * 1e3);
        let detail = json!({"took_ms": took, "budget_ms": budget, "within_budget": took <= budget});
        Scored::Value((1.0 - (took - budget) / budget).clamp(0.0, 1.0), detail)
    })
    .gate_only()
}

/// 1 when the output, as JSON, is valid under the JSON schema, else 0 with the first violations.
///
/// A schema that is not one makes every score an error.
pub fn schema_valid<C, O: Serialize>(name: impl Into<String>, schema: &Value) -> Scorer<C, O> {
    let validator = jsonschema::validator_for(schema).map_err(|e| format!("the schema is not one: {e}"));
    Scorer::new(name, move |seen| -> Result<Scored, BoxError> {
        let validator = validator.as_ref().map_err(Clone::clone)?;
        let output = serde_json::to_value(seen.output)?;
        let errors: Vec<String> = validator
            .iter_errors(&output)
            .take(5)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        Ok(if errors.is_empty() { 1.0.into() } else { Scored::Value(0.0, json!({ "violations": errors })) })
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::corpus::{JudgedQuery, Ranking};

    pub fn run<C, O>(scorer: &Scorer<C, O>, case: &C, output: &O, took: Duration) -> Scored {
        let trace = Trace::default();
        (scorer.run)(&Observed { case, output, took, trace: &trace, trial: 0 })
    }

    fn value<C, O>(scorer: &Scorer<C, O>, case: &C, output: &O, took: Duration) -> f64 {
        match run(scorer, case, output, took) {
            Scored::Value(value, _) => value,
            other => panic!("{other:?}"),
        }
    }

    fn case(judgments: &[(&str, i64)]) -> JudgedQuery {
        JudgedQuery {
            judgments: judgments.iter().map(|(docid, grade)| ((*docid).into(), *grade)).collect(),
            ..JudgedQuery::default()
        }
    }

    #[test]
    fn ranking_scorers_agree_with_values_by_hand() {
        let case = case(&[("a", 2), ("b", 1), ("x", 0)]);
        let ranking = Ranking::from_docids(["x", "a", "y", "b"]);
        let score = |scorer: Scorer<JudgedQuery, Ranking>| value(&scorer, &case, &ranking, Duration::ZERO);
        assert_eq!(score(recall_at(2)), 0.5);
        assert_eq!(score(precision_at(4)), 0.5);
        assert_eq!(score(precision_at(8)), 0.25, "a short ranking is not a better one");
        assert_eq!(score(reciprocal_rank()), 0.5);
        assert_eq!(score(average_precision()), 0.5);
        assert!((0.0..1.0).contains(&score(ndcg_at(10))));
    }

    #[test]
    fn nothing_judged_is_skipped_and_a_repeated_docid_is_an_error() {
        let scorer = recall_at::<JudgedQuery, Ranking>(5);
        let unjudged = run(&scorer, &case(&[("a", 0)]), &Ranking::from_docids(["a"]), Duration::ZERO);
        assert!(matches!(unjudged, Scored::Skipped(_)));
        let repeated = run(&scorer, &case(&[("a", 1)]), &Ranking::from_docids(["a", "a"]), Duration::ZERO);
        assert!(matches!(repeated, Scored::Failed(message) if message.contains("`a` twice")));
    }

    #[test]
    fn latency_falls_from_the_budget_to_twice_the_budget() {
        let scorer = latency::<(), ()>(Duration::from_millis(1000));
        for (took, expected) in [(0, 1.0), (1000, 1.0), (1250, 0.75), (2000, 0.0), (9000, 0.0)] {
            let score = value(&scorer, &(), &(), Duration::from_millis(took));
            assert!((score - expected).abs() < 1e-9, "{took} ms: {score}");
        }
    }

    #[test]
    fn schema_violations_are_kept_and_a_broken_schema_is_an_error() {
        let scorer = schema_valid::<(), Value>("schema", &json!({"type": "object", "required": ["hyde"]}));
        assert_eq!(value(&scorer, &(), &json!({"hyde": "x"}), Duration::ZERO), 1.0);
        match run(&scorer, &(), &json!({}), Duration::ZERO) {
            Scored::Value(value, detail) => {
                assert_eq!(value, 0.0);
                assert!(
                    detail["violations"][0].as_str().is_some_and(|text| text.contains("hyde")),
                    "{detail}"
                );
            }
            other => panic!("{other:?}"),
        }
        let broken = schema_valid::<(), Value>("schema", &json!({"type": 7}));
        assert!(matches!(run(&broken, &(), &Value::Null, Duration::ZERO), Scored::Failed(_)));
    }
}
