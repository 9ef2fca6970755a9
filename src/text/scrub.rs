//! Personal data in free text: found, and replaced before it is kept.
//!
//! Six families, searched in this order: e-mail addresses, telephone numbers, US social security numbers, JSON web
//! tokens, bearer tokens, payment card numbers. Everything is replaced by `[REDACTED]`; a bearer token keeps its
//! word, `Bearer [REDACTED]`. Names, postal addresses and whatever else is personal are not found: this lowers a
//! risk and does not remove it.
//!
//! What counts, where there is a choice:
//! - A telephone number is `+` and 8 to 15 digits, separated by at most two of ` .-/()` (ITU-T E.164), or ten
//!   digits of the North American form with a separator or brackets after the area code. Bare digits are none.
//! - A card number has 13 to 19 digits, single blanks or hyphens between them, and a right check digit (Luhn).
//!   It is found among other numbers too: `4111 1111 1111 1111 12/27`.
//! - Blanks that do not break and typographic dashes count as blanks and hyphens: pasted text has them.
//! - The scheme `bearer` counts in any letter case (RFC 9110), also with a colon behind it.
//! - What touches the find (letters before a token, digits behind a domain) does not hide it.
//!
//! Time is linear in the text. The expressions run on finite automata, without backtracking, and no stretch of
//! text lies before more than a few finds: a find takes all characters that its tail may consist of.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// What stands where personal data was.
pub const REDACTED: &str = "[REDACTED]";

/// What kind of personal data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// An e-mail address.
    Email,
    /// A telephone number.
    Phone,
    /// A US social security number.
    Ssn,
    /// A JSON web token.
    Jwt,
    /// A bearer token of an authorisation header.
    Bearer,
    /// A payment card number.
    Card,
}

/// One find: its family and the bytes it covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pii {
    /// What it is.
    pub family: Family,
    /// Where it is, in bytes.
    pub range: Range<usize>,
}

/// Replaces personal data. Text without any is returned as it is, and scrubbing twice changes nothing more.
///
/// The result is at most 5/3 as long as the text: the shortest address has six bytes.
///
/// ```
/// use rankgate::text::scrub;
/// assert_eq!(scrub("mail jane@example.com or call 555-123-4567"), "mail [REDACTED] or call [REDACTED]");
/// assert_eq!(scrub("issue #123456 of 2024"), "issue #123456 of 2024");
/// ```
pub fn scrub(text: &str) -> Cow<'_, str> {
    let mut scrubbed = Cow::Borrowed(text);
    for family in Family::ALL {
        let found = family.find(&scrubbed);
        if found.is_empty() {
            continue;
        }
        let mut out = String::with_capacity(scrubbed.len());
        let mut kept = 0;
        for range in found {
            out.push_str(&scrubbed[kept..range.start]);
            out.push_str(family.replacement());
            kept = range.end;
        }
        out.push_str(&scrubbed[kept..]);
        scrubbed = Cow::Owned(out);
    }
    scrubbed
}

/// Where personal data is, family by family, each in the order of the text. Finds of two families may overlap.
///
/// ```
/// use rankgate::text::{Family, find_pii};
/// let found = find_pii("ssn 123-45-6789");
/// assert_eq!((found[0].family, found[0].range.clone()), (Family::Ssn, 4..15));
/// ```
pub fn find_pii(text: &str) -> Vec<Pii> {
    let in_family = |family: Family| family.find(text).into_iter().map(move |range| Pii { family, range });
    Family::ALL.into_iter().flat_map(in_family).collect()
}

impl Family {
    /// All families, in the order in which they are searched.
    pub const ALL: [Self; 6] = [Self::Email, Self::Phone, Self::Ssn, Self::Jwt, Self::Bearer, Self::Card];

    /// The family as people read it: `e-mail address`.
    pub fn words(self) -> &'static str {
        match self {
            Self::Email => "e-mail address",
            Self::Phone => "telephone number",
            Self::Ssn => "social security number",
            Self::Jwt => "JSON web token",
            Self::Bearer => "bearer token",
            Self::Card => "card number",
        }
    }

    fn replacement(self) -> &'static str {
        if self == Self::Bearer { "Bearer [REDACTED]" } else { REDACTED }
    }

    fn find(self, text: &str) -> Vec<Range<usize>> {
        match self {
            Self::Email => find(&EMAIL, text),
            Self::Phone => phones(text),
            Self::Ssn => find(&SSN, text),
            Self::Jwt => find(&JWT, text),
            Self::Bearer => find(&BEARER, text),
            Self::Card => cards(text.as_bytes()),
        }
    }
}

// The group `find` is what was found; around it stands what may touch it. Letters of scripts that put spaces between
// words are letters of an address (`müller@…`, `иван@…`), those of others are its neighbours in running text.
static EMAIL: LazyLock<Regex> = LazyLock::new(|| {
    let letter = r"\p{Latin}\p{Cyrillic}\p{Greek}";
    compile(&format!(r"(?<find>[{letter}0-9_][{letter}0-9._%+'-]*@[{letter}0-9.-]+\.[{letter}]{{2,}})"))
});

/// Hyphens and dashes as text processors put them, inside of a class.
const DASHES: &str = r"\u{2010}-\u{2015}-";

static PHONE: LazyLock<Regex> = LazyLock::new(|| {
    let gap = format!(r"[\s\u{{feff}}.{DASHES}]");
    let local = format!("[0-9]{{3}}{gap}?[0-9]{{4}}");
    let bracketed = format!(r"\([0-9]{{3}}\)[\s\u{{feff}}]?{local}");
    let plain = format!("[0-9]{{3}}{gap}{local}");
    let american = format!(r"\+[0-9]{{1,3}}{gap}?(?:{bracketed}|{plain})");
    let international = format!(r"\+[1-9](?:[ \u{{a0}}\u{{202f}}./(){DASHES}]{{0,2}}[0-9]){{7,14}}");
    compile(&format!(
        "(?:(?<find>{american}|{international}|{bracketed})|(?:^|[^0-9])(?<bare>{plain}))(?:$|[^0-9])"
    ))
});

static SSN: LazyLock<Regex> = LazyLock::new(|| {
    compile(&format!("(?:^|[^0-9])(?<find>[0-9]{{3}}[{DASHES}][0-9]{{2}}[{DASHES}][0-9]{{4}})(?:$|[^0-9])"))
});

static JWT: LazyLock<Regex> =
    LazyLock::new(|| compile(r"(?<find>eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,})"));

// `=` ends a token, so that the next one may touch it: both are one find then.
static BEARER: LazyLock<Regex> = LazyLock::new(|| {
    compile(r"(?:^|[^A-Za-z_])(?<find>(?:(?i-u:bearer):?[\s\u{feff}]+[A-Za-z0-9._~+/-]{10,}=*)+)")
});

fn compile(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the patterns are constant, and every test compiles them")
}

fn find(pattern: &Regex, text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(range) = next(pattern, text, at) {
        at = range.end;
        found.push(range);
    }
    found
}

/// Telephone numbers. One may begin inside another, of which it is not known where it ends (`+44 20 7946 0958
/// 555-123-4567`): those that share digits are one find. They are short, so few begin inside each.
fn phones(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(range) = next(&PHONE, text, at) {
        at = range.start + 1;
        join(&mut found, range);
    }
    found
}

fn next(pattern: &Regex, text: &str, at: usize) -> Option<Range<usize>> {
    let captures = pattern.captures_at(text, at)?;
    let group = captures.name("find").or_else(|| captures.name("bare"));
    Some(group.expect("one of the groups takes part in every match").range())
}

/// Adds a find that starts behind the last one's start.
fn join(found: &mut Vec<Range<usize>>, range: Range<usize>) {
    match found.last_mut() {
        Some(last) if range.start < last.end => last.end = last.end.max(range.end),
        _ => found.push(range),
    }
}

/// Card numbers; those that share digits are one find.
fn cards(text: &[u8]) -> Vec<Range<usize>> {
    let digit = |at: usize| text.get(at).is_some_and(u8::is_ascii_digit);
    let mut found = Vec::new();
    for start in (0..text.len()).filter(|&at| digit(at) && (at == 0 || !digit(at - 1))) {
        let Some(end) = card(text, start) else { continue };
        join(&mut found, start..end);
    }
    found
}

/// The bytes of the blank or hyphen that `text` begins with; 0 without.
fn gap(text: &[u8]) -> usize {
    let gaps =
        [" ", "-", "\t", "\u{a0}", "\u{202f}", "\u{2010}", "\u{2011}", "\u{2012}", "\u{2013}", "\u{2014}"];
    gaps.iter().find(|gap| text.starts_with(gap.as_bytes())).map_or(0, |gap| gap.len())
}

/// The end of the longest card number that starts at the digit `start`. Looks at 19 digits and their gaps at most.
fn card(text: &[u8], start: usize) -> Option<usize> {
    let digit =
        |at: usize| text.get(at).filter(|byte| byte.is_ascii_digit()).map(|byte| u32::from(byte - b'0'));
    // Sums of the digits taken once, and twice with their cross sum: which of the two holds depends on how many follow.
    let (mut single, mut double) = (0, 0);
    let (mut at, mut end) = (start, None);
    for count in 1..=19 {
        let value = digit(at)?;
        let crossed = if value > 4 { 2 * value - 9 } else { 2 * value };
        (single, double) = (double + value, single + crossed);
        at += 1;
        if count >= 13 && digit(at).is_none() && single % 10 == 0 {
            end = Some(at);
        }
        at += gap(&text[at..]);
        if digit(at).is_none() {
            break;
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_family_is_found() {
        for (text, scrubbed) in [
            ("write to jane.doe+list@mail.example.co.uk now", "write to [REDACTED] now"),
            ("a@b.io, c_d%e@f-g.museum", "[REDACTED], [REDACTED]"),
            ("grüße an müller@bücher.de", "grüße an [REDACTED]"),
            ("邮箱是a@b.cc谢谢", "邮箱是[REDACTED]谢谢"),
            ("555-123-4567 or (555) 123-4567 or 555.123.4567", "[REDACTED] or [REDACTED] or [REDACTED]"),
            ("+1 555 123 4567, +1-(555) 1234567", "[REDACTED], [REDACTED]"),
            ("+44 20 7946 0958 and +33 1 23 45 67 89", "[REDACTED] and [REDACTED]"),
            ("+49 (0)30 901820, +4930901820", "[REDACTED], [REDACTED]"),
            ("ssn 123-45-6789.", "ssn [REDACTED]."),
            ("t eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeK_-x !", "t [REDACTED] !"),
            ("authorization: bearer abcDEF123._~+/-x==", "authorization: Bearer [REDACTED]"),
            ("BEARER abcDEF123456", "Bearer [REDACTED]"),
            ("Bearer eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSM", "Bearer [REDACTED]"),
            ("4111 1111 1111 1111", "[REDACTED]"),
            ("378282246310005 5555-5555-5555-4444", "[REDACTED] [REDACTED]"),
            ("card 4111111111111111 12/27 cvv 123", "card [REDACTED] 12/27 cvv 123"),
            ("order 12 4111111111111111", "order 12 [REDACTED]"),
            // As pasted from a page or a text processor.
            ("+44\u{a0}20\u{202f}7946\u{a0}0958", "[REDACTED]"),
            ("555\u{2011}123\u{2011}4567, 123\u{2013}45\u{2013}6789", "[REDACTED], [REDACTED]"),
            ("4111\u{a0}1111\u{2011}1111\t1111", "[REDACTED]"),
            ("иван@пример.рф γιώργος@example.com o'brien@example.com", "[REDACTED] [REDACTED] [REDACTED]"),
            ("Bearer: abcdefghij0", "Bearer [REDACTED]"),
        ] {
            assert_eq!(scrub(text), scrubbed, "{text}");
        }
    }

    #[test]
    fn what_is_no_personal_data_stays() {
        for text in [
            "",
            "how do I roll back a release",
            "in 2024, issue #123456",
            "call 5551234567",
            "1234567890123456",
            "4111 1111 1111 1112",
            "version 1.2.3-45 of x@y and @handle, a@b",
            "1234-56-7890 and 123-456-789",
            "eyJ short.eyJ.x",
            "bearer of bad news, forbearer abcdefghijkl",
            "2026-05-01T12:30:45.123Z 10.20.30.40:8080",
            "550e8400-e29b-41d4-a716-446655440000",
            "c++ 20 and 1+1=2, +1234567",
        ] {
            assert_eq!(scrub(text), text);
            assert!(matches!(scrub(text), Cow::Borrowed(_)));
            assert_eq!(find_pii(text), [], "{text}");
        }
    }

    #[test]
    fn a_find_is_not_hidden_by_what_touches_it() {
        for (text, scrubbed) in [
            ("a@b.cc123-45-6789", "[REDACTED][REDACTED]"),
            ("123-45-6789(555) 123-4567", "[REDACTED][REDACTED]"),
            ("4111111111111111eyJaaaaaaaa.bbbbbbbb.cccccccc", "[REDACTED][REDACTED]"),
            ("4111111111111111bearer aaaaaaaaaa=bearer bbbbbbbbbb", "[REDACTED]Bearer [REDACTED]"),
            ("a@b.cc1@d.ee", "[REDACTED][REDACTED]"),
            ("+44 20 7946 0958.555.123.4567", "[REDACTED]"),
        ] {
            assert_eq!(scrub(text), scrubbed, "{text}");
        }
    }

    #[test]
    fn finds_are_by_family_and_hold_the_whole_token() {
        let text = "123-45-6789 é a@b.cc bearer abcdefghij";
        let found: Vec<_> =
            find_pii(text).into_iter().map(|pii| (pii.family, &text[pii.range.clone()])).collect();
        let wanted =
            [(Family::Email, "a@b.cc"), (Family::Ssn, "123-45-6789"), (Family::Bearer, "bearer abcdefghij")];
        assert_eq!(found, wanted);
    }

    /// Pieces that make, break and touch the families, so that random sequences come near them.
    fn near_misses() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            4 => proptest::sample::select(vec![
                "a@b.cc", "@", ".com", "%", "_", "555-123-4567", "(555) ", "123-4567", "+1 ", "+44 20 7946 0958", "+",
                "123-45-6789", "eyJaaaaaaaa", ".bbbbbbbb", "-", "bearer ", "Bearer\u{a0}", "aaaaaaaaaa", "=", "/",
                "4111111111111111", "4111 1111 ", "1111 1111", "378282246310005", "0000", " ", "é", "ü@ö.de", "[REDACTED]",
                "\u{feff}", "日本", "\n", "\u{a0}", "\u{2011}", "\t", "иван@пр.рф", "o'b@c.de", "bearer: ",
            ]).prop_map(str::to_string),
            1 => "[0-9]{1,20}",
            1 => "[ -~]{0,4}",
            1 => any::<char>().prop_map(String::from),
        ];
        proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        // The number of cases is part of the promise, whatever PROPTEST_CASES says.
        #![proptest_config(ProptestConfig { cases: 100_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn scrubbing_is_final_and_finds_are_in_the_text(text in near_misses()) {
            let once = scrub(&text).into_owned();
            prop_assert_eq!(scrub(&once), once.as_str(), "{}", text);
            prop_assert_eq!(find_pii(&once), []);
            prop_assert!(once.len() * 3 <= text.len() * 5);
            let found = find_pii(&text);
            prop_assert_eq!(found.is_empty(), once == text);
            for pair in found.windows(2) {
                prop_assert!((pair[0].family, pair[0].range.end) <= (pair[1].family, pair[1].range.start));
            }
            for pii in found {
                prop_assert!(!text[pii.range].is_empty());
            }
        }
    }

    #[test]
    fn long_hostile_texts_end() {
        for piece in [
            "a@",
            "a@b.",
            "a@b.cc",
            "1",
            "1-",
            "1 ",
            "555-",
            "(555)",
            "+1",
            "+1 555 123 4567",
            "eyJ",
            "eyJaaaaaaaa.",
            "eyJaaaaaaaa.bbbbbbbb.cccccccc",
            "bearer ",
            "bearer aaaaaaaaaa=",
            " ",
            "=",
            "4111111111111111 ",
            "é@",
        ] {
            let text = piece.repeat(100_000 / piece.len());
            let once = scrub(&text).into_owned();
            assert_eq!(scrub(&once), once, "{piece}");
        }
    }
}
