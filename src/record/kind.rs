//! What a file is that was given in place of another.

use serde_json::{Map, Value};

use super::captured::is_header;

/// Files of the loop that are easily taken for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A published baseline.
    Baseline,
    /// Captured searches.
    Captured,
    /// Queries with a known answer, or TREC judgments.
    Known,
}

impl FileKind {
    /// What a text looks like by its beginning; `None` for anything else.
    ///
    /// ```
    /// use rankgate::record::FileKind;
    /// assert_eq!(FileKind::of("q1 0 en/x.md 2\n"), Some(FileKind::Known));
    /// assert_eq!(FileKind::of("# notes"), None);
    /// ```
    pub fn of(text: &str) -> Option<Self> {
        let text = text.trim_start_matches('\u{feff}').trim_start();
        let line = text.lines().next()?;
        if let Ok(object) = serde_json::from_str::<Map<String, Value>>(line) {
            if is_header(&object) {
                return Some(Self::Baseline);
            }
            if object.contains_key("tool_name") && object.contains_key("retrieved_slugs") {
                return Some(Self::Captured);
            }
        }
        let named = ["\"queries\"", "\"relevant", "\"judgments\""];
        if text.starts_with(['{', '[']) {
            return named.iter().any(|key| text.contains(key)).then_some(Self::Known);
        }
        let columns: Vec<&str> = line.split_whitespace().collect();
        (columns.len() == 4 && columns[3].parse::<i64>().is_ok()).then_some(Self::Known)
    }

    /// What it is, and where it belongs: the text and the hint of an error.
    pub fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Baseline => ("this is a baseline", "give it to --baseline"),
            Self::Captured => (
                "these are captured searches",
                "make a baseline of them with `rankgate bench publish`, or run them again with `rankgate eval replay`",
            ),
            Self::Known => ("these are queries with a known answer", "give them to --qrels"),
        }
    }
}
