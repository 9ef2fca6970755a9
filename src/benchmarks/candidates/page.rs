//! The artefact as Markdown.

use std::fmt::Write;

use super::artefact::{Artefact, Candidate, Kind};
use crate::text::one_line;

/// The page for people: what was compared, the figures, what they cost, and what they recommend.
pub fn page(artefact: &Artefact) -> String {
    let title = match artefact.kind {
        Kind::Candidates => "Retrieval candidates",
        Kind::HybridBaseline => "Hybrid baseline",
    };
    let mut text = format!("# {title}, {}\n\n", &artefact.generated_at.get(..10).unwrap_or_default());
    let sets: Vec<String> =
        artefact.sets.iter().map(|set| format!("{} {}", set.cases.len(), one_line(&set.name))).collect();
    let machine = &artefact.machine;
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "{} documents, cases: {}. {} on {} {}, {} cores.\nFingerprint `{}`.\n",
        artefact.corpus.documents,
        sets.join(", "),
        artefact.program,
        machine.os,
        machine.arch,
        machine.cores,
        artefact.fingerprint,
    );
    if let Some(recommendation) = &artefact.recommendation {
        let _ = writeln!(text, "**Recommendation:** {}.\n", recommendation.why);
    }
    quality(&mut text, artefact);
    costs(&mut text, artefact);
    comparisons(&mut text, artefact);
    failures(&mut text, artefact);
    text
}

/// A row of a table.
fn row(text: &mut String, cells: impl IntoIterator<Item = String>) {
    let cells: Vec<String> = cells.into_iter().map(|cell| one_line(&cell).replace('|', "\\|")).collect();
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

fn head(text: &mut String, title: &str, columns: &[&str]) {
    let _ = writeln!(text, "## {title}\n");
    row(text, columns.iter().map(|column| column.to_string()));
    let rule = columns.iter().enumerate().map(|(at, _)| if at == 0 { "---" } else { "---:" }.to_string());
    row(text, rule);
}

fn good(artefact: &Artefact) -> impl Iterator<Item = &Candidate> {
    artefact.candidates.iter().filter(|candidate| candidate.failed.is_none())
}

fn name(artefact: &Artefact, candidate: &Candidate) -> String {
    let mark =
        if artefact.candidates.len() > 1 && candidate.id == artefact.default { " (default)" } else { "" };
    format!("`{}`{mark}", candidate.id)
}

fn quality(text: &mut String, artefact: &Artefact) {
    let mut columns = vec!["candidate", "recall@5", "recall@10", "nDCG@10 (95 %)", "MRR"];
    let sets: Vec<&str> = artefact.sets.iter().map(|set| set.name.as_str()).collect();
    let by_set: Vec<String> = sets.iter().map(|set| format!("nDCG@10 {set}")).collect();
    columns.extend(by_set.iter().map(String::as_str));
    head(text, "Quality", &columns);
    for candidate in good(artefact) {
        let Some(all) = candidate.all() else { continue };
        let [low, high] = all.ndcg_10_ci;
        let mut cells = vec![
            name(artefact, candidate),
            format!("{:.4}", all.recall_5),
            format!("{:.4}", all.recall_10),
            format!("{:.4} [{low:.3}, {high:.3}]", all.ndcg_10),
            format!("{:.4}", all.mrr),
        ];
        cells.extend(sets.iter().map(|set| {
            let of_set = candidate.figures.get(*set);
            of_set.map_or("–".into(), |f| {
                format!("{:.4} [{:.3}, {:.3}]", f.ndcg_10, f.ndcg_10_ci[0], f.ndcg_10_ci[1])
            })
        }));
        row(text, cells);
    }
    text.push('\n');
}

fn costs(text: &mut String, artefact: &Artefact) {
    let mut stages: Vec<&str> =
        good(artefact).flat_map(|c| c.latency.keys().map(String::as_str)).filter(|s| *s != "total").collect();
    stages.sort_unstable();
    stages.dedup();
    let mut columns = vec!["candidate", "load s", "index s", "peak MiB", "p50 ms", "p95 ms"];
    let by_stage: Vec<String> = stages.iter().map(|stage| format!("{stage} p50/p95")).collect();
    columns.extend(by_stage.iter().map(String::as_str));
    head(text, "Cost", &columns);
    for candidate in good(artefact) {
        let cost = candidate.cost.clone().unwrap_or_default();
        let or_none =
            |value: Option<f64>, digits: usize| value.map_or("–".into(), |v| format!("{v:.digits$}"));
        let total = candidate.latency.get("total").cloned().unwrap_or_default();
        let mut cells = vec![
            name(artefact, candidate),
            or_none(cost.load_ms.map(|ms| ms / 1e3), 2),
            format!("{:.2}", cost.index_ms / 1e3),
            or_none(cost.peak_rss_bytes.map(|bytes| bytes as f64 / f64::from(1 << 20)), 0),
            format!("{:.1}", total.p50_ms),
            format!("{:.1}", total.p95_ms),
        ];
        cells.extend(stages.iter().map(|stage| {
            candidate.latency.get(*stage).map_or("–".into(), |l| format!("{:.1}/{:.1}", l.p50_ms, l.p95_ms))
        }));
        row(text, cells);
    }
    text.push_str("\nLoad, index and memory are of an embedder's process, shared by its candidates. ");
    text.push_str(
        "Stages that are entered twice count with their sum. Nothing is remembered of earlier runs: late ",
    );
    text.push_str("interaction reads each passage when it first meets it, which is what its p95 shows.\n");
}

fn comparisons(text: &mut String, artefact: &Artefact) {
    let comparisons = artefact.recommendation.iter().flat_map(|recommendation| &recommendation.comparisons);
    let mut comparisons = comparisons.peekable();
    if comparisons.peek().is_none() {
        return;
    }
    text.push('\n');
    head(
        text,
        "Against the default",
        &["candidate", "nDCG@10 difference (95 %)", "p", "p (Holm)", "worse on"],
    );
    for comparison in comparisons {
        let difference = comparison.difference;
        let worse: Vec<&str> = comparison.worse_on().collect();
        row(
            text,
            [
                format!("`{}`", comparison.candidate),
                format!(
                    "{:+.4} [{:+.4}, {:+.4}]",
                    difference.mean, difference.interval.low, difference.interval.high
                ),
                format!("{:.4}", comparison.p),
                format!("{:.4}", comparison.p_holm),
                if worse.is_empty() { "–".into() } else { worse.join(", ") },
            ],
        );
    }
    text.push_str("\nPaired randomisation over all cases, corrected by Holm over the candidates; ");
    text.push_str("\"worse on\" names sets with p < .05, not corrected.\n");
}

fn failures(text: &mut String, artefact: &Artefact) {
    let failed =
        artefact.candidates.iter().filter_map(|candidate| Some((candidate, candidate.failed.as_ref()?)));
    let mut failed = failed.peekable();
    if failed.peek().is_some() {
        text.push_str("\n## Failed\n\n");
    }
    for (candidate, why) in failed {
        let _ = writeln!(text, "- {}: {}", name(artefact, candidate), one_line(why));
    }
}
