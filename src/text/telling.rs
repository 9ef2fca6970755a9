//! Telling words: what a sentence is about, without the words that every sentence has.

use std::collections::HashSet;
use std::sync::OnceLock;

use super::function_words::is_folded_function_word;
use super::normalize::{fold, normalize};
use super::stem::{DEFAULT_LANGUAGE, stem};
use super::tokens::{Segment, segments};

/// What a [`TellingWord`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TellingKind {
    /// A word.
    Word,
    /// Two neighbouring characters of a text without spaces.
    Pair,
    /// A number in digits or, up to twelve, in words.
    Number,
    /// A name with digits or joiners, such as `HX-4291` or `object_lock_mode`.
    Identifier,
}

impl TellingKind {
    /// Whether another one in its place makes another statement.
    pub fn is_exact(self) -> bool {
        matches!(self, Self::Number | Self::Identifier)
    }
}

/// A word that says what a text is about, in the form in which it is compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TellingWord {
    /// The stem of a word, the digits of a number, an identifier without its joiners; all folded.
    pub text: String,
    /// What it is.
    pub kind: TellingKind,
}

/// The telling words of `text`, in order and as often as written.
///
/// Left out are function words and negations of English, German, French, Spanish and Italian, single letters, and
/// pairs with kana endings. Words are stemmed as English unless their script has another stemmer: good enough to
/// compare two texts with each other.
///
/// ```
/// use rankgate::text::telling;
/// let words = |text| telling(text).into_iter().map(|word| word.text).collect::<Vec<_>>();
/// assert_eq!(words("The copies of HX-4291 stay for three days, or 1,200."), ["copi", "hx4291", "stay", "3", "day", "1200"]);
/// ```
pub fn telling(text: &str) -> Vec<TellingWord> {
    let segments = segments(text);
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(segment) = segments.get(at) {
        at += 1;
        if segment.tail.is_some() {
            let telling = segment.parts.iter().filter(|pair| !pair.chars().any(is_ending));
            out.extend(telling.map(|pair| TellingWord { text: pair.clone(), kind: TellingKind::Pair }));
            continue;
        }
        let mut end = segment.end;
        if is_numeric(text, segment) {
            // `1,200` is two segments and one number.
            while let Some(next) = segments.get(at).filter(|next| continues(text, end, next)) {
                end = next.end;
                at += 1;
            }
            let parts = normalize(text.get(segment.start..end).unwrap_or_default());
            let numbers = parts.split(['-', '/', '\u{2010}']).filter(|part| !part.is_empty());
            out.extend(numbers.map(|number| exact(canonical(number), TellingKind::Number)));
        } else {
            word(segment, &mut out);
        }
    }
    out
}

/// Whether `text` has a word that negates, in one of the languages of [`telling`], Chinese or Japanese.
///
/// ```
/// use rankgate::text::negates;
/// assert!(negates("We don't delete it.") && negates("Das gilt nicht.") && negates("削除できません。"));
/// assert!(!negates("It is deleted in May."));
/// ```
pub fn negates(text: &str) -> bool {
    const MARKS: &[&str] = &["n't", "n’t", "不", "没", "未", "无", "無", "ない", "なく", "ません", "なし"];
    let lower = text.to_lowercase();
    MARKS.iter().any(|mark| lower.contains(mark))
        || segments(text).iter().flat_map(|s| &s.parts).any(|part| is_negation(&fold(part)))
}

fn is_negation(folded: &str) -> bool {
    static WORDS: OnceLock<HashSet<&str>> = OnceLock::new();
    WORDS.get_or_init(|| NEGATIONS.split_whitespace().collect()).contains(folded)
}

fn exact(text: String, kind: TellingKind) -> TellingWord {
    TellingWord { text, kind }
}

/// The telling words of a segment that is neither a run nor a number.
fn word(segment: &Segment, out: &mut Vec<TellingWord>) {
    let has_digit = |part: &str| part.chars().any(char::is_numeric);
    if segment.identifier {
        let joined = segment.joined.as_deref().unwrap_or_default();
        out.push(exact(fold(joined), TellingKind::Identifier));
        return;
    }
    for part in &segment.parts {
        let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, rest) = part.split_at(digits);
        if digits > 0 && !has_digit(rest) {
            out.push(exact(canonical(number), TellingKind::Number)); // with its unit: `16tb`
            plain(rest, out);
        } else if has_digit(part) {
            out.push(exact(fold(part), TellingKind::Identifier));
        } else {
            plain(part, out);
        }
    }
}

fn plain(part: &str, out: &mut Vec<TellingWord>) {
    let folded = fold(part);
    if let Some((number, _)) = NUMBERS.iter().find(|(_, words)| words.split(' ').any(|w| w == folded)) {
        out.push(exact((*number).into(), TellingKind::Number));
    } else if folded.chars().nth(1).is_some() && !is_folded_function_word(&folded) && !is_negation(&folded) {
        out.push(exact(stem(part, DEFAULT_LANGUAGE), TellingKind::Word));
    }
}

/// Digits, with nothing but points and dashes between them.
fn is_numeric(text: &str, segment: &Segment) -> bool {
    let raw = text.get(segment.start..segment.end).unwrap_or_default();
    !raw.is_empty() && raw.chars().all(|c| c.is_numeric() || matches!(c, '.' | '-' | '/' | '\u{2010}'))
}

/// Whether `next` goes on with the number that ends at `end`: after a comma or an apostrophe.
fn continues(text: &str, end: usize, next: &Segment) -> bool {
    // Segments of one character, such as `½`, overlap.
    matches!(text.get(end..next.start), Some("," | "'" | "’")) && is_numeric(text, next)
}

/// One spelling for `1,200`, `1.200` and `1200`, for `99,5` and `99.5`, for `05` and `5`. A separator before three
/// digits is taken for one of thousands; what has several and is no such number (`2.14.1`) stays.
fn canonical(number: &str) -> String {
    let groups: Vec<&str> = number.split(['.', ',', '\'', '’']).collect();
    let [first, rest @ ..] = groups.as_slice() else { return number.into() };
    let head = match first.trim_start_matches('0') {
        "" => "0",
        digits => digits,
    };
    match rest {
        [] => head.into(),
        _ if head != "0" && head.len() <= 3 && rest.iter().all(|group| group.len() == 3) => {
            head.to_owned() + &rest.concat()
        }
        [decimals] => format!("{head}.{decimals}"),
        _ => groups.join("."),
    }
}

/// Kana that end words, and the commonest Chinese particles.
fn is_ending(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{309f}' | '的' | '了' | '是' | '吗' | '呢')
}

const NUMBERS: &[(&str, &str)] = &[
    ("2", "two zwei deux dos"),
    ("3", "three drei trois tres tre"),
    ("4", "four vier quatre cuatro quattro"),
    ("5", "five funf cinq cinco cinque"),
    ("6", "six sechs seis"),
    ("7", "seven sieben sept siete sette"),
    ("8", "eight huit ocho otto"),
    ("9", "nine neun nueve nove"),
    ("10", "ten zehn dix diez dieci"),
    ("11", "eleven elf onze undici"),
    ("12", "twelve zwolf douze doce dodici"),
];

const NEGATIONS: &str = "not no never without neither nor none cannot nobody nothing \
    nicht kein keine keinen keiner keinem keines nie niemals ohne weder niemand nichts \
    pas jamais aucun aucune sans ni nunca jamas sin ningun ninguna tampoco non senza nessun nessuno nessuna";

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        telling(text).into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn numbers_have_one_spelling() {
        for text in ["1,200", "1.200", "1200", "1’200"] {
            assert_eq!(words(text), ["1200"], "{text}");
        }
        assert_eq!(words("99,5 99.5 05 0.25 2.14.1"), ["99.5", "99.5", "5", "0.25", "2.14.1"]);
        assert_eq!(words("01:30, 24/7, 16 TB, 16TB"), ["1", "30", "24", "7", "16", "tb", "16", "tb"]);
        assert_eq!(words("drei trois 三"), ["3", "3", "三"]);
    }

    #[test]
    fn no_text_is_too_odd() {
        for text in
            ["added 6½ sacks", "½", "1,½", "½,1", "①,②", "㎏5", "5㎏,5", "\u{301}5,\u{301}5", "5’’5", "ﬁ,5"]
        {
            telling(text);
            assert!(!negates(text));
        }
    }

    #[test]
    fn identifiers_are_whole() {
        let found = telling("IPv6 P-256 off-site api.example.com");
        let exact: Vec<_> = found.iter().filter(|w| w.kind.is_exact()).map(|w| w.text.as_str()).collect();
        assert_eq!(exact, ["ipv6", "p256", "apiexamplecom"]);
    }

    #[test]
    fn particles_and_kana_endings_say_nothing() {
        assert_eq!(words("数据库的备份"), ["数据", "据库", "备份"]);
        assert_eq!(words("It is not in the l'avion"), ["avion"]);
    }
}
