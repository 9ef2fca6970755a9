//! The gate's answer: one verdict, for people and as JSON.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::significance::{MetricTest, Significance, correct, unconfirmed};
use super::{Breach, CorrectnessGate, RegressionGate, Verdict};
use crate::error::{Error, Result};

/// Characters of an error that people are shown.
const TAIL: usize = 200;

/// What a gate says of one or both questions; the format `gate`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "rankgate gate")]
pub struct GateReport {
    /// Version of this format.
    pub version: u32,
    /// The verdict over what was asked; a question that was not has no say.
    pub verdict: Verdict,
    /// Do captured searches still return what they returned?
    pub regression_gate: RegressionGate,
    /// Do searches with a known answer find it?
    pub correctness_gate: CorrectnessGate,
    /// How the tests were made, where they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub significance: Option<Significance>,
}

impl GateReport {
    /// Joins the answers. With `significance`, p-values are corrected for all metrics together, and a miss that its
    /// test does not confirm becomes undecided.
    ///
    /// Fails when neither question was asked, and on a `significance` that cannot be used.
    pub fn new(
        regression: Option<RegressionGate>,
        correctness: Option<CorrectnessGate>,
        significance: Option<Significance>,
    ) -> Result<Self> {
        if regression.is_none() && correctness.is_none() {
            return Err(
                Error::usage("the gate has nothing to decide").with_hint("give --baseline, --qrels or both")
            );
        }
        let mut regression = regression.unwrap_or_default();
        let mut correctness = correctness.unwrap_or_default();
        if let Some(options) = &significance {
            options.check()?;
            let tests = regression.tests.iter_mut().chain(&mut correctness.tests);
            correct(&mut tests.collect::<Vec<_>>());
            regression.undecided.extend(unconfirmed(
                &mut regression.breaches,
                &regression.tests,
                options.alpha,
            ));
            let doubtful = unconfirmed(&mut correctness.breaches, &correctness.tests, options.alpha);
            correctness.undecided.extend(doubtful);
        }
        let verdict = regression.verdict().and(correctness.verdict());
        let (regression_gate, correctness_gate) = (regression, correctness);
        Ok(Self { version: 1, verdict, regression_gate, correctness_gate, significance })
    }

    /// The report for people: the verdict, each question with its figures, then what does not hold.
    pub fn text(&self) -> String {
        let mut out = format!("gate: {}\n", words(self.verdict));
        // Writing to a String cannot fail.
        let _ = self.write_regression(&mut out);
        let _ = self.write_correctness(&mut out);
        out
    }

    fn write_regression(&self, out: &mut String) -> std::fmt::Result {
        let gate = &self.regression_gate;
        let (Some(summary), Some(thresholds)) = (&gate.summary, &gate.thresholds) else { return Ok(()) };
        let floors = thresholds.floors;
        title(out, "regression", gate.verdict(), gate.baseline_path.as_deref())?;
        writeln!(
            out,
            "  rows                     {} of {} replayed, {} skipped, {} errored",
            summary.rows_replayed, summary.rows_total, summary.rows_skipped, summary.rows_errored
        )?;
        figure(out, "mean_jaccard", summary.mean_jaccard, Some(("floor", floors.jaccard)))?;
        figure(out, "top1_stability_rate", summary.top1_stability_rate, Some(("floor", floors.top1)))?;
        figure(out, "mean_rank_biased_overlap", summary.mean_rank_biased_overlap, None)?;
        figure(out, "latency_ratio", summary.latency_ratio, Some(("ceiling", floors.latency_multiplier)))?;
        write_tests(out, &gate.tests)?;
        write_lists(out, &gate.breaches, &gate.undecided, &gate.notes)
    }

    fn write_correctness(&self, out: &mut String) -> std::fmt::Result {
        let gate = &self.correctness_gate;
        let (Some(summary), Some(thresholds)) = (&gate.summary, &gate.thresholds) else { return Ok(()) };
        title(out, "correctness", gate.verdict(), gate.qrels_path.as_deref())?;
        writeln!(
            out,
            "  queries                  {} of {} run, {} errored, k = {}",
            summary.queries_run, summary.queries_total, summary.queries_errored, summary.k
        )?;
        figure(out, "mean_recall_at_k", summary.mean_recall_at_k, Some(("floor", thresholds.recall_at_k)))?;
        let first = Some(("floor", thresholds.first_relevant_hit));
        figure(out, "first_relevant_hit_rate", summary.first_relevant_hit_rate, first)?;
        if summary.expected_top1_denominator > 0 {
            let floor = Some(("floor", thresholds.expected_top1));
            figure(out, "expected_top1_hit_rate", summary.expected_top1_hit_rate, floor)?;
        }
        if summary.mean_judged_at_k.is_some() {
            figure(
                out,
                "mean_judged_at_k",
                summary.mean_judged_at_k,
                Some(("floor", thresholds.judged_at_k)),
            )?;
        }
        write_tests(out, &gate.tests)?;
        write_lists(out, &gate.breaches, &gate.undecided, &gate.notes)
    }
}

fn words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "PASS",
        Verdict::Fail => "FAIL",
        Verdict::Inconclusive => "INCONCLUSIVE",
    }
}

fn title(out: &mut String, name: &str, verdict: Verdict, path: Option<&str>) -> std::fmt::Result {
    let path = path.map(|path| format!(", {path}")).unwrap_or_default();
    writeln!(out, "\n{name}: {}{path}", words(verdict))
}

fn figure(out: &mut String, name: &str, value: Option<f64>, limit: Option<(&str, f64)>) -> std::fmt::Result {
    let limit = limit.map(|(what, limit)| format!("  {what} {limit:.3}")).unwrap_or_default();
    writeln!(out, "  {name:<24} {:>6}{limit}", number(value))
}

fn number(value: Option<f64>) -> String {
    value.map_or("none".into(), |value| format!("{value:.3}"))
}

fn write_tests(out: &mut String, tests: &[MetricTest]) -> std::fmt::Result {
    if !tests.is_empty() {
        writeln!(out, "  TESTS of the margin to the threshold")?;
    }
    for test in tests {
        let effect = test.minimum_detectable_effect;
        writeln!(
            out,
            "    {:<24} {:+.3} [{:+.3}, {:+.3}], p = {:.4}, n = {}, sees losses from {}",
            test.metric,
            test.margin,
            test.interval.low,
            test.interval.high,
            test.p_adjusted,
            test.n,
            number(effect)
        )?;
    }
    Ok(())
}

fn write_lists(
    out: &mut String,
    breaches: &[Breach],
    undecided: &[Breach],
    notes: &[String],
) -> std::fmt::Result {
    for (heading, list) in [("BREACHES", breaches), ("UNDECIDED", undecided)] {
        if !list.is_empty() {
            writeln!(out, "  {heading}")?;
        }
        for breach in list {
            let (observed, threshold) = (number(breach.observed), number(breach.threshold));
            writeln!(out, "    {}: observed {observed}, threshold {threshold}", breach.metric)?;
            if let Some(tail) = &breach.error_tail {
                let tail: String = tail.chars().take(TAIL).collect();
                writeln!(out, "      {}", tail.replace(['\n', '\r'], " "))?;
            }
        }
    }
    notes.iter().try_for_each(|note| writeln!(out, "  note: {note}"))
}
