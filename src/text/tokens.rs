//! Words of any script, and how compounds are taken apart.
//!
//! A text is a sequence of [`Segment`]s. A *word* is a run of letters and digits, or several of them joined
//! without a space by one of `- _ . + / @` (`real-time`, `DEC-0054`, `snake_case`, `user@example.com`). A *run*
//! is text of a script that writes no spaces between words (Han, kana, Thai …) or that profits from being read
//! the same way (Hangul): its units are overlapping pairs of characters.

use unicode_normalization::char::is_combining_mark;

use super::normalize::{Mapped, as_written, lower, mapped};

/// Longer words are cut: nobody types them, and an index has a limit for terms.
const LONGEST: usize = 128;

/// How texts are taken apart that a search finds by their words.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Tokenizer {
    /// What serves scripts that write spaces: whatever stands between spaces and punctuation is one word, in any
    /// script, and only its case is changed. What `Pairs` is measured against.
    Words,
    /// NFKC first; runs of Han, kana, Hangul and other scripts without spaces are read as overlapping pairs.
    Pairs,
}

impl Tokenizer {
    /// The one that is in use. The version of an index follows it, so that another choice here makes every index anew.
    pub const DEFAULT: Self = Self::Pairs;

    /// Its name in artefacts: `words` or `pairs`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::Pairs => "pairs",
        }
    }

    fn chars(self, text: &str) -> Vec<Mapped> {
        match self {
            Self::Words => as_written(text),
            Self::Pairs => mapped(text),
        }
    }

    fn is_word(self, c: char) -> bool {
        is_word(c) || (self == Self::Words && is_unspaced(c))
    }
}

impl Default for Tokenizer {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What a [`Token`] is to the text it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// A word, or a part of a compound.
    Word,
    /// A compound without its joiners, `realtime` for `real-time`; also `c++` and `c#`.
    Joined,
    /// A part of a `camelCase` word, which stands at the position of the whole.
    Hump,
    /// Two neighbouring characters of a run.
    Pair,
    /// The last character of a run. With it, every character of a run begins some token.
    Tail,
}

/// One indexed unit of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Normalised text: lower case, after NFKC unless [`Tokenizer::Words`] made it.
    pub text: String,
    /// Place in the text, counted in words (characters for runs); neighbours differ by one.
    pub position: u32,
    /// What it is.
    pub kind: TokenKind,
    /// The byte of the original text where it starts.
    pub start: usize,
}

/// A word with its parts, or a run of characters, as it stands in a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Segment {
    /// The parts of a word (at least one), or the pairs of a run (for one character: itself).
    pub parts: Vec<String>,
    /// Where each of `parts` starts in the original text.
    pub starts: Vec<usize>,
    /// The parts of a `camelCase` word, for each of `parts`; empty for plain words.
    pub humps: Vec<Vec<String>>,
    /// The word without joiners, when that differs from its parts.
    pub joined: Option<String>,
    /// The last character of a run; `None` for a word.
    pub tail: Option<String>,
    /// A compound that only means something as a whole: it has a digit, or a joiner other than `-` and `/`.
    pub identifier: bool,
    /// First byte in the original text.
    pub start: usize,
    /// Byte after it in the original text.
    pub end: usize,
}

/// The tokens of `text` as the default [`Tokenizer`] makes them, positions not descending.
///
/// ```
/// use rankgate::text::tokens;
/// let texts: Vec<_> = tokens("Real-time 数据库").into_iter().map(|t| (t.text, t.position)).collect();
/// let expected = [("realtime", 0), ("real", 0), ("time", 1), ("数据", 2), ("据库", 3), ("库", 4)];
/// assert_eq!(texts, expected.map(|(text, position)| (text.to_owned(), position)));
/// ```
pub fn tokens(text: &str) -> Vec<Token> {
    Tokenizer::DEFAULT.tokens(text)
}

/// The words and runs of `text` as the default [`Tokenizer`] makes them, in order.
///
/// Letters of any script, digits and combining marks make words; an English possessive `'s` is no part of
/// one, every other apostrophe separates (`l'avion` is two words). Punctuation and symbols separate.
pub fn segments(text: &str) -> Vec<Segment> {
    Tokenizer::DEFAULT.segments(text)
}

impl Tokenizer {
    /// The tokens of `text`, positions not descending.
    ///
    /// ```
    /// use rankgate::text::Tokenizer;
    /// let texts: Vec<_> = Tokenizer::Words.tokens("ＡＰＩ 数据库v2").into_iter().map(|t| t.text).collect();
    /// assert_eq!(texts, ["ａｐｉ", "数据库v2"]);
    /// ```
    pub fn tokens(self, text: &str) -> Vec<Token> {
        let mut out = Vec::with_capacity(text.len() / 5);
        let mut position = 0;
        for segment in self.segments(text) {
            let Segment { parts, starts, humps, joined, tail, start, .. } = segment;
            let mut push = |text, position, kind, start| out.push(Token { text, position, kind, start });
            if let Some(joined) = joined {
                push(joined, position, TokenKind::Joined, start);
            }
            let kind = if tail.is_some() { TokenKind::Pair } else { TokenKind::Word };
            let mut humps = humps.into_iter();
            let single = tail.is_some() && tail.as_ref() == parts.first();
            let mut last = start;
            for (part, at) in parts.into_iter().zip(starts).filter(|_| !single) {
                push(part, position, kind, at);
                for hump in humps.next().unwrap_or_default() {
                    push(hump, position, TokenKind::Hump, at);
                }
                position += 1;
                last = at;
            }
            if let Some(tail) = tail {
                push(tail, position, TokenKind::Tail, last);
                position += 1;
            }
        }
        out
    }

    /// The words and runs of `text`, in order; see [`segments`].
    pub fn segments(self, text: &str) -> Vec<Segment> {
        let chars = self.chars(text);
        let mut out = Vec::new();
        let mut i = 0;
        while i < chars.len() {
            let c = chars[i].c;
            let (segment, next) = if self == Self::Pairs && is_unspaced(c) {
                run(&chars, i)
            } else if self.is_word(c) && !is_combining_mark(c) {
                word(&chars, i, self)
            } else {
                i += 1;
                continue;
            };
            // Where the original continues; characters of one source character share its offset.
            let end =
                chars[next..].iter().map(|m| m.at).find(|&at| at > chars[next - 1].at).unwrap_or(text.len());
            let last = &chars[next - 1];
            let end = end.min(after(text, last.at, end));
            out.push(Segment { start: chars[i].at, end, ..segment });
            i = next;
        }
        out
    }
}

/// The end of the source character at `at` with the marks that belong to it, at most `limit`.
fn after(text: &str, at: usize, limit: usize) -> usize {
    let rest = &text[at..limit];
    let first = rest.chars().next().map_or(0, char::len_utf8);
    let attached =
        rest[first..].chars().take_while(|c| !c.is_ascii() && !c.is_whitespace()).map(char::len_utf8);
    at + first + attached.sum::<usize>()
}

fn run(chars: &[Mapped], start: usize) -> (Segment, usize) {
    let end = (start..chars.len()).find(|&k| !is_unspaced(chars[k].c)).unwrap_or(chars.len());
    let text = |range: &[Mapped]| -> String { range.iter().flat_map(|m| lower(m.c)).collect() };
    let parts = match end - start {
        1 => vec![text(&chars[start..end])],
        _ => chars[start..end].windows(2).map(text).collect(),
    };
    let starts = chars[start..end].iter().map(|m| m.at).take(parts.len()).collect();
    (Segment { parts, starts, tail: Some(text(&chars[end - 1..end])), ..Segment::default() }, end)
}

fn word(chars: &[Mapped], start: usize, tokenizer: Tokenizer) -> (Segment, usize) {
    let is_word = |c| tokenizer.is_word(c);
    let at = |k: usize| chars.get(k).map_or(' ', |m| m.c);
    let mut segment = Segment::default();
    let mut i = start;
    let mut digit = false;
    let mut odd_joiner = false;
    loop {
        let part = i;
        while is_word(at(i)) {
            digit |= at(i).is_numeric();
            i += 1;
        }
        segment.parts.push(lowered(&chars[part..i]));
        segment.starts.push(chars[part].at);
        segment.humps.push(humps(&chars[part..i]));
        let mut next = i + 1;
        while at(i) == '_' && at(next) == '_' {
            next += 1;
        }
        if !is_joiner(at(i)) || !is_word(at(next)) {
            break;
        }
        odd_joiner |= !matches!(at(i), '-' | '\u{2010}' | '/');
        i = next;
    }
    if segment.parts.len() > 1 {
        segment.joined = Some(cut(segment.parts.concat()));
        segment.identifier = digit || odd_joiner;
    }
    let suffix = match (at(i), at(i + 1)) {
        ('+', '+') if !is_word(at(i + 2)) => "++",
        ('#', next) if !is_word(next) => "#",
        _ => "",
    };
    if !suffix.is_empty() {
        segment.joined = Some(cut(segment.parts.concat()) + suffix);
        segment.identifier = true;
        i += suffix.len();
    } else if matches!(at(i), '\'' | '’') && matches!(at(i + 1), 's' | 'S') && !is_word(at(i + 2)) {
        i += 2;
    }
    (segment, i)
}

/// The parts of a `camelCase` word, in lower case: none when it has no inner boundary, none of one letter.
fn humps(chars: &[Mapped]) -> Vec<String> {
    let upper = |k: usize| chars.get(k).is_some_and(|m| m.c.is_uppercase());
    let lower = |k: usize| chars.get(k).is_some_and(|m| m.c.is_lowercase());
    let mut out = Vec::new();
    let mut from = 0;
    for k in 1..chars.len() {
        // `userName` before N; `HTTPServer` before S.
        if upper(k) && (lower(k - 1) || (upper(k - 1) && lower(k + 1))) {
            out.push(&chars[from..k]);
            from = k;
        }
    }
    if from > 0 {
        out.push(&chars[from..]);
    }
    out.into_iter().filter(|part| part.len() > 1).map(lowered).collect()
}

fn lowered(chars: &[Mapped]) -> String {
    cut(chars.iter().flat_map(|m| lower(m.c)).collect())
}

fn cut(mut word: String) -> String {
    if let Some((at, _)) = word.char_indices().nth(LONGEST) {
        word.truncate(at);
    }
    word
}

fn is_joiner(c: char) -> bool {
    matches!(c, '-' | '_' | '.' | '+' | '/' | '@' | '\u{2010}')
}

fn is_word(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric();
    }
    (c.is_alphanumeric() || is_combining_mark(c)) && !is_unspaced(c)
}

/// Characters of scripts without spaces between words, and Hangul.
pub(super) fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{3005}' | '\u{3007}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3fffd}'                                            // Han
        | '\u{3041}'..='\u{3096}' | '\u{3099}' | '\u{309a}' | '\u{309d}'..='\u{309f}'
        | '\u{30a1}'..='\u{30fa}' | '\u{30fc}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' // kana, ー included
        | '\u{3105}'..='\u{312f}'                                              // Bopomofo
        | '\u{1100}'..='\u{11ff}' | '\u{a960}'..='\u{a97f}' | '\u{ac00}'..='\u{d7ff}' // Hangul
        | '\u{e01}'..='\u{e3a}' | '\u{e40}'..='\u{e4e}' | '\u{e81}'..='\u{ecd}' | '\u{edc}'..='\u{edf}' // Thai, Lao
        | '\u{1000}'..='\u{103f}' | '\u{1780}'..='\u{17d3}'                   // Myanmar, Khmer
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        tokens(text).iter().map(|t| format!("{}@{}", t.text, t.position)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn compounds_give_parts_and_the_joined_form() {
        assert_eq!(words("DEC-0054 snake_case"), "dec0054@0 dec@0 0054@1 snakecase@2 snake@2 case@3");
        assert_eq!(words("v1.2.3 N+1"), "v123@0 v1@0 2@1 3@2 n1@3 n@3 1@4");
        assert_eq!(words("a - b -c d- __init__"), "a@0 b@1 c@2 d@3 init@4");
        assert_eq!(words("C++ and C#, i++"), "c++@0 c@0 and@1 c#@2 c@2 i++@3 i@3");
    }

    #[test]
    fn humps_stand_at_the_position_of_the_word() {
        assert_eq!(words("getUserName now"), "getusername@0 get@0 user@0 name@0 now@1");
        assert_eq!(words("HTTPServer JWT"), "httpserver@0 http@0 server@0 jwt@1");
    }

    #[test]
    fn apostrophes_separate_and_the_possessive_goes() {
        assert_eq!(words("Newton's l’avion don't"), "newton@0 l@1 avion@2 don@3 t@4");
    }

    #[test]
    fn runs_give_pairs_and_their_last_character() {
        assert_eq!(words("数据库"), "数据@0 据库@1 库@2");
        assert_eq!(words("猫"), "猫@0");
        assert_eq!(words("GPT-4模型"), "gpt4@0 gpt@0 4@1 模型@2 型@3");
        assert_eq!(words("人々のサーバー"), words("人々のｻｰﾊﾞｰ"));
    }

    #[test]
    fn marks_belong_to_their_word() {
        assert_eq!(words("हिन्दी भाषा"), "हिन्दी@0 भाषा@1");
    }

    #[test]
    fn segments_know_their_place_in_the_original() {
        let text = "Ｆull-width ﾃﾞｰﾀ, cafe\u{301}! Newton's end";
        let found: Vec<_> = segments(text).iter().map(|s| &text[s.start..s.end]).collect();
        assert_eq!(found, ["Ｆull-width", "ﾃﾞｰﾀ", "cafe\u{301}", "Newton's", "end"]);
    }

    #[test]
    fn for_spaced_scripts_a_run_is_a_word_as_written() {
        let words =
            |text| -> Vec<String> { Tokenizer::Words.tokens(text).into_iter().map(|t| t.text).collect() };
        assert_eq!(words("数据库备份，保留GPT4模型。"), ["数据库备份", "保留gpt4模型"]);
        assert_eq!(words("ﾃﾞｰﾀ Ｖ２"), ["ﾃﾞｰﾀ", "ｖ２"]);
        let decomposed: String = unicode_normalization::UnicodeNormalization::nfd("백업").collect();
        assert_eq!(words(&decomposed), [decomposed]);
        let latin = "Real-time getUserName C++ Newton's naïve v1.2.3";
        assert_eq!(Tokenizer::Words.tokens(latin), tokens(latin));
    }

    #[test]
    fn a_word_without_end_is_cut() {
        assert_eq!(tokens(&"a".repeat(100_000))[0].text.len(), LONGEST);
    }
}
