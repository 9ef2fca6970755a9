//! What `replay` prints for people.

use std::fmt::Write;

use super::{NotReplayed, Output};
use crate::cli::changed::{brief, lines};
use crate::gate::Breach;

/// Lines of a difference.
const LINES: usize = 10;

/// The output as text; with `all`, every line of every difference.
pub(super) fn page(output: &Output, all: bool) -> String {
    let mut text = figures(output);
    // Writing to a String cannot fail.
    for NotReplayed { errored, reason, rows, first_query } in &output.not_replayed {
        let what = if *errored { "errored" } else { "skipped" };
        let reason = crate::cli::line(reason);
        let _ = writeln!(text, "{what} {rows}: {reason} (first: \"{}\")", brief(first_query));
    }
    output.notes.iter().for_each(|note| _ = writeln!(text, "note: {}", crate::cli::line(note)));
    if !output.regressions.is_empty() {
        let _ = writeln!(text, "\nTop {} regression(s):", output.regressions.len());
    }
    for regression in &output.regressions {
        let row = &regression.row.row;
        let _ = writeln!(
            text,
            "  jaccard={:.2}{}  captured={:<3} current={:<3} \"{}\"",
            regression.row.jaccard.unwrap_or_default(),
            if regression.row.jaccard == Some(1.0) { " order=changed" } else { "" },
            row.captured_slugs.len(),
            row.current_slugs.len(),
            brief(&row.query)
        );
        text += &lines(&regression.diff, "      ", (!all).then_some(LINES));
    }
    if !output.breaches.is_empty() {
        text.push_str("\nBREACHES\n");
    }
    for Breach { metric, observed, threshold, error_tail } in &output.breaches {
        let figure = |value: &Option<f64>| value.map_or("not measured".into(), |value| format!("{value:.3}"));
        let _ = write!(text, "  {metric}  {}, has to be {}", figure(observed), figure(threshold));
        let _ = writeln!(
            text,
            "{}",
            error_tail.iter().map(|tail| format!(": {}", crate::cli::line(tail))).collect::<String>()
        );
    }
    text
}

fn figures(output: &Output) -> String {
    let summary = &output.summary;
    let mut text = format!(
        "Replayed {} of {} captured queries ({} skipped, {} errored)\n",
        summary.rows_replayed, summary.rows_total, summary.rows_skipped, summary.rows_errored
    );
    let three = |value: Option<f64>| value.map_or("none".into(), |value| format!("{value:.3}"));
    let share = summary.top1_stability_rate.map_or("none".into(), |rate| format!("{:.1}%", 100.0 * rate));
    // Writing to a String cannot fail.
    let _ = writeln!(text, "Mean Jaccard@k:    {}", three(summary.mean_jaccard));
    let _ = writeln!(text, "Top-1 stability:   {share}");
    let _ = writeln!(text, "Mean RBO (p 0.9):  {}", three(summary.mean_rank_biased_overlap));
    let _ = match summary.mean_latency_delta_ms.zip(summary.latency_ratio) {
        Some((delta, ratio)) => {
            writeln!(text, "Mean latency Δ:    {delta:+.0}ms, {ratio:.2} times (current vs captured)")
        }
        None => writeln!(text, "Mean latency Δ:    not measured, no replayed row states a latency"),
    };
    if summary.rows_over_2x_latency > 0 {
        let _ = writeln!(text, "warning: {} rows take more than twice as long", summary.rows_over_2x_latency);
    }
    text
}
