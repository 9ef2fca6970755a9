//! The gate's answer: one verdict, for people and as JSON.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::question::{Figure, Limit, Question};
use super::significance::{MetricTest, Significance, correct, unconfirmed};
use super::{Breach, CorrectnessGate, RegressionGate, Verdict};
use crate::error::{Error, Result};
use crate::text::one_line;

/// Characters of an error that people are shown.
const TAIL: usize = 500;

/// What a gate says of one or both questions; the format `gate`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "rankgate gate")]
pub struct GateReport {
    /// Version of this format.
    pub version: u32,
    /// The verdict over what was asked; a question that was not has no say.
    pub verdict: Verdict,
    /// What does not hold or cannot be decided, each with figure, threshold and file; empty when all holds.
    #[serde(default)]
    pub reasons: Vec<String>,
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
            let all = (regression.tests.len() + correctness.tests.len(), options.alpha);
            let RegressionGate { breaches, tests, notes, .. } = &mut regression;
            let doubtful = unconfirmed(breaches, tests, all, notes);
            regression.undecided.extend(doubtful);
            let CorrectnessGate { breaches, tests, notes, .. } = &mut correctness;
            let doubtful = unconfirmed(breaches, tests, all, notes);
            correctness.undecided.extend(doubtful);
        }
        let verdict = regression.verdict().and(correctness.verdict());
        let (regression_gate, correctness_gate) = (regression, correctness);
        let mut report = Self {
            version: 1,
            verdict,
            reasons: Vec::new(),
            regression_gate,
            correctness_gate,
            significance,
        };
        report.reasons = report.questions().iter().flat_map(Question::reasons).collect();
        Ok(report)
    }

    /// The report for people: the verdict, each question with its figures, then what does not hold.
    pub fn text(&self) -> String {
        let mut out = format!("gate: {}\n", words(self.verdict));
        // Writing to a String cannot fail.
        self.questions().iter().for_each(|question| _ = write_question(&mut out, question));
        out
    }
}

fn write_question(out: &mut String, question: &Question<'_>) -> std::fmt::Result {
    let path = question.path.map(|path| format!(", {path}")).unwrap_or_default();
    writeln!(out, "\n{}: {}{}", question.name, words(question.verdict), one_line(&path))?;
    writeln!(out, "  {:<24} {}", question.basis.0, question.basis.1)?;
    for Figure { metric, value, limit } in &question.figures {
        let limit = match limit {
            Some(Limit::Floor(floor)) => format!("  floor {floor:.3}"),
            Some(Limit::Ceiling(ceiling)) => format!("  ceiling {ceiling:.3}"),
            None => String::new(),
        };
        writeln!(out, "  {metric:<24} {:>6}{limit}", number(*value))?;
    }
    write_tests(out, question.tests)?;
    write_reasons(out, question, "BREACHES", question.breaches)?;
    write_reasons(out, question, "UNDECIDED", question.undecided)?;
    question.notes.iter().try_for_each(|note| writeln!(out, "  note: {}", one_line(note)))?;
    for (index, (title, lines)) in question.worst.iter().enumerate() {
        if index == 0 {
            writeln!(out, "  WORST")?;
        }
        writeln!(out, "    {}", one_line(title))?;
        lines.iter().try_for_each(|line| writeln!(out, "      {}", one_line(line)))?;
    }
    Ok(())
}

/// The verdict as people read it.
pub(super) fn words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "PASS",
        Verdict::Fail => "FAIL",
        Verdict::Inconclusive => "INCONCLUSIVE",
    }
}

fn number(value: Option<f64>) -> String {
    value.map_or("none".into(), |value| format!("{value:.3}"))
}

fn write_tests(out: &mut String, tests: &[MetricTest]) -> std::fmt::Result {
    if !tests.is_empty() {
        writeln!(out, "  TESTS of the mean distance from the threshold, of latency in milliseconds")?;
    }
    for test in tests {
        let effect = test.minimum_detectable_effect;
        writeln!(
            out,
            "    {:<24} {:+.3} [{:+.3}, {:+.3}], p = {:.4}, n = {}, would notice a loss of {} or more",
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

fn write_reasons(
    out: &mut String,
    question: &Question<'_>,
    heading: &str,
    list: &[Breach],
) -> std::fmt::Result {
    if !list.is_empty() {
        writeln!(out, "  {heading}")?;
    }
    for breach in list {
        writeln!(out, "    {}", one_line(&question.reason(breach)))?;
        if let Some(tail) = &breach.error_tail {
            let tail: String = tail.chars().take(TAIL).collect();
            writeln!(out, "      {}", one_line(&tail))?;
        }
    }
    Ok(())
}
