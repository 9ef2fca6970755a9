//! Guardrails: what a proposed expansion must satisfy before anything is searched for.
//!
//! A proposal may be wrong, off topic or hostile. What comes out is bounded in number and length, has no operators of
//! the query grammar, holds nothing that the query excludes, and shares a telling word with the query. Names and
//! numbers, quoted phrases and exclusions of the query are never paraphrased away: they form a query of their own,
//! which comes first.

use std::collections::{BTreeSet, HashSet};

use super::MOST;
use crate::corpus::Expansion;
use crate::error::Result;
use crate::text::{self, LexicalQuery, TokenKind, fold, is_function_word, stem};

/// Characters of a variant; what is longer is no query.
const LONGEST_QUERY: usize = 200;
/// Characters of a hypothetical answer.
const LONGEST_ANSWER: usize = 600;
/// Letters from which a word that begins another one is taken for a part of it.
const PART: usize = 4;

/// The part of `proposed` that may be searched for beside `query`.
///
/// `near` tells whether a text means nearly what the query means. It is asked about texts without a word in common
/// with the query, which may be in another language: such a text stays for the vector lane if it is near. Fails only
/// when `near` does.
pub fn guard(
    query: &str,
    lang: Option<&str>,
    proposed: Expansion,
    mut near: impl FnMut(&str) -> Result<bool>,
) -> Result<Expansion> {
    let parsed = text::parse(query);
    let asked = Asked::new(&parsed, lang);
    let mut lexical: Vec<String> = anchor(&parsed).into_iter().collect();
    let mut vector: Vec<String> = Vec::new();
    let mut elsewhere: Vec<String> = Vec::new();
    for variant in proposed.lexical_queries.iter().filter_map(|text| plain(text, LONGEST_QUERY)) {
        if asked.shares(&variant) { lexical.push(variant) } else { elsewhere.push(variant) }
    }
    for variant in proposed.vector_queries.iter().filter_map(|text| plain(text, LONGEST_QUERY)) {
        if asked.shares(&variant) { vector.push(variant) } else { elsewhere.push(variant) }
    }
    for variant in elsewhere {
        if !asked.excludes(&variant) && near(&variant)? {
            vector.push(variant);
        }
    }
    let mut hyde = proposed.hyde.as_deref().and_then(|text| plain(text, LONGEST_ANSWER));
    if let Some(answer) = &hyde {
        let kept = !asked.excludes(answer) && (asked.shares(answer) || near(answer)?);
        hyde = hyde.filter(|_| kept);
    }
    lexical.retain(|variant| !asked.excludes(&without_exclusions(variant)));
    vector.retain(|variant| !asked.excludes(variant));
    distinct(&mut lexical);
    distinct(&mut vector);
    let wanted = wanted(&parsed);
    for list in [&mut lexical, &mut vector] {
        if list.is_empty() && !wanted.is_empty() {
            list.push(wanted.clone());
        }
    }
    Ok(Expansion { lexical_queries: lexical, vector_queries: vector, hyde, notes: proposed.notes })
}

/// What the query asks for, without what it excludes.
fn wanted(query: &LexicalQuery) -> String {
    query.terms.iter().chain(&query.phrases).map(String::as_str).collect::<Vec<_>>().join(" ")
}

/// A query of names, numbers, quoted phrases and exclusions; `None` when there is nothing to hold fast.
fn anchor(query: &LexicalQuery) -> Option<String> {
    let entities = query.terms.iter().enumerate().filter(|&(at, word)| is_entity(word, at)).map(|(_, w)| w);
    let mut parts: Vec<String> = entities.cloned().collect();
    let quoted = |text: &String| format!("\"{}\"", text.replace('"', " "));
    parts.extend(query.phrases.iter().map(quoted));
    if parts.is_empty() {
        return None;
    }
    parts.extend(query.excluded.iter().map(|text| format!("-{}", quoted(text))));
    Some(parts.join(" "))
}

/// Whether a word is a name or an identifier: upper case after its first letter, letters beside digits, or one of
/// `+#._/@:` inside. A capital alone is none: it begins sentences, and every German noun.
fn is_entity(word: &str, at: usize) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric() && !"+#".contains(c));
    let has = |of: fn(char) -> bool| word.chars().any(of);
    let later_upper = word.chars().skip(1).any(char::is_uppercase);
    let mixed = has(char::is_alphabetic) && has(char::is_numeric);
    let joined = word.chars().skip(1).any(|c| "+#._/@:".contains(c)) && has(char::is_alphanumeric);
    let number = has(char::is_numeric) && at > 0;
    later_upper || mixed || joined || number
}

/// `text` on one line without what the query grammar would take for an operator; `None` when no word is left.
fn plain(text: &str, longest: usize) -> Option<String> {
    let quotes = ['"', '“', '”', '„', '«', '»'];
    let words = text.split(|c: char| c.is_whitespace() || c.is_control() || quotes.contains(&c));
    let words: Vec<&str> = words.map(|word| word.trim_start_matches('-')).filter(|w| !w.is_empty()).collect();
    let mut line = words.join(" ");
    if let Some((end, _)) = line.char_indices().nth(longest) {
        line.truncate(end);
        let whole = line.rfind(' ').unwrap_or(line.len());
        line.truncate(whole);
    }
    line.chars().any(char::is_alphanumeric).then_some(line)
}

/// An anchor names what is excluded in order to exclude it.
fn without_exclusions(variant: &str) -> String {
    wanted(&text::parse(variant))
}

/// Keeps the first of texts that differ only in case, accents or punctuation, at most [`MOST`].
fn distinct(variants: &mut Vec<String>) {
    let mut seen = HashSet::new();
    variants.retain(|variant| {
        let parsed = text::parse(variant);
        let excluded = parsed.excluded.iter().map(|text| format!("-{}", folded(text)));
        seen.insert((folded(&wanted(&parsed)), excluded.collect::<Vec<_>>()))
    });
    variants.truncate(MOST);
}

/// The words of a text, folded, with single spaces.
pub(super) fn folded(text: &str) -> String {
    let words = text::segments(text).into_iter().map(|segment| match segment.tail {
        Some(tail) => {
            let firsts = segment.parts.iter().filter_map(|pair| pair.chars().next());
            let mut run: String = firsts.collect();
            if segment.parts != [tail.clone()] {
                run.push_str(&tail);
            }
            run
        }
        None => segment.parts.join(" "),
    });
    fold(&words.collect::<Vec<_>>().join(" "))
}

/// A text that a query excludes.
struct Excluded {
    words: Vec<String>,
    /// The text itself where it is written without spaces, so that it may stand inside a longer run.
    run: Option<String>,
}

/// The telling words of a query, and those it excludes.
struct Asked {
    words: BTreeSet<String>,
    excluded: Vec<Excluded>,
    languages: Vec<String>,
}

impl Asked {
    fn new(query: &LexicalQuery, lang: Option<&str>) -> Self {
        let mut languages = vec![text::DEFAULT_LANGUAGE.to_string()];
        languages.extend(lang.map(str::to_string));
        let wanted = wanted(query);
        languages.extend(text::language_of(&wanted).map(str::to_string));
        languages.dedup();
        let excluded = query.excluded.iter().map(|text| Excluded {
            words: words(text, &languages).collect(),
            run: text::segments(text).iter().any(|segment| segment.tail.is_some()).then(|| folded(text)),
        });
        let excluded = excluded.collect();
        let mut telling: BTreeSet<String> = telling(&wanted, &languages);
        if telling.is_empty() {
            telling = words(&wanted, &languages).collect();
        }
        Self { words: telling, excluded, languages }
    }

    /// Whether `text` has a telling word of the query, or one that contains it.
    fn shares(&self, text: &str) -> bool {
        let related = |a: &str, b: &str| {
            let part = |long: &str, short: &str| short.chars().count() >= PART && long.starts_with(short);
            a == b || part(a, b) || part(b, a)
        };
        let theirs = telling(text, &self.languages);
        self.words.iter().any(|ours| theirs.iter().any(|word| related(ours, word)))
    }

    /// Whether `text` has all words of something that the query excludes.
    fn excludes(&self, text: &str) -> bool {
        let theirs: HashSet<String> = words(text, &self.languages).collect();
        let line = folded(text);
        self.excluded.iter().any(|Excluded { words, run }| {
            let spoken = !words.is_empty() && words.iter().all(|word| theirs.contains(word));
            spoken || run.as_ref().is_some_and(|run| line.contains(run))
        })
    }
}

/// Every form of every word: folded, and stemmed in each language.
fn words<'a>(text: &str, languages: &'a [String]) -> impl Iterator<Item = String> + 'a {
    let tokens = text::tokens(text).into_iter().filter(|token| token.kind != TokenKind::Tail);
    tokens.flat_map(|token| {
        let stems: Vec<String> = languages.iter().map(|language| stem(&token.text, language)).collect();
        stems.into_iter().chain([fold(&token.text)]).collect::<Vec<_>>()
    })
}

/// The words that tell what a text is about: no function words, and of runs only pairs that are not hiragana alone.
fn telling(text: &str, languages: &[String]) -> BTreeSet<String> {
    let grammar = |c: char| ('\u{3041}'..='\u{309f}').contains(&c);
    text::tokens(text)
        .into_iter()
        .filter(|token| match token.kind {
            TokenKind::Pair => !token.text.chars().all(grammar),
            TokenKind::Tail => false,
            _ => token.text.chars().count() > 1 && !is_function_word(&token.text),
        })
        .flat_map(|token| words(&token.text, languages).collect::<Vec<_>>())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proposal(lexical: &[&str], vector: &[&str], hyde: Option<&str>) -> Expansion {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_string()).collect();
        Expansion {
            lexical_queries: owned(lexical),
            vector_queries: owned(vector),
            hyde: hyde.map(str::to_string),
            notes: None,
        }
    }

    fn far(query: &str, proposed: Expansion) -> Expansion {
        guard(query, None, proposed, |_| Ok(false)).expect("nothing can fail")
    }

    #[test]
    fn names_phrases_and_exclusions_come_first() {
        let found = far(
            r#"why does pgBouncer log ECONNREFUSED "too many clients" -haproxy"#,
            proposal(&["pgbouncer connection refused"], &[], None),
        );
        assert_eq!(found.lexical_queries[0], r#"pgBouncer ECONNREFUSED "too many clients" -"haproxy""#);
        assert_eq!(found.lexical_queries[1], "pgbouncer connection refused");
        assert_eq!(far("how to roll back", proposal(&[], &[], None)).lexical_queries, ["how to roll back"]);
    }

    #[test]
    fn what_shares_nothing_is_dropped_or_left_to_the_vector_lane() {
        let proposed = proposal(
            &["banana bread", "rollback pool"],
            &["How is cake baked?"],
            Some("Bake it for an hour."),
        );
        let found = far("roll back the pool", proposed.clone());
        assert_eq!(found, proposal(&["rollback pool"], &["roll back the pool"], None));
        let kept = guard("roll back the pool", None, proposed, |text| Ok(text != "banana bread"));
        let kept = kept.expect("nothing can fail");
        assert_eq!(kept.vector_queries, ["How is cake baked?"]);
        assert_eq!(kept.hyde.as_deref(), Some("Bake it for an hour."));
    }

    #[test]
    fn function_words_are_no_overlap_and_compounds_are() {
        assert_eq!(
            far("how to cancel", proposal(&["how to bake"], &[], None)).lexical_queries,
            ["how to cancel"]
        );
        let found = far("Kündigung der Rackfläche", proposal(&["Kündigungsfrist Rack"], &[], None));
        assert_eq!(found.lexical_queries, ["Kündigungsfrist Rack"]);
        let found = far("灭火气体释放", proposal(&["气体灭火系统"], &[], None));
        assert_eq!(found.lexical_queries, ["气体灭火系统"]);
    }

    #[test]
    fn an_excluded_word_never_comes_back() {
        let proposed = proposal(
            &["restore archive with mariabackup", "restore archive"],
            &["How do I restore an archive from Mariabackups?"],
            Some("Restore the archive with mariabackup."),
        );
        let found = guard("restore database archive -mariabackup", None, proposed, |_| Ok(true));
        let found = found.expect("nothing can fail");
        assert_eq!(found, proposal(&["restore archive"], &["restore database archive"], None));
        let found = far("动物 -猫", proposal(&["动物 猫咪", "动物 狗"], &[], None));
        assert_eq!(found.lexical_queries, ["动物 狗"]);
    }

    #[test]
    fn operators_and_repetitions_go() {
        let proposed = proposal(
            &["\"drain\" -node", "Drain  node", "drain, node!", "--drain now"],
            &["drain\u{0}\na node"],
            None,
        );
        let found = far("drain", proposed);
        assert_eq!(found, proposal(&["drain node", "drain now"], &["drain a node"], None));
    }
}
