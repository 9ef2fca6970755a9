//! Snippets: the place in a text that shows best why it was found.

use std::collections::{BTreeMap, BTreeSet};

use super::stem::{DEFAULT_LANGUAGE, stem};
use super::tokens::{TokenKind, tokens};

/// Shown where text was left out.
const ELLIPSIS: char = '…';

/// The stretch of `body` with the most different words of `terms`, at most `max_chars` characters long.
///
/// It begins and ends between words, shows white space as one space, and marks what was left out with `…`,
/// which counts. Words match in any inflection of English and in runs by their pairs. Without a match it
/// is the beginning of the text. A word longer than `max_chars` is cut.
///
/// ```
/// let body = "The gate opens at dawn.\n\nTokens rotate every night; an expired token is refused.";
/// assert_eq!(rankgate::text::snippet(body, &["expired", "tokens"], 40), "… night; an expired token is refused.");
/// ```
pub fn snippet<S: AsRef<str>>(body: &str, terms: &[S], max_chars: usize) -> String {
    let wanted: BTreeSet<String> =
        terms.iter().flat_map(|term| tokens(term.as_ref())).map(|t| loose(&t.text, t.kind)).collect();
    let words = shown_words(body);
    if words.is_empty() || max_chars == 0 {
        return String::new();
    }
    let mut matches: Vec<Vec<String>> = vec![Vec::new(); words.len()];
    let mut word = 0;
    for token in tokens(body) {
        let text = loose(&token.text, token.kind);
        if wanted.contains(&text) {
            while word + 1 < words.len() && words[word + 1].0 <= token.start {
                word += 1;
            }
            // A pair is only seen when both its characters are.
            if token.kind == TokenKind::Pair && word + 1 < words.len() {
                matches[word + 1].push(text.clone());
            }
            matches[word].push(text);
        }
    }
    let length = |(start, end): (usize, usize)| body[start..end].chars().count();
    let lengths: Vec<usize> = words.iter().map(|&range| length(range)).collect();
    let (first, last) = best_window(&matches, &lengths, &gaps(&words), max_chars);
    let mut out = String::new();
    if first > 0 {
        out.extend([ELLIPSIS, ' ']);
    }
    for i in first..=last {
        if i > first && words[i - 1].1 < words[i].0 {
            out.push(' ');
        }
        out.push_str(&body[words[i].0..words[i].1]);
    }
    if last + 1 < words.len() {
        out.extend([' ', ELLIPSIS]);
    }
    if out.chars().count() > max_chars {
        out = out.chars().take(max_chars - 1).chain([ELLIPSIS]).collect();
    }
    out
}

fn loose(word: &str, kind: TokenKind) -> String {
    match kind {
        TokenKind::Pair | TokenKind::Tail => word.to_owned(),
        _ => stem(word, DEFAULT_LANGUAGE),
    }
}

/// Ranges that are shown whole: stretches without white space, single characters in scripts without spaces.
fn shown_words(body: &str) -> Vec<(usize, usize)> {
    let mut out: Vec<(usize, usize)> = Vec::new();
    let mut open = false;
    for (at, c) in body.char_indices() {
        let end = at + c.len_utf8();
        if c.is_whitespace() {
            open = false;
        } else if super::tokens::is_unspaced(c) || !open {
            out.push((at, end));
            open = true;
        } else if let Some(last) = out.last_mut() {
            last.1 = end;
        }
    }
    out
}

/// 1 where a word is shown after a space, 0 where it joins the one before.
fn gaps(words: &[(usize, usize)]) -> Vec<usize> {
    let mut end = 0;
    words
        .iter()
        .map(|&(start, stop)| {
            let gap = usize::from(end < start && end > 0);
            end = stop;
            gap
        })
        .collect()
}

/// First and last word of the best window: most different matches, then most matches, then the earliest;
/// widened evenly to fill the space.
fn best_window(
    matches: &[Vec<String>],
    lengths: &[usize],
    gaps: &[usize],
    max_chars: usize,
) -> (usize, usize) {
    // Room for an ellipsis and a space at both ends.
    let room = max_chars.saturating_sub(4).max(1);
    let cost = |i: usize| lengths[i] + gaps[i];
    let mut best: Option<((usize, usize), (usize, usize))> = None;
    let mut inside: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut first, mut used, mut count) = (0, 0, 0);
    for last in 0..matches.len() {
        used += cost(last);
        for text in &matches[last] {
            *inside.entry(text).or_default() += 1;
            count += 1;
        }
        while first < last && (used > room || matches[first].is_empty()) {
            used -= cost(first);
            for text in &matches[first] {
                count -= 1;
                if let Some(n) = inside.get_mut(text.as_str()) {
                    *n -= 1;
                    if *n == 0 {
                        inside.remove(text.as_str());
                    }
                }
            }
            first += 1;
        }
        let value = (inside.len(), count);
        if count > 0 && !matches[last].is_empty() && best.is_none_or(|(found, _)| value > found) {
            best = Some((value, (first, last)));
        }
    }
    let (mut first, mut last) = best.map_or((0, 0), |(_, window)| window);
    let mut used: usize = (first..=last).map(cost).sum();
    loop {
        let left = first.checked_sub(1).filter(|&i| used + cost(i) <= room);
        if let (Some(i), true) = (left, best.is_some()) {
            used += cost(i);
            first = i;
        }
        let right = Some(last + 1).filter(|&i| i < lengths.len() && used + cost(i) <= room);
        if let Some(i) = right {
            used += cost(i);
            last = i;
        }
        if left.is_none() && right.is_none() {
            return (first, last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_never_exceeds_its_length() {
        let body = "one two three ".repeat(50) + "needle " + &"four five ".repeat(50) + "数据库连接超时";
        for max in 0..80 {
            for term in ["needle", "missing", "超时"] {
                let text = snippet(&body, &[term], max);
                assert!(text.chars().count() <= max, "{max}: {text}");
                assert!(max < 20 || term == "missing" || text.contains(term), "{max}: {text}");
            }
        }
    }

    #[test]
    fn different_words_beat_many_of_one() {
        let body = "token token token. ".to_owned() + &"filler ".repeat(40) + "rotate the token";
        assert_eq!(snippet(&body, &["token", "rotation", "rotate"], 30), "… filler rotate the token");
    }

    #[test]
    fn short_texts_are_shown_whole() {
        assert_eq!(snippet("a\n\n b\tc", &["x"], 20), "a b c");
        assert_eq!(snippet("", &["x"], 20), "");
        assert_eq!(snippet("これは猫です。", &["猫"], 20), "これは猫です。");
    }
}
