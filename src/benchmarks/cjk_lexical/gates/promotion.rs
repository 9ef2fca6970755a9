//! The judgment of two results of one run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::measure::{CaseResult, Cost, Figures, Latin, Measured};
use super::{PromotionGates, Tokenizer};

/// Sums of floats differ by less than this when they mean the same.
const SLACK: f64 = 1e-9;

/// Categories of the fixture that count as identifiers.
const IDENTIFIERS: [&str; 2] = ["identifier", "filename"];

/// Whether the candidate may be the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Every gate passed.
    Promoted,
    /// Some gate did not.
    NoShip,
}

/// One thing that was demanded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gate {
    /// Its name, such as `quality.recall@10`.
    pub gate: String,
    /// The language or category, where it has one.
    pub of: Option<String>,
    /// What the baseline gave, where that is a number of the same kind.
    pub baseline: Option<f64>,
    /// What was measured of the candidate; absent when it was not, and then the gate has not passed.
    pub measured: Option<f64>,
    /// What was demanded: at least this …
    pub at_least: Option<f64>,
    /// … or at most this.
    pub at_most: Option<f64>,
    /// Whether it passed.
    pub passed: bool,
    /// The queries that it failed for.
    pub failed: Vec<String>,
}

/// What the gates say of a candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// Who was judged.
    pub candidate: Tokenizer,
    /// The outcome.
    pub outcome: Outcome,
    /// Every gate, passed or not.
    pub gates: Vec<Gate>,
}

impl Gate {
    fn new(gate: &str, of: Option<&str>, baseline: Option<f64>, measured: Option<f64>) -> Self {
        Self {
            gate: gate.into(),
            of: of.map(Into::into),
            baseline,
            measured,
            at_least: None,
            at_most: None,
            passed: false,
            failed: Vec::new(),
        }
    }

    fn at_least(self, bound: f64) -> Self {
        let passed = self.measured.is_some_and(|measured| measured + SLACK >= bound);
        Self { at_least: Some(bound), passed, ..self }
    }

    fn at_most(self, bound: f64) -> Self {
        let passed = self.measured.is_some_and(|measured| measured <= bound + SLACK);
        Self { at_most: Some(bound), passed, ..self }
    }

    fn failing(self, failed: Vec<String>) -> Self {
        Self { failed, ..self }
    }

    /// Whether it depends on how fast the machine was.
    pub fn is_timed(&self) -> bool {
        self.gate == "cost.build" || self.gate.starts_with("cost.warm-p95")
    }
}

/// Judges `candidate` by `gates`, beside the `baseline` of the same run. Depends on its arguments alone.
///
/// What was not measured fails, and so does a candidate that was asked other queries than the gates were made for or
/// than the baseline was.
pub fn promotion(gates: &PromotionGates, baseline: &Measured, candidate: &Measured) -> Decision {
    let mut all = quality(gates, baseline, candidate);
    all.extend(coverage(gates, candidate));
    all.extend(latin(gates, baseline.latin.as_ref(), candidate.latin.as_ref()));
    all.extend(identifiers(gates, baseline, candidate));
    all.extend(cost(gates, baseline.cost, candidate.cost));
    let switched = baseline.switch_differences.zip(candidate.switch_differences);
    all.push(
        Gate::new("rollback.differences", None, None, switched.map(|(a, b)| (a + b) as f64)).at_most(0.0),
    );
    let outcome = if all.iter().all(|gate| gate.passed) { Outcome::Promoted } else { Outcome::NoShip };
    Decision { candidate: candidate.tokenizer, outcome, gates: all }
}

/// The results of a language, if there are as many as there should be.
fn of_language<'a>(measured: &'a Measured, language: &str, queries: usize) -> Option<Vec<&'a CaseResult>> {
    let cases: Vec<_> = measured.bm25.cases.iter().filter(|case| case.language == language).collect();
    (cases.len() == queries).then_some(cases)
}

fn quality(gates: &PromotionGates, baseline: &Measured, candidate: &Measured) -> Vec<Gate> {
    let mut all = Vec::new();
    for (language, floors) in &gates.quality {
        let both = of_language(baseline, language, floors.queries)
            .zip(of_language(candidate, language, floors.queries))
            .filter(|(a, b)| a.iter().zip(b).all(|(a, b)| a.id == b.id && a.expected == b.expected));
        let figures = |measured: &Measured| both.as_ref().and(measured.bm25.languages.get(language).copied());
        let (before, after) = (figures(baseline), figures(candidate));
        let gate = |name: &str, of: fn(&Figures) -> f64| {
            Gate::new(
                &format!("quality.{name}"),
                Some(language),
                before.as_ref().map(of),
                after.as_ref().map(of),
            )
        };
        let required = &floors.required;
        all.push(gate("recall@5", |f| f.recall_5).at_least(required.recall_5));
        all.push(gate("recall@10", |f| f.recall_10).at_least(required.recall_10));
        all.push(gate("mrr", |f| f.mrr).at_least(required.mrr));
        all.push(gate("ndcg@10", |f| f.ndcg_10).at_least(required.ndcg_10));
        all.push(gate("zero-result-rate", |f| f.zero_result_rate).at_most(required.zero_result_rate));
        let hits = |cases: &[&CaseResult]| cases.iter().filter(|case| case.answered).count() as f64;
        let more = both.as_ref().map(|(a, b)| hits(b) - hits(a));
        all.push(
            Gate::new("quality.additional-hits", Some(language), None, more)
                .at_least(floors.additional_hits as f64),
        );
    }
    all
}

fn coverage(gates: &PromotionGates, candidate: &Measured) -> Vec<Gate> {
    let found = |id: &String| {
        candidate.bm25.cases.iter().any(|case| &case.id == id && case.figures.recall_10 + SLACK >= 1.0)
    };
    let each = gates.failure_coverage.iter().map(|(category, examples)| {
        let failed: Vec<String> = examples.iter().filter(|id| !found(id)).cloned().collect();
        let recovered = (examples.len() - failed.len()) as f64;
        Gate::new("failure-coverage", Some(category), Some(0.0), Some(recovered))
            .at_least(examples.len() as f64)
            .failing(failed)
    });
    each.collect()
}

fn latin(gates: &PromotionGates, baseline: Option<&Latin>, candidate: Option<&Latin>) -> [Gate; 2] {
    let both = baseline.zip(candidate).filter(|(a, b)| a.queries == b.queries && a.queries > 0);
    let gate = |name: &str, of: fn(&Latin) -> f64, loss: f64| {
        let floor = both.map_or(0.0, |(a, _)| of(a) - loss);
        Gate::new(name, None, both.map(|(a, _)| of(a)), both.map(|(_, b)| of(b))).at_least(floor)
    };
    [
        gate("latin.recall@10", |l| l.recall_10, gates.regression.recall_10_loss),
        gate("latin.ndcg@10", |l| l.ndcg_10, gates.regression.ndcg_10_loss),
    ]
}

/// An identifier: its id, whether it was found, whether nothing was.
type Looked<'a> = (&'a str, bool, bool);

/// The identifiers of the matrix and of the fixture.
fn looked_for(measured: &Measured) -> Option<Vec<Looked<'_>>> {
    let of_matrix = measured.latin.as_ref()?.identifiers.iter().map(|i| (&*i.id, i.first, i.zero_result));
    let cases = measured.bm25.cases.iter().filter(|case| IDENTIFIERS.contains(&&*case.category));
    Some(of_matrix.chain(cases.map(|case| (&*case.id, case.answered, case.found.is_empty()))).collect())
}

fn identifiers(gates: &PromotionGates, baseline: &Measured, candidate: &Measured) -> [Gate; 2] {
    let both = looked_for(baseline).zip(looked_for(candidate));
    let both =
        both.filter(|(a, b)| !a.is_empty() && a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.0 == b.0));
    let gate = |name: &str, lost: fn(&(&Looked<'_>, &Looked<'_>)) -> bool, limit: usize| {
        let failed = both.as_ref().map(|(a, b)| -> Vec<String> {
            a.iter().zip(b).filter(lost).map(|(a, _)| a.0.to_owned()).collect()
        });
        let count = failed.as_ref().map(|failed| failed.len() as f64);
        Gate::new(name, None, None, count).at_most(limit as f64).failing(failed.unwrap_or_default())
    };
    [
        gate("identifiers.lost", |(a, b)| a.1 && !b.1, gates.regression.lost_identifiers),
        gate("identifiers.new-zero-results", |(a, b)| !a.2 && b.2, gates.regression.new_zero_results),
    ]
}

fn cost(gates: &PromotionGates, baseline: Option<Cost>, candidate: Option<Cost>) -> [Gate; 4] {
    let both =
        |of: fn(&Cost) -> Option<f64>| baseline.as_ref().and_then(of).zip(candidate.as_ref().and_then(of));
    let ratio = |name: &str, of: fn(&Cost) -> Option<f64>, most: f64| {
        let ratio = both(of).filter(|(before, _)| *before > 0.0).map(|(before, after)| after / before);
        Gate::new(name, None, Some(1.0), ratio).at_most(most)
    };
    let more = both(|c| c.warm_p95_ms).map(|(before, after)| after - before);
    [
        ratio("cost.index-bytes", |c| Some(c.index_bytes as f64), gates.cost.index_bytes_ratio),
        ratio("cost.build", |c| c.build_ms, gates.cost.build_ratio),
        ratio("cost.warm-p95", |c| c.warm_p95_ms, gates.cost.warm_p95_ratio),
        Gate::new("cost.warm-p95-more-ms", None, Some(0.0), more).at_most(gates.cost.warm_p95_more_ms),
    ]
}
