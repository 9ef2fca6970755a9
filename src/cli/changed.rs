//! What changed in a ranking, as people read it.

use std::fmt::Write;

use crate::record::diff::RankedDiff;

/// Characters of a query.
const QUERY: usize = 60;

/// The lines of a difference behind `indent`; with `most`, so many of them and how many there are more.
pub(super) fn lines(diff: &RankedDiff, indent: &str, most: Option<usize>) -> String {
    let diff = diff.to_string();
    let shown = most.unwrap_or(usize::MAX);
    let mut text = String::new();
    // Writing to a String cannot fail.
    diff.lines().take(shown).for_each(|line| _ = writeln!(text, "{indent}{line}"));
    let more = diff.lines().count().saturating_sub(shown);
    if more > 0 {
        let _ = writeln!(text, "{indent}… {more} more (--verbose)");
    }
    text
}

/// A query in one line, cut where it is long.
pub(super) fn brief(query: &str) -> String {
    let line = super::line(query);
    if line.chars().count() <= QUERY {
        return line;
    }
    line.chars().take(QUERY - 3).collect::<String>() + "..."
}
