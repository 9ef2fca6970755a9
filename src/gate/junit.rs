//! The gate's answer as JUnit XML, which CI systems show as tests.

use std::fmt::Write;

use super::question::{Figure, Limit, Question};
use super::{Breach, GateReport};
use crate::error::Error;

/// The report as a document: one test case a decision, by the name of its metric, the same from run to run.
///
/// A metric below its threshold fails. One that cannot be decided is an error, or `skipped` where `tolerated` says
/// that it shall not stop anyone. Either says which rows or queries are the worst, with their diffs.
pub fn junit(report: &GateReport, tolerated: bool) -> String {
    let cases = report.questions().iter().flat_map(|question| cases(question, tolerated)).collect::<Vec<_>>();
    document(&cases)
}

/// A document for a gate that could not be run: one test case with the error.
pub fn junit_error(error: &Error) -> String {
    let outcome = Outcome { tag: "error", kind: "infrastructure", text: error.report() };
    document(&[Case { class: "gate", name: "run", outcome: Some(outcome), output: String::new() }])
}

struct Case {
    class: &'static str,
    name: &'static str,
    outcome: Option<Outcome>,
    output: String,
}

struct Outcome {
    tag: &'static str,
    kind: &'static str,
    text: String,
}

/// The test cases of one question.
fn cases(question: &Question<'_>, tolerated: bool) -> Vec<Case> {
    let figures = question.counts.iter().chain(&question.figures).filter(|figure| figure.limit.is_some());
    figures
        .map(|figure| Case {
            class: question.name,
            name: figure.metric,
            outcome: question
                .missed(figure.metric)
                .map(|(breach, certain)| missed(question, breach, certain, tolerated)),
            output: output(figure),
        })
        .collect()
}

fn missed(question: &Question<'_>, breach: &Breach, certain: bool, tolerated: bool) -> Outcome {
    let tail = breach.error_tail.as_deref().filter(|tail| !tail.is_empty());
    let mut text = question.reason(breach);
    let worst = question.worst.iter().flat_map(|(title, lines)| [title].into_iter().chain(lines));
    for line in tail.into_iter().chain(worst.map(String::as_str)) {
        text += "\n";
        text += line;
    }
    match (certain, tolerated) {
        (true, _) => Outcome { tag: "failure", kind: "threshold", text },
        (false, true) => Outcome { tag: "skipped", kind: "inconclusive", text },
        (false, false) => Outcome { tag: "error", kind: "inconclusive", text },
    }
}

fn output(figure: &Figure) -> String {
    let value = figure.value.map_or("not measured".into(), |value| value.to_string());
    match figure.limit {
        Some(Limit::Floor(floor)) => format!("{value}, floor {floor}"),
        Some(Limit::Ceiling(ceiling)) => format!("{value}, ceiling {ceiling}"),
        None => value,
    }
}

fn document(cases: &[Case]) -> String {
    let count = |tag: &str| cases.iter().filter(|c| c.outcome.as_ref().is_some_and(|o| o.tag == tag)).count();
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
        cases.len(),
        count("failure"),
        count("error"),
        count("skipped")
    );
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a String cannot fail.
    let _ = writeln!(xml, "<testsuites name=\"rankgate eval gate\" {counts}>");
    let _ = writeln!(xml, "  <testsuite name=\"rankgate eval gate\" {counts}>");
    for case in cases {
        let _ = write!(xml, "    <testcase classname=\"gate.{}\" name=\"{}\"", case.class, escape(case.name));
        if case.outcome.is_none() && case.output.is_empty() {
            xml.push_str("/>\n");
            continue;
        }
        xml.push_str(">\n");
        if let Some(Outcome { tag, kind, text }) = &case.outcome {
            let (first, whole) = (escape(text.lines().next().unwrap_or_default()), escape(text));
            // `skipped` knows no type in the common schema.
            let kind = if *tag == "skipped" { String::new() } else { format!(" type=\"{kind}\"") };
            let _ = writeln!(xml, "      <{tag} message=\"{first}\"{kind}>{whole}</{tag}>");
        }
        if !case.output.is_empty() {
            let _ = writeln!(xml, "      <system-out>{}</system-out>", escape(&case.output));
        }
        xml.push_str("    </testcase>\n");
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

/// Text for an element or an attribute. What XML 1.0 cannot hold, however written, becomes U+FFFD.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' => escaped.push(c),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
