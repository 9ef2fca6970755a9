//! Normal forms: what makes two spellings of one text equal.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// A character of the NFKC form of a text, with the byte at which it starts in the original.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mapped {
    pub(super) c: char,
    pub(super) at: usize,
}

/// NFKC of `text`, without characters that show nothing, each mapped to where it came from.
///
/// Letter case is kept: word boundaries such as those in `camelCase` depend on it.
pub(super) fn mapped(text: &str) -> Vec<Mapped> {
    let mut out = Vec::with_capacity(text.len());
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let mut end = at + c.len_utf8();
        while let Some(&(next, _)) = chars.peek().filter(|&&(_, c)| composes_with_previous(c)) {
            chars.next();
            end = chars.peek().map_or(text.len(), |&(after, _)| after).max(next);
        }
        if c.is_ascii() && end == at + 1 {
            out.push(Mapped { c, at });
        } else {
            let piece = text[at..end].nfkc().filter(|&c| !is_invisible(c));
            out.extend(piece.map(|c| Mapped { c, at }));
        }
    }
    out
}

/// The characters of `text` as they are.
pub(super) fn as_written(text: &str) -> Vec<Mapped> {
    text.char_indices().map(|(at, c)| Mapped { c, at }).collect()
}

/// Lower case, character by character; the final sigma is written like every other.
pub(super) fn lower(c: char) -> impl Iterator<Item = char> {
    c.to_lowercase().map(|c| if c == 'ς' { 'σ' } else { c })
}

/// NFKC and lower case: equal for composed and decomposed, full-width and half-width spellings.
///
/// ```
/// use rankgate::text::normalize;
/// assert_eq!(normalize("Ｃafe\u{301} ﾃﾞｰﾀ"), "café データ");
/// ```
pub fn normalize(text: &str) -> String {
    mapped(text).into_iter().flat_map(|m| lower(m.c)).collect()
}

/// Latin, Greek and Cyrillic letters without their accents; marks that are letters elsewhere stay.
///
/// Expects normalised text.
///
/// ```
/// assert_eq!(rankgate::text::fold("zürich, łódź, straße"), "zurich, lodz, strasse");
/// ```
pub fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    // Only the block of combining accents: Indic vowel signs or kana voicing marks are no decoration.
    for c in text.nfd().filter(|c| !('\u{300}'..='\u{36f}').contains(c)) {
        match c {
            'ß' => out.push_str("ss"),
            'æ' => out.push_str("ae"),
            'œ' => out.push_str("oe"),
            'ø' => out.push('o'),
            'ł' => out.push('l'),
            'đ' | 'ð' => out.push('d'),
            'þ' => out.push_str("th"),
            'ı' => out.push('i'),
            c => out.push(c),
        }
    }
    out.nfc().collect()
}

/// Whether NFKC may merge `c` with the character before it.
fn composes_with_previous(c: char) -> bool {
    !c.is_ascii()
        && (is_combining_mark(c)
            // Half-width voicing marks; Hangul jamo in their conjoining, compatibility and half-width forms.
            || matches!(c, '\u{ff9e}' | '\u{ff9f}' | '\u{1160}'..='\u{11ff}' | '\u{d7b0}'..='\u{d7ff}'
                | '\u{3131}'..='\u{318e}' | '\u{ffa0}'..='\u{ffdc}'))
}

/// Soft hyphen, joiners, byte order mark and Arabic stretching: they change the look of a word, not the word.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{200c}' | '\u{200d}' | '\u{2060}' | '\u{feff}' | '\u{640}' | '\u{fe00}'..='\u{fe0f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_forms_of_hangul_and_kana_are_equal() {
        let nfd: String = "데이터베이스 がぎぐ".nfd().collect();
        assert_eq!(normalize(&nfd), "데이터베이스 がぎぐ");
        assert_eq!(normalize("ｶﾞｷﾞ ﾃﾞｰﾀﾍﾞｰｽ"), "ガギ データベース");
        assert_eq!(normalize("ｇＰＴ－４"), "gpt-4");
    }

    #[test]
    fn every_character_is_mapped_into_its_source() {
        let text = "a\u{301}b ｶﾞ 각 end";
        for m in mapped(text) {
            assert!(text.is_char_boundary(m.at), "{m:?}");
        }
        assert_eq!(mapped(text).last().map(|m| m.at), Some(text.len() - 1));
    }

    #[test]
    fn folding_keeps_marks_that_are_letters() {
        assert_eq!(fold("हिन्दी"), "हिन्दी");
        assert_eq!(fold("データ"), "データ");
        assert_eq!(fold("ελληνικά ёлка"), "ελληνικα елка");
    }
}
