//! The figures for people, as Markdown that also reads well in a terminal.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::collection::{Change, Compared};
use super::gates::{Decision, Gate, Outcome, PromotionGates};
use super::measure::{CoRun, Cost, Failure, Figures, Lane, Measured};

/// The page of a frozen baseline: the plain tokenizer and the diagnostic lanes.
pub fn baseline(run: &CoRun) -> String {
    let mut page = String::from("# CJK by words: baseline\n\n");
    page += "What a tokenizer for spaced scripts finds. Frozen: the promotion gates are derived from it.\n\n";
    page += &lanes(&[&run.baseline], &run.diagnostics);
    page += &failures(&run.baseline);
    page + &costs(&[&run.baseline])
}

/// The page of a decision: every gate, and the figures of both tokenizers.
pub fn decision(gates: &PromotionGates, run: &CoRun, decision: &Decision) -> String {
    let mut page = format!("# CJK by words: `{}`\n\n", decision.candidate.name());
    page += &format!("{}\n\nBaseline: `{}`.\n\n", verdict(decision), gates.baseline.artefact);
    page += &gate_table(&decision.gates);
    page += &lanes(&[&run.baseline, &run.candidate], &run.diagnostics);
    page += &failures(&run.candidate);
    page + &costs(&[&run.baseline, &run.candidate])
}

/// What the command prints.
pub fn report(run: &CoRun, decision: Option<&Decision>, compared: &[Compared]) -> String {
    let mut page = lanes(&[&run.baseline, &run.candidate], &run.diagnostics);
    page += &failures(&run.candidate);
    page += &costs(&[&run.baseline, &run.candidate]);
    if let Some(decision) = decision {
        page += &gate_table(&decision.gates);
        page += &format!("{}\n", verdict(decision));
    }
    if !compared.is_empty() {
        page += &format!("\n{}", collections(compared));
    }
    page
}

fn verdict(decision: &Decision) -> String {
    let passed = decision.gates.iter().filter(|gate| gate.passed).count();
    let outcome = match decision.outcome {
        Outcome::Promoted => "promoted",
        Outcome::NoShip => "no-ship",
    };
    format!(
        "`{}` is **{outcome}**: {passed} of {} gates passed.",
        decision.candidate.name(),
        decision.gates.len()
    )
}

/// A table whose columns are as wide as their widest cell; all but the first `left` are numbers.
fn table(left: usize, rows: Vec<Vec<String>>) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let space = " ".repeat(width - cell.chars().count());
            let (before, after) = if column < left { ("", &*space) } else { (&*space, "") };
            // Writing to a String cannot fail.
            let _ = write!(text, "| {before}{cell}{after} ");
        }
        text += "|\n";
        if number == 0 {
            for (column, width) in widths.iter().enumerate() {
                let line = "-".repeat(width + 1);
                text += &if column < left { format!("|{line}-") } else { format!("|{line}:") };
            }
            text += "|\n";
        }
    }
    text + "\n"
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(String::from).to_vec()
}

fn number(value: f64) -> String {
    format!("{value:.4}")
}

fn optional(value: Option<f64>) -> String {
    value.map_or("–".into(), number)
}

fn lanes(measured: &[&Measured], diagnostics: &BTreeMap<String, Lane>) -> String {
    let head = ["language", "lane", "recall@5", "recall@10", "mrr", "ndcg@10", "zero results"];
    let mut rows = vec![row(head)];
    let all = measured.iter().map(|measured| (format!("bm25 {}", measured.tokenizer.name()), &measured.bm25));
    let all: Vec<_> = all.chain(diagnostics.iter().map(|(name, lane)| (name.clone(), lane))).collect();
    let languages = measured.iter().flat_map(|measured| measured.bm25.languages.keys());
    let languages: std::collections::BTreeSet<&String> = languages.collect();
    for language in languages {
        for (name, lane) in &all {
            let Some(f) = lane.languages.get(language) else { continue };
            let Figures { recall_5, recall_10, mrr, ndcg_10, zero_result_rate } = *f;
            let figures = [recall_5, recall_10, mrr, ndcg_10, zero_result_rate].map(number);
            rows.push([language.clone(), name.clone()].into_iter().chain(figures).collect());
        }
    }
    table(2, rows)
}

fn failures(measured: &Measured) -> String {
    let mut rows = vec![row(["query", "category", "why", "text", "found"])];
    for case in &measured.bm25.cases {
        let Some(failure) = case.failure else { continue };
        let why = match failure {
            Failure::ZeroResult => "zero-result",
            Failure::NotInTop10 => "not-in-top-10",
            Failure::BelowRank5 => "below-rank-5",
        };
        let found = case.found.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
        rows.push(vec![
            case.id.clone(),
            case.category.clone(),
            why.into(),
            crate::text::one_line(&case.query).replace('|', "\\|"),
            found,
        ]);
    }
    let name = measured.tokenizer.name();
    match rows.len() {
        1 => format!("Failures of `{name}`: none.\n\n"),
        _ => format!("Failures of `{name}`:\n\n{}", table(5, rows)),
    }
}

fn costs(measured: &[&Measured]) -> String {
    let head = [
        "tokenizer",
        "index bytes",
        "build ms",
        "cold ms",
        "warm p50 ms",
        "warm p95 ms",
        "latin recall@10",
        "ndcg@10",
    ];
    let mut rows = vec![row(head)];
    for Measured { tokenizer, cost, latin, .. } in measured {
        let bytes = cost.map_or("–".into(), |cost| cost.index_bytes.to_string());
        let time = |of: fn(&Cost) -> Option<f64>| optional(cost.as_ref().and_then(of));
        rows.push(vec![
            tokenizer.name().into(),
            bytes,
            time(|c| c.build_ms),
            time(|c| c.cold_ms),
            time(|c| c.warm_p50_ms),
            time(|c| c.warm_p95_ms),
            optional(latin.as_ref().map(|latin| latin.recall_10)),
            optional(latin.as_ref().map(|latin| latin.ndcg_10)),
        ]);
    }
    table(1, rows)
}

fn gate_table(gates: &[Gate]) -> String {
    let mut rows = vec![row(["gate", "of", "outcome", "baseline", "measured", "demanded"])];
    for gate in gates {
        let demanded = match (gate.at_least, gate.at_most) {
            (Some(least), _) => format!("≥ {}", number(least)),
            (_, Some(most)) => format!("≤ {}", number(most)),
            _ => "–".into(),
        };
        let outcome = match (gate.passed, gate.failed.is_empty()) {
            (true, _) => "passed".into(),
            (false, true) => "FAILED".into(),
            (false, false) => format!("FAILED: {}", gate.failed.join(", ")),
        };
        let of = gate.of.clone().unwrap_or_default();
        let (baseline, measured) = (optional(gate.baseline), optional(gate.measured));
        rows.push(vec![gate.gate.clone(), of, outcome, baseline, measured, demanded]);
    }
    table(3, rows)
}

fn collections(compared: &[Compared]) -> String {
    let mut rows =
        vec![row(["collection", "documents", "queries", "measure", "words", "default", "difference (95 %)"])];
    for Compared { collection, documents, queries, recall_10, ndcg_10 } in compared {
        for (name, change) in [("recall@10", recall_10), ("ndcg@10", ndcg_10)] {
            let Change { words, default, difference, interval: [low, high] } = *change;
            rows.push(vec![
                crate::text::one_line(collection),
                documents.to_string(),
                queries.to_string(),
                name.into(),
                number(words),
                number(default),
                format!("{difference:+.4} [{low:+.4}, {high:+.4}]"),
            ]);
        }
    }
    table(1, rows)
}
