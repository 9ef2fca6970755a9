//! What may be shown of what goes between this program and a server: no keys, no passwords, no long texts.

use std::fmt;

/// Characters that an error quotes of what a server said.
const LONGEST_QUOTE: usize = 200;

/// A key that can be sent and cannot be shown.
pub(in crate::models::generator) struct Key(pub(super) Option<String>);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Key(hidden)" } else { "Key(none)" })
    }
}

impl Key {
    /// What an error may say of `text`: one line, short, and without the key.
    pub(in crate::models::generator) fn quote(&self, text: &str) -> String {
        let text = match &self.0 {
            Some(key) => text.replace(key.as_str(), "[key]"),
            None => text.into(),
        };
        let line = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
        let line = line.collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(LONGEST_QUOTE) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line,
        }
    }

    /// An answer without the key in it. Short keys are stand-ins of local servers, often a word such as `none`,
    /// and no secret; an answer may contain them.
    pub(super) fn removed_from(&self, text: String) -> String {
        match &self.0 {
            Some(key) if key.len() >= 16 && text.contains(key.as_str()) => {
                text.replace(key.as_str(), "[key]")
            }
            _ => text,
        }
    }
}

/// The message in a server's error body, else the body.
pub(super) fn said(body: &str) -> String {
    let parsed: Option<serde_json::Value> = serde_json::from_str(body).ok();
    let message = parsed.as_ref().and_then(|value| {
        let error = value.get("error").unwrap_or(value);
        error.get("message").unwrap_or(error).as_str()
    });
    message.unwrap_or(body).into()
}

/// An address as it may be shown: without a user, a password or a query.
pub(in crate::models::generator) fn without_credentials(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    if scheme.is_empty() { rest.into() } else { format!("{scheme}://{rest}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_is_one_short_line_without_the_key() {
        let key = Key(Some("sk-1234567890abcdef".into()));
        let quoted = key.quote(&format!("bad\n key sk-1234567890abcdef {}", "x".repeat(500)));
        assert!(quoted.starts_with("bad key [key] xxx") && quoted.chars().count() == 201, "{quoted}");
        // A key across the end of the quote is cut out before the text is cut.
        let quoted = key.quote(&format!("{}sk-1234567890abcdef", "é".repeat(195)));
        assert!(!quoted.contains("sk-1"), "{quoted}");
        assert_eq!(format!("{key:?}"), "Key(hidden)");
        assert_eq!(key.removed_from("a sk-1234567890abcdef".into()), "a [key]");
        assert_eq!(Key(Some("none".into())).removed_from("none of them".into()), "none of them");
    }
}
