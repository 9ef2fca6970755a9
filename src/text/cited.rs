//! Sentences and the citations `[n]` in them.

/// The sentences of `text`, trimmed, in order: split at line breaks, behind `.`, `!`, `?` before a space, and behind
/// their full-width forms. A citation behind the stop belongs to the sentence before it. The stop of a number
/// (`3.5`), of one letter (`J.`) and before a small letter (`e.g. this`) ends nothing.
///
/// ```
/// use rankgate::text::sentences;
/// assert_eq!(sentences("Version 3.5 is out. [1] Ask J. Doe!\n次です。はい"), [
///     "Version 3.5 is out. [1]", "Ask J. Doe!", "次です。", "はい",
/// ]);
/// ```
pub fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut start = 0;
        let mut position = 0;
        while let Some(stop) = line[position..].find(['.', '!', '?', '…', '。', '！', '？']) {
            let at = position + stop;
            let mark = line[at..].chars().next().unwrap_or_default();
            position = at + mark.len_utf8();
            position += line[position..].len() - line[position..].trim_start_matches(CLOSING).len();
            if ends(&line[start..at], mark, &line[position..]) {
                position += citation_length(&line[position..]);
                found.push(line[start..position].trim());
                start = position;
            }
        }
        found.push(line[start..].trim());
    }
    found.retain(|sentence| !sentence.is_empty());
    found
}

/// What closes a sentence behind its stop.
const CLOSING: &[char] = &['.', '!', '?', '"', '\'', '”', '’', '»', ')', '」', '』', '）'];

/// Whether `mark` between `before` and `after` ends a sentence.
fn ends(before: &str, mark: char, after: &str) -> bool {
    if matches!(mark, '。' | '！' | '？') {
        return true;
    }
    let rest = after.trim_start();
    if rest.is_empty() || citation_length(after) > 0 {
        return true;
    }
    if rest.len() == after.len() {
        return false; // no space behind it
    }
    let initial = before.chars().rev().take_while(|c| c.is_alphabetic()).count() == 1;
    mark != '.' || !(initial || rest.starts_with(char::is_lowercase))
}

/// Bytes of spaces and citations that `text` begins with; 0 without a citation.
fn citation_length(text: &str) -> usize {
    let mut length = 0;
    while let Some((_, end)) =
        citation(&text[length..]).filter(|(from, _)| text[length..][..*from].trim().is_empty())
    {
        length += end;
    }
    length
}

/// Where the first citation of `text` stands, in bytes.
fn citation(text: &str) -> Option<(usize, usize)> {
    let mut from = 0;
    while let Some(open) = text[from..].find('[').map(|at| from + at) {
        let inner = &text[open + 1..];
        let close = inner.find(']')?;
        if inner[..close]
            .split(',')
            .all(|n| !n.trim().is_empty() && n.trim().bytes().all(|b| b.is_ascii_digit()))
        {
            return Some((open, open + close + 2));
        }
        from = open + 1;
    }
    None
}

/// The numbers that `text` cites as `[n]`, `[n][m]` or `[n, m]`, in order and as often as written. One too large for
/// any list of passages is `usize::MAX`.
///
/// ```
/// assert_eq!(rankgate::text::citations("Yes [2][1], no [3, 1]. See [a] and [link](x)."), [2, 1, 3, 1]);
/// ```
pub fn citations(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((from, to)) = citation(rest) {
        found.extend(rest[from + 1..to - 1].split(',').map(|n| n.trim().parse().unwrap_or(usize::MAX)));
        rest = &rest[to..];
    }
    found
}

/// `text` without its citations and the spaces before them.
///
/// ```
/// assert_eq!(rankgate::text::uncited("Yes [2][1], it is. [3]"), "Yes, it is.");
/// ```
pub fn uncited(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((from, to)) = citation(rest) {
        plain.push_str(rest[..from].trim_end());
        rest = &rest[to..];
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_inside_words_and_numbers_end_nothing() {
        let text = "Run v1.2.3 e.g. on a.example.org. Then wait... Really?! \"Yes.\" (It did.) Next";
        assert_eq!(
            sentences(text),
            [
                "Run v1.2.3 e.g. on a.example.org.",
                "Then wait...",
                "Really?!",
                "\"Yes.\"",
                "(It did.)",
                "Next"
            ]
        );
        assert_eq!(sentences(" \n.\n"), ["."]);
    }

    #[test]
    fn a_citation_stays_with_its_sentence() {
        assert_eq!(sentences("One [1]. Two. [2] [3] Three [4]"), ["One [1].", "Two. [2] [3]", "Three [4]"]);
        assert_eq!(sentences("終わり。[1]次"), ["終わり。[1]", "次"]);
    }

    #[test]
    fn what_is_no_citation_stays() {
        assert_eq!(citations("[] [ 7 ] [x] [1,] [99999999999999999999999] [[2]]"), [7, usize::MAX, 2]);
        assert_eq!(uncited("a [x] b[1] c"), "a [x] b c");
    }
}
