//! The query grammar. It has no errors: whatever was typed means something.

/// What a typed query asks of the words of a document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LexicalQuery {
    /// Words as they were typed; the more of them a document has, the better.
    pub terms: Vec<String>,
    /// Texts that were quoted: their words must stand side by side.
    pub phrases: Vec<String>,
    /// Words and phrases that a document must not have.
    pub excluded: Vec<String>,
}

impl LexicalQuery {
    /// Whether nothing is asked for; exclusions alone find nothing.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty() && self.phrases.is_empty()
    }
}

/// Reads a query: words, `"phrases"`, and `-word` or `-"phrase"` to exclude.
///
/// A quotation mark counts at the start of a token (so `27"` is a word) and may be typographic; a missing one is
/// thought at the end. A hyphen excludes at the start of a token, before a letter, digit or quotation mark
/// (so `real-time` is one word, and neither `--flag` nor a lone `-` excludes). There are no other operators.
///
/// ```
/// let query = rankgate::text::parse(r#"real-time -lag -"status page" "zero downtime"#);
/// assert_eq!(query.terms, ["real-time"]);
/// assert_eq!(query.phrases, ["zero downtime"]);
/// assert_eq!(query.excluded, ["lag", "status page"]);
/// ```
pub fn parse(query: &str) -> LexicalQuery {
    let mut parsed = LexicalQuery::default();
    let mut rest = query.trim_start();
    while let Some(first) = rest.chars().next() {
        let mut target = &mut parsed.terms;
        let mut body = rest;
        let after_hyphen = rest[first.len_utf8()..].chars().next();
        if first == '-' && after_hyphen.is_some_and(|c| c.is_alphanumeric() || closing(c).is_some()) {
            target = &mut parsed.excluded;
            body = &rest[1..];
        }
        let text;
        (text, rest) = match body.chars().next().and_then(|c| Some((c, closing(c)?))) {
            Some((open, close)) => {
                if first != '-' {
                    target = &mut parsed.phrases;
                }
                let inner = &body[open.len_utf8()..];
                match inner.char_indices().find(|(_, c)| close.contains(c)) {
                    Some((end, mark)) => (&inner[..end], &inner[end + mark.len_utf8()..]),
                    None => (inner, ""),
                }
            }
            None => body.split_at(body.find(char::is_whitespace).unwrap_or(body.len())),
        };
        if text.chars().any(char::is_alphanumeric) {
            target.push(text.trim().to_owned());
        }
        rest = rest.trim_start();
    }
    parsed
}

/// The marks that close what `open` opens.
fn closing(open: char) -> Option<&'static [char]> {
    match open {
        '"' => Some(&['"']),
        '“' => Some(&['”', '"']),
        '„' => Some(&['“', '”', '"']),
        '«' => Some(&['»']),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(query: &str) -> String {
        let LexicalQuery { terms, phrases, excluded } = parse(query);
        format!("{} | {} | {}", terms.join(","), phrases.join(","), excluded.join(","))
    }

    #[test]
    fn words_phrases_and_exclusions() {
        assert_eq!(shown(r#"helm rollback -upgrade"#), "helm,rollback |  | upgrade");
        assert_eq!(shown(r#"“Authorization: Bearer” token"#), "token | Authorization: Bearer | ");
        assert_eq!(shown(r#"-"a b" c"#), "c |  | a b");
        assert_eq!(shown(r#""a b"c"#), "c | a b | ");
    }

    #[test]
    fn a_hyphen_inside_a_word_or_alone_excludes_nothing() {
        assert_eq!(shown("real-time - x --flag -"), "real-time,x,--flag |  | ");
    }

    #[test]
    fn what_is_malformed_still_means_something() {
        assert_eq!(shown(r#""unbalanced words"#), " | unbalanced words | ");
        assert_eq!(shown(r#"27" screen"#), "27\",screen |  | ");
        assert_eq!(shown("a AND (b: c* [1 TO"), "a,AND,(b:,c*,[1,TO |  | ");
        assert_eq!(shown("-lag"), " |  | lag");
        for nothing in ["", " ", "\"", "-", "-\"\"", "🧊", "***"] {
            assert!(parse(nothing).is_empty(), "{nothing}");
        }
    }
}
