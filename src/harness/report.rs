//! The table after a run, on stderr: evals first, then the cases to look at, worst first.

use std::fmt::Write;
use std::io::IsTerminal;
use std::path::Path;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::record::{CaseRecord, EvalRecord, MeanRecord, Order, OrderRecord, Verdict};
use crate::text::one_line;

use super::session::Session;

/// Lines are never wider.
const WIDTH: usize = 100;
/// Cases that are shown in full.
const SHOWN: usize = 10;

const HEADER: [&str; 9] =
    ["eval", "cases", "pass", "scorer", "mean", "95 % interval", "needs", "change", "time"];

/// The table, with colour where stderr is a terminal and `NO_COLOR` is not set.
pub fn table(evals: &[EvalRecord]) -> String {
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    render(evals, colour)
}

fn render(evals: &[EvalRecord], colour: bool) -> String {
    let measured = evals.iter().filter(|eval| eval.order.is_empty());
    let rows: Vec<(bool, [String; 9])> = measured.flat_map(rows_of).collect();
    let mut widths = HEADER.map(UnicodeWidthStr::width);
    for (_, row) in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width());
        }
    }
    // The two free texts give way when the line gets too long.
    for flexible in [0, 3] {
        let total: usize = widths.iter().sum::<usize>() + 2 * (widths.len() - 1);
        widths[flexible] = widths[flexible].saturating_sub(total.saturating_sub(WIDTH)).max(12);
    }
    let mut text = String::from("\n");
    text.push_str(&line(&HEADER.map(String::from), &widths));
    for (failed, row) in &rows {
        let line = line(row, &widths);
        text.push_str(&if *failed && colour {
            format!("\x1b[31m{}\x1b[0m\n", line.trim_end())
        } else {
            line
        });
    }
    let parts = [known_misses, informing, spreads, orders, not_passed, worst];
    parts.iter().fold(text, |text, part| text + &part(evals))
}

fn line(cells: &[String; 9], widths: &[usize; 9]) -> String {
    let mut text = String::new();
    for (i, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let cell = fit(cell, *width);
        let space = " ".repeat(width - cell.width());
        // Words to the left, numbers to the right.
        let padded = if matches!(i, 0 | 3 | 5) { cell + &space } else { space + &cell };
        text.push_str(&padded);
        text.push_str("  ");
    }
    text.trim_end().to_string() + "\n"
}

/// One row a scorer; the first also has the eval's name and counts.
fn rows_of(eval: &EvalRecord) -> Vec<(bool, [String; 9])> {
    let executed = eval.cases.len();
    let cases =
        if executed == eval.total { executed.to_string() } else { format!("{executed}/{}", eval.total) };
    let passed = |case: &&CaseRecord| case.verdict == Verdict::Pass && case.known_miss.is_none();
    let passed = eval.cases.iter().filter(passed).count().to_string();
    let first = [eval.eval.clone(), cases, passed];
    let empty = || String::new();
    let mut rows = Vec::new();
    for (i, mean) in eval.means.iter().enumerate() {
        let [name, cases, passed] = if i == 0 { first.clone() } else { [(); 3].map(|()| empty()) };
        let time = if i == 0 { duration(eval.took_ms) } else { empty() };
        let failed = mean.threshold.is_some_and(|threshold| mean.mean < threshold);
        let [mean, interval, needs, change] = numbers(mean);
        rows.push((
            failed,
            [name, cases, passed, eval.means[i].scorer.clone(), mean, interval, needs, change, time],
        ));
    }
    if rows.is_empty() {
        let [name, cases, passed] = first;
        let row = [name, cases, passed, empty(), empty(), empty(), empty(), empty(), duration(eval.took_ms)];
        rows.push((!eval.verdict.is_success(), row));
    }
    rows
}

fn numbers(mean: &MeanRecord) -> [String; 4] {
    [
        format!("{:.3}", mean.mean),
        format!("{:.3} – {:.3}", mean.low, mean.high),
        mean.threshold.map(|threshold| format!("{threshold:.3}")).unwrap_or_default(),
        match mean.change {
            None => String::new(),
            Some(change) if change.abs() < 0.0005 => "=".into(),
            Some(change) => format!("{change:+.3}"),
        },
    ]
}

/// The scorers that counted for no verdict, each with its reason.
fn informing(evals: &[EvalRecord]) -> String {
    let mut text = String::new();
    for eval in evals {
        for mean in &eval.means {
            if let Some(why) = &mean.informs {
                push(&mut text, &format!("{}: {} informs only: {why}", eval.eval, mean.scorer));
            }
        }
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// How far the trials of a case lie apart, where there are several.
fn spreads(evals: &[EvalRecord]) -> String {
    let mut text = String::new();
    for eval in evals {
        for mean in &eval.means {
            let Some(spread) = &mean.trials else { continue };
            let widest = match spread.widest_deviation > 0.0 {
                true => format!(
                    ", widest {} {:.3} ± {:.3}",
                    spread.widest, spread.widest_mean, spread.widest_deviation
                ),
                false => String::new(),
            };
            let line =
                format!("{}  {}  {:.3} ± {:.3}{widest}", eval.eval, mean.scorer, mean.mean, spread.deviation);
            push(&mut text, &line);
        }
    }
    if text.is_empty() { text } else { format!("\nbetween trials (mean ± standard deviation)\n{text}") }
}

/// The comparisons of ordered variants.
fn orders(evals: &[EvalRecord]) -> String {
    let mut text = String::new();
    for eval in evals {
        for order in &eval.order {
            push(&mut text, &compared(&eval.eval, order));
        }
    }
    if text.is_empty() {
        text
    } else {
        format!("\norder of variants (mean difference, 95 % interval)\n{text}")
    }
}

fn compared(eval: &str, order: &OrderRecord) -> String {
    let OrderRecord { scorer, better, worse, cases, mean, low, high, p, .. } = order;
    let head = format!("{eval}  {scorer}  {better} − {worse}");
    let word = match order.order {
        Order::NotCompared => return format!("{head}  not compared: no case has both scores"),
        Order::Better => "better",
        Order::Tie => "tie",
        Order::Worse => "worse",
    };
    format!("{head}  {mean:+.3}  {low:+.3} – {high:+.3}  p {p:.3}  {cases} cases  {word}")
}

/// The gates that failed, each with its reason.
fn not_passed(evals: &[EvalRecord]) -> String {
    let mut text = String::new();
    for eval in evals.iter().filter(|eval| eval.complete && !eval.verdict.is_success()) {
        push(&mut text, &format!("{}: {}: {}", eval.eval, eval.verdict.words(), eval.reason));
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// The declared misses that still miss, by eval: they count as neither passed nor failed.
fn known_misses(evals: &[EvalRecord]) -> String {
    let mut text = String::new();
    for eval in evals {
        let missed =
            eval.cases.iter().filter(|case| case.known_miss.is_some() && case.verdict == Verdict::Pass);
        let ids: Vec<&str> = missed.map(|case| case.case.as_str()).collect();
        if !ids.is_empty() {
            push(&mut text, &format!("known misses of {}: {}", eval.eval, ids.join(", ")));
        }
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// The cases that failed, lowest first, with their columns.
fn worst(evals: &[EvalRecord]) -> String {
    let failed = evals.iter().flat_map(|eval| &eval.cases).filter(|case| !case.verdict.is_success());
    let mut failed: Vec<&CaseRecord> = failed.collect();
    failed.sort_by(|a, b| a.mean.unwrap_or(0.0).total_cmp(&b.mean.unwrap_or(0.0)));
    let mut text = String::new();
    for case in failed.iter().take(SHOWN) {
        let mean = case.mean.map_or_else(|| "  –  ".into(), |mean| format!("{mean:.3}"));
        let reason = case.reason.lines().next().unwrap_or_default();
        push(&mut text, &format!("{mean}  {}::{}  {}: {reason}", case.eval, case.case, case.verdict.words()));
        for column in &case.columns {
            push(&mut text, &format!("       {}: {}", column.label, column.text));
        }
    }
    if text.is_empty() {
        return text;
    }
    let more = failed.len().saturating_sub(SHOWN);
    if more > 0 {
        push(&mut text, &format!("       … and {more} more"));
    }
    format!("\ncases to look at, worst first\n{text}")
}

fn push(text: &mut String, line: &str) {
    // Line breaks of a title would break the table apart.
    let line = one_line(line);
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{}", fit(&line, WIDTH).trim_end());
}

/// Where the results lie.
pub fn places(session: &Session, exported: Option<&Path>) -> String {
    let mut text = String::from("\n");
    if let Some(history) = session.history() {
        let _ = write!(text, "run {} in {}", session.head().id, history.path().display());
    }
    if let Some(path) = exported {
        let _ = write!(text, "\nreport in {}", path.display());
    }
    text
}

fn duration(ms: f64) -> String {
    if ms < 1.0 {
        format!("{:.0} µs", (ms * 1e3).abs())
    } else if ms < 1e3 {
        format!("{ms:.0} ms")
    } else {
        format!("{:.1} s", ms / 1e3)
    }
}

/// `text`, shortened with `…` to at most `width` columns of a terminal.
fn fit(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_string();
    }
    let mut used = 0;
    let mut short = String::new();
    for c in text.chars() {
        let wide = c.width().unwrap_or(0);
        if used + wide + 1 > width {
            break;
        }
        used += wide;
        short.push(c);
    }
    short + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn eval(name: &str, case: &str, verdict: Verdict) -> EvalRecord {
        let case = CaseRecord {
            eval: name.into(),
            case: case.into(),
            position: 0,
            verdict,
            reason: "0.250 < 0.700 (recall@5 0.250)".into(),
            mean: Some(0.25),
            scores: Vec::new(),
            known_miss: None,
            columns: vec![crate::record::Column { label: "query".into(), text: "数据库 ".repeat(40) }],
            trials: Vec::new(),
        };
        let mean = |scorer: &str, mean| MeanRecord {
            scorer: scorer.into(),
            cases: 1,
            mean,
            low: mean,
            high: mean,
            threshold: Some(0.7),
            change: Some(-0.125),
            informs: None,
            trials: None,
        };
        EvalRecord {
            eval: name.into(),
            description: String::new(),
            verdict,
            reason: "recall@5 0.250".into(),
            complete: true,
            total: 1,
            case_set: String::new(),
            means: vec![mean("recall@5", 0.25), mean("a scorer with a name that goes on and on", 1.0)],
            took_ms: 1234.0,
            order: Vec::new(),
            cases: vec![case],
        }
    }

    #[test]
    fn lines_stay_within_the_width_and_columns_align() {
        let long = "an eval with a name of more than forty columns";
        let text =
            render(&[eval(long, "q1", Verdict::BelowThreshold), eval("中文", "q2", Verdict::Pass)], false);
        for line in text.lines() {
            assert!(line.width() <= WIDTH, "{} columns: {line}", line.width());
        }
        let rows: Vec<&str> = text.lines().skip(1).take(5).collect();
        let ends: Vec<usize> =
            rows.iter().filter_map(|row| Some(row[..row.find("0.700")?].width())).collect();
        assert!(ends.len() == 4 && ends.iter().all(|end| *end == ends[0]), "{text}");
        assert!(text.contains("-0.125") && text.contains("1.2 s"), "{text}");
    }

    #[test]
    fn only_failed_cases_are_shown() {
        let text = render(&[eval("a", "bad", Verdict::Error), eval("b", "good", Verdict::Pass)], false);
        assert!(text.contains("a::bad  error") && !text.contains("b::good"), "{text}");
    }
}
