//! Whether a row says enough to be searched again as it was.

use super::{Captured, Tool};
use crate::text::REDACTED;

/// Hits that a search can be asked for; a row of a file may state any number.
const MOST: usize = 100_000;

impl Captured {
    /// Why this search can nowhere be run again as it was; `None` when its row says all that is needed.
    ///
    /// Only the row is looked at. An index may still lack the collection that it names, or the models.
    ///
    /// ```
    /// use rankgate::record::{Captured, Tool};
    /// let row = Captured::new(Tool::Query, "mail [REDACTED]", Vec::new());
    /// assert_eq!(row.unreplayable().as_deref(), Some("personal data was taken out of its text"));
    /// ```
    pub fn unreplayable(&self) -> Option<String> {
        if self.query.trim().is_empty() && self.asked.parts.iter().all(|part| part.text.trim().is_empty()) {
            return Some("empty query".into());
        }
        let asked = |key| ["query", "parts", "expansion"].contains(&key);
        if self.texts().iter().any(|(key, text)| asked(*key) && text.contains(REDACTED)) {
            return Some("personal data was taken out of its text".into());
        }
        match (self.tool_name, self.vector_enabled) {
            (Tool::Search, Some(true)) => {
                return Some(
                    "`search` was by words and meaning where it was captured, here it is by words".into(),
                );
            }
            (Tool::Vsearch, Some(false)) => return Some("`vsearch` was captured as not by meaning".into()),
            _ => {}
        }
        if let Some(detail) = &self.detail {
            return Some(format!("detail `{detail}` was asked for, and there is no such choice here"));
        }
        // Parts of the request take the place of an expansion.
        if self.expansion.is_none() && self.asked.parts.is_empty() {
            match (self.expansion_applied, self.expand_enabled) {
                (Some(true), _) => {
                    return Some("the query was expanded, and the row does not say to what".into());
                }
                (None, Some(true)) => {
                    return Some(
                        "an expansion was asked for, and the row does not say whether there was one".into(),
                    );
                }
                _ => {}
            }
        }
        let limit = self.asked.limit.unwrap_or(self.retrieved_slugs.len().max(1));
        (!(1..=MOST).contains(&limit)).then(|| format!("its limit is {limit}, not from 1 to {MOST}"))
    }
}
