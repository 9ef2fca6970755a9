//! The gate's answer as Markdown, for the summary page of a CI job.

use std::fmt::Write;

use super::question::{Limit, Question};
use super::report::words;
use super::{Breach, GateReport};
use crate::error::Error;

/// Bytes of a summary: a page that takes several of them still shows all.
pub const MAX_BYTES: usize = 60_000;

/// Characters of any one text in it: what comes before the worst queries always has room.
const TEXT: usize = 200;
/// Bytes for the line that says what is not shown.
const REST: usize = 100;

/// The report as a page: the verdict, what does not hold, a table of the metrics with the missed ones first, then the
/// worst rows and queries with their diffs, as many as [`MAX_BYTES`] has room for.
///
/// Texts that come from files or queries are shown as they are: they cannot open markup, links or table cells.
pub fn markdown(report: &GateReport) -> String {
    let questions = report.questions();
    let mut page = format!("## Retrieval gate: {}\n\n", words(report.verdict));
    reasons(&mut page, "Does not hold", &questions, |question| question.breaches);
    reasons(&mut page, "Cannot be decided", &questions, |question| question.undecided);
    let mut rows: Vec<(u8, String)> = questions.iter().flat_map(rows).collect();
    rows.sort_by_key(|(rank, _)| *rank);
    page.push_str("| metric | observed | threshold | |\n|---|---:|---:|---|\n");
    rows.iter().for_each(|(_, row)| page.push_str(row));
    for question in &questions {
        let path = question.path.map(|path| format!(" {}", code(path))).unwrap_or_default();
        let _ = writeln!(page, "\n{}: {}{path}", question.name, code(&question.basis.1));
    }
    let mut left_out = 0;
    let mut add = |part: String| {
        if page.len() + part.len() + REST > MAX_BYTES {
            left_out += 1;
        } else {
            page.push_str(&part);
        }
    };
    let notes = questions.iter().flat_map(|question| question.notes);
    notes.for_each(|note| add(format!("\n- {}\n", code(note))));
    for (index, (title, lines)) in questions.iter().flat_map(|question| &question.worst).enumerate() {
        let heading = if index == 0 { "\n### Worst queries\n" } else { "" };
        add(format!("{heading}\n{}\n\n{}", code(title), fenced(lines.iter().map(String::as_str))));
    }
    if left_out > 0 {
        let _ = writeln!(page, "\n{left_out} more are not shown: the page would be too long.");
    }
    page
}

/// A page for a gate that could not be run.
pub fn markdown_error(error: &Error) -> String {
    format!("## Retrieval gate: ERROR\n\n{}\n", fenced(error.report().lines().take(50)))
}

/// Rows of the table with their rank: missed, undecided, held.
fn rows(question: &Question<'_>) -> Vec<(u8, String)> {
    let figures = question.counts.iter().chain(&question.figures);
    figures
        .map(|figure| {
            let (rank, mark) = match question.missed(figure.metric) {
                Some((_, true)) => (0, "❌ missed"),
                Some((_, false)) => (1, "❔ undecided"),
                None if figure.limit.is_none() || figure.value.is_none() => (2, ""),
                None => (2, "✅ holds"),
            };
            let value = figure.value.map_or("not measured".into(), number);
            let limit = match figure.limit {
                Some(Limit::Floor(floor)) => format!("≥ {}", number(floor)),
                Some(Limit::Ceiling(ceiling)) => format!("≤ {}", number(ceiling)),
                None => String::new(),
            };
            (rank, format!("| `{}` | {value} | {limit} | {mark} |\n", figure.metric))
        })
        .collect()
}

fn number(value: f64) -> String {
    if value.fract() == 0.0 { value.to_string() } else { format!("{value:.3}") }
}

fn reasons<'a>(
    page: &mut String,
    heading: &str,
    questions: &[Question<'a>],
    list: impl Fn(&Question<'a>) -> &'a [Breach],
) {
    let mut empty = true;
    for question in questions {
        for breach in list(question) {
            if std::mem::take(&mut empty) {
                let _ = writeln!(page, "**{heading}**\n");
            }
            let _ = writeln!(page, "- {}", code(&question.reason(breach)));
            if let Some(tail) = breach.error_tail.as_deref().filter(|tail| !tail.is_empty()) {
                let _ = writeln!(page, "  - {}", code(tail));
            }
        }
    }
    if !empty {
        page.push('\n');
    }
}

/// Whether a character is shown: not control, and not one that is invisible or turns the direction of what follows.
fn shown(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// A text inside a line, in any place: every ASCII sign that could mean something is written as a number, and the
/// element around it keeps `@name` from being a mention.
fn code(text: &str) -> String {
    let mut escaped = String::from("<code>");
    for c in cut(text).chars() {
        match c {
            ' ' | '-' | ',' | '/' => escaped.push(c),
            c if c.is_ascii_punctuation() => _ = write!(escaped, "&#{};", u32::from(c)),
            c if shown(c) => escaped.push(c),
            _ => escaped.push(' '),
        }
    }
    escaped + "</code>"
}

/// Lines in a block whose fence is longer than any that they hold.
fn fenced<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let clean =
        |line: &str| -> String { cut(line).chars().map(|c| if shown(c) { c } else { ' ' }).collect() };
    let text: String = lines.map(|line| clean(line) + "\n").collect();
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    if text.is_empty() { text } else { format!("{fence}text\n{text}{fence}\n") }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}
