//! Stems: the loose form under which inflected words meet.

use frostem::{Algorithm, Stemmer};

use super::normalize::fold;

/// The language whose stemmer is used for Latin letters when a document states none.
pub const DEFAULT_LANGUAGE: &str = "en";

/// The Snowball stem of a normalised word, accents folded.
///
/// `language` is a tag such as `de` or `pt-BR`. It decides for words in its own script; a word in another
/// script is stemmed by that script's most widely written language. Words with digits, and words of languages
/// that have no stemmer, are only folded: no language is ever guessed.
///
/// ```
/// use rankgate::text::stem;
/// assert_eq!(stem("connections", "en"), "connect");
/// assert_eq!(stem("häuser", "de-AT"), "haus");
/// assert_eq!(stem("новости", "en"), stem("новостей", "en"));
/// ```
pub fn stem(word: &str, language: &str) -> String {
    if word.chars().any(char::is_numeric) {
        return fold(word);
    }
    match algorithm(word, language) {
        Some(algorithm) => fold(&Stemmer::new(algorithm).stem(word)),
        None => fold(word),
    }
}

fn algorithm(word: &str, language: &str) -> Option<Algorithm> {
    let primary = language.split(['-', '_']).next().unwrap_or_default();
    // A tag has two or three letters; longer names are the stemmers' own, among them `lovins` and `porter`.
    let stated = if primary.len() <= 3 { Algorithm::from_name(primary).ok() } else { None };
    let script = Script::of(word)?;
    match stated {
        Some(algorithm) if Script::written(primary) == script => Some(algorithm),
        // A stated language without a stemmer: another language's rules would only do harm.
        None if script == Script::Latin => None,
        _ => script.default_algorithm(),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Script {
    Latin,
    Greek,
    Cyrillic,
    Arabic,
    Devanagari,
    Armenian,
    Tamil,
}

impl Script {
    fn of(word: &str) -> Option<Self> {
        word.chars().find_map(|c| match c {
            'a'..='z' | '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => Some(Self::Latin),
            '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}' => Some(Self::Greek),
            '\u{400}'..='\u{52f}' => Some(Self::Cyrillic),
            '\u{530}'..='\u{58f}' => Some(Self::Armenian),
            '\u{600}'..='\u{6ff}' | '\u{750}'..='\u{77f}' => Some(Self::Arabic),
            '\u{900}'..='\u{97f}' => Some(Self::Devanagari),
            '\u{b80}'..='\u{bff}' => Some(Self::Tamil),
            _ => None,
        })
    }

    /// The script that a language with a stemmer is written in.
    fn written(primary: &str) -> Self {
        match primary.to_ascii_lowercase().as_str() {
            "el" | "ell" | "gre" => Self::Greek,
            "ru" | "rus" => Self::Cyrillic,
            "ar" | "ara" | "fa" | "fas" | "per" => Self::Arabic,
            "hi" | "hin" | "ne" | "nep" => Self::Devanagari,
            "hy" | "hye" | "arm" => Self::Armenian,
            "ta" | "tam" => Self::Tamil,
            _ => Self::Latin,
        }
    }

    fn default_algorithm(self) -> Option<Algorithm> {
        let language = match self {
            Self::Latin => DEFAULT_LANGUAGE,
            Self::Greek => "el",
            Self::Cyrillic => "ru",
            Self::Arabic => "ar",
            Self::Devanagari => "hi",
            Self::Armenian => "hy",
            Self::Tamil => "ta",
        };
        Algorithm::from_name(language).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_decides_before_the_language() {
        assert_eq!(stem("running", "ru"), "run");
        assert_eq!(stem("running", "en"), "run");
        assert_eq!(stem("running", "xx"), "running");
    }

    #[test]
    fn identifiers_are_left_alone() {
        assert_eq!(stem("v8s", "en"), "v8s");
        assert_eq!(stem("데이터", "ko"), "데이터");
    }

    #[test]
    fn accents_do_not_separate() {
        assert_eq!(stem("zürich", "en"), stem("zurich", "en"));
    }
}
