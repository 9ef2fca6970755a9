//! Lines as they were meant: hard-wrapped prose joined again.

use super::tokens::is_unspaced;

/// A shorter line that is followed by a capital was ended on purpose: a title, an address, a verse.
const SHORT: usize = 45;

/// A line of a text, and at which byte it begins there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The byte of the text.
    pub start: usize,
    /// Trimmed; hard-wrapped lines of a paragraph or of an item of a list are joined by a space, between characters
    /// of scripts without spaces by nothing.
    pub text: String,
}

/// What the line before was.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    Prose,
    /// An item of a list, which indented lines continue.
    Item,
    /// Nothing that goes on: a blank line, a heading, a row of a table, code.
    Whole,
}

/// The lines of `text` that are not blank, without the line breaks that only a margin asked for.
///
/// Headings, rows of tables, fences, code and items of lists begin a line of their own, and so does what looks like
/// `key: value`.
///
/// ```
/// let text = "# Boiler\n- The filter is replaced every\n  six months.\n- It is blue.\nAsk the\nplumber.";
/// let lines: Vec<String> = rankgate::text::unwrapped(text).into_iter().map(|line| line.text).collect();
/// assert_eq!(lines, ["# Boiler", "- The filter is replaced every six months.", "- It is blue.", "Ask the plumber."]);
/// ```
pub fn unwrapped(text: &str) -> Vec<Line> {
    let mut out: Vec<Line> = Vec::new();
    let (mut before, mut fenced, mut blank) = (Before::Whole, false, true);
    for raw in text.lines() {
        let line = raw.trim();
        if line.is_empty() {
            (before, blank) = (Before::Whole, true);
            continue;
        }
        let start = line.as_ptr() as usize - text.as_ptr() as usize;
        let fence = line.starts_with("```") || line.starts_with("~~~");
        fenced ^= fence;
        let indented = raw.starts_with([' ', '\t']);
        let code = fenced || fence || (blank && (raw.starts_with("    ") || raw.starts_with('\t')));
        let item = is_item(line);
        let whole = code || line.starts_with(['#', '|', '>', '<']);
        let last =
            out.last_mut().filter(|last| !whole && !item && continues(&last.text, line, before, indented));
        match last {
            Some(last) => {
                let unspaced = |c: Option<char>| c.is_some_and(is_unspaced);
                if !(unspaced(last.text.chars().next_back()) && unspaced(line.chars().next())) {
                    last.text.push(' ');
                }
                last.text.push_str(line);
            }
            None => {
                out.push(Line { start, text: line.into() });
                before = match (whole, item) {
                    (true, _) => Before::Whole,
                    (false, true) => Before::Item,
                    (false, false) => Before::Prose,
                };
            }
        }
        // Code that is only indented lasts until a line that is not.
        blank = blank && code;
    }
    out
}

fn is_item(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = rest.len() < line.len() && (rest.starts_with(". ") || rest.starts_with(") "));
    numbered || ["- ", "* ", "+ ", "• "].iter().any(|mark| line.starts_with(mark))
}

/// Whether `line` goes on with what `last` began.
fn continues(last: &str, line: &str, before: Before, indented: bool) -> bool {
    if before == Before::Whole || last.ends_with(STOPS) || is_pair(line) {
        return false;
    }
    let capital = line.chars().next().is_some_and(char::is_uppercase);
    (before == Before::Item && indented) || !(capital && last.chars().count() < SHORT)
}

/// What ends a line whatever comes after it.
const STOPS: &[char] = &['.', '!', '?', ':', ';', '。', '！', '？'];

/// Whether a line is a short key and its value.
fn is_pair(line: &str) -> bool {
    line.split_once(": ").is_some_and(|(key, _)| {
        key.split_whitespace().count() <= 3 && key.chars().all(|c| c.is_alphanumeric() || " -_".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        unwrapped(text).into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn only_what_a_margin_broke_is_joined() {
        for (text, wanted) in [
            (
                "The garden gate\nis locked at\n22:00 every night.",
                &["The garden gate is locked at 22:00 every night."][..],
            ),
            ("One.\nTwo.", &["One.", "Two."]),
            ("Retention: 35 days\nOwner: the team", &["Retention: 35 days", "Owner: the team"]),
            ("Nordhafen Hosting\nHarbour Road 1", &["Nordhafen Hosting", "Harbour Road 1"]),
            ("# Title\ntext that\ngoes on", &["# Title", "text that goes on"]),
            ("| a | b |\n|---|---|\n| c | d |", &["| a | b |", "|---|---|", "| c | d |"]),
            ("```\nnpm ci\nnpm test\n```\nand then", &["```", "npm ci", "npm test", "```", "and then"]),
            ("Run:\n\n    npm ci\n    npm test\n\nthen wait", &["Run:", "npm ci", "npm test", "then wait"]),
            ("1. Stop it and\n   Wait.\n2) Go", &["1. Stop it and Wait.", "2) Go"]),
            ("备份保留\n三十五天。", &["备份保留三十五天。"]),
            ("one\r\n\r\ntwo\r\nthree", &["one", "two three"]),
            ("", &[]),
        ] {
            assert_eq!(lines(text), wanted, "{text:?}");
        }
    }

    #[test]
    fn a_line_knows_where_it_begins() {
        let text = "a\n\n  ü is\n  here\n# H";
        for line in unwrapped(text) {
            assert!(text[line.start..].starts_with(line.text.split(' ').next().expect("has a word")));
        }
    }
}
