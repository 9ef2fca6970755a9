//! Expansion by rules, without a model. Nothing is invented: every word is the query's own, or stands in the passages
//! that the plain search found first.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::guard::folded;
use super::{Expander, ExpansionRequest};
use crate::corpus::Expansion;
use crate::error::Result;
use crate::text::{self, fold, is_function_word};

/// The version of the rules; part of every expansion's key.
const VERSION: &str = "lexical-v1";
/// Letters of the shortest part of a compound.
const SHORTEST_PART: usize = 4;
/// What German puts between the parts of a compound.
const JOINTS: [&str; 6] = ["", "s", "es", "n", "en", "er"];
/// Words of the passages that are added.
const RELATED: usize = 4;

/// Proposes the query's telling words alone, their other spellings and what their abbreviations stand for.
///
/// ```
/// use rankgate::pipeline::expansion::{Expander, ExpansionRequest, LexicalExpander};
/// let passages = ["A Recovery Point Objective (RPO) says how much data may be lost.".to_string()];
/// let request = ExpansionRequest { feedback: &passages, ..ExpansionRequest::new("what is our RPO") };
/// let found = LexicalExpander.expand(&request)?;
/// assert_eq!(found.lexical_queries, ["rpo", "rpo Recovery Point Objective"]);
/// # Ok::<(), rankgate::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct LexicalExpander;

impl Expander for LexicalExpander {
    fn name(&self) -> &str {
        "lexical"
    }

    fn version(&self) -> &str {
        VERSION
    }

    fn model(&self) -> Option<&str> {
        None
    }

    fn expand(&self, request: &ExpansionRequest<'_>) -> Result<Expansion> {
        let parsed = text::parse(request.query);
        let wanted =
            parsed.terms.iter().chain(&parsed.phrases).map(String::as_str).collect::<Vec<_>>().join(" ");
        let all = words(&wanted);
        let telling: Vec<&str> = all.iter().map(String::as_str).filter(|w| !is_function_word(w)).collect();
        let keywords = if telling.is_empty() { all.join(" ") } else { telling.join(" ") };
        let seen = Seen::of(request.feedback);
        let with = |more: Vec<String>| (!more.is_empty()).then(|| format!("{keywords} {}", more.join(" ")));
        let spelled = with(spellings(&all, &seen));
        let long = long_forms(&wanted, request.feedback);
        let acronyms = with(long.clone());
        let related = with(seen.related(&all));
        let mut lexical = vec![keywords.clone()];
        lexical.extend(spelled.into_iter().chain(acronyms).chain(related));
        let mut vector = vec![keywords];
        if !long.is_empty() {
            vector.push(format!("{wanted} ({})", long.join(", ")));
        }
        vector.retain(|variant| folded(variant) != folded(&wanted));
        Ok(Expansion { lexical_queries: lexical, vector_queries: vector, hyde: None, notes: None })
    }
}

/// The words of a text, normalised, joined compounds as they are typed; runs of CJK as they stand.
fn words(text: &str) -> Vec<String> {
    text::segments(text).into_iter().map(|s| text::normalize(&text[s.start..s.end])).collect()
}

/// The words of the passages found first, by their folded form.
struct Seen {
    /// Folded → as written, and in how many passages.
    words: HashMap<String, (String, usize)>,
}

impl Seen {
    fn of(passages: &[String]) -> Self {
        let mut found: HashMap<String, (String, usize)> = HashMap::new();
        for passage in passages {
            let distinct: BTreeMap<String, String> = text::segments(passage)
                .into_iter()
                .filter(|segment| segment.tail.is_none())
                .flat_map(|segment| segment.joined.into_iter().chain(segment.parts))
                .map(|word| (fold(&word), word))
                .collect();
            for (folded, word) in distinct {
                found.entry(folded).or_insert((word, 0)).1 += 1;
            }
        }
        Self { words: found }
    }

    fn get(&self, word: &str) -> Option<&str> {
        self.words.get(&fold(word)).map(|(written, _)| written.as_str())
    }

    /// Telling words that most of the passages have and the query has not.
    fn related(&self, query: &[String]) -> Vec<String> {
        let known: BTreeSet<String> = query.iter().map(|word| fold(word)).collect();
        let mut found: Vec<(&usize, &String)> = self
            .words
            .iter()
            .filter(|(folded, (word, count))| {
                *count > 1
                    && word.chars().count() >= SHORTEST_PART
                    && word.chars().all(char::is_alphabetic)
                    && !is_function_word(word)
                    && !known.contains(*folded)
            })
            .map(|(_, (word, count))| (count, word))
            .collect();
        found.sort_by(|a, b| b.0.cmp(a.0).then(b.1.len().cmp(&a.1.len())).then(a.1.cmp(b.1)));
        found.into_iter().take(RELATED).map(|(_, word)| word.clone()).collect()
    }
}

/// Other spellings of the query's words that the passages have: `ue` for `ü`, compounds apart and together.
fn spellings(query: &[String], seen: &Seen) -> Vec<String> {
    let mut found = Vec::new();
    for (at, word) in query.iter().enumerate() {
        let plain = fold(word);
        let umlauts = [("ae", "a"), ("oe", "o"), ("ue", "u")];
        let narrow = umlauts.iter().fold(plain.clone(), |word, (wide, letter)| word.replace(wide, letter));
        // Folding makes `u` of `ü`; without the umlaut it is another word.
        let umlaut = seen.get(&narrow).filter(|word| word.contains(['ä', 'ö', 'ü']));
        let wide = fold(&word.replace('ä', "ae").replace('ö', "oe").replace('ü', "ue"));
        let other = [umlaut.filter(|_| narrow != plain), seen.get(&wide).filter(|_| wide != plain)];
        found.extend(other.into_iter().flatten().map(str::to_string));
        found.extend(parts(&plain, seen).into_iter().flatten());
        if let Some(next) = query.get(at + 1) {
            found.extend(seen.get(&format!("{word}{next}")).map(str::to_string));
        }
    }
    let mut once = BTreeSet::new();
    found.retain(|word| !query.contains(word) && once.insert(word.clone()));
    found
}

/// The two words of the passages that make the compound `word`.
fn parts(word: &str, seen: &Seen) -> Option<[String; 2]> {
    let boundaries = word.char_indices().map(|(at, _)| at).skip(SHORTEST_PART);
    boundaries.filter(|&at| word[at..].chars().count() >= SHORTEST_PART).find_map(|at| {
        let (head, tail) = word.split_at(at);
        let tail = seen.get(tail)?;
        let heads = JOINTS.iter().filter_map(|joint| head.strip_suffix(joint));
        let head =
            heads.filter(|head| head.chars().count() >= SHORTEST_PART).find_map(|head| seen.get(head))?;
        Some([head.to_string(), tail.to_string()])
    })
}

/// What the query's abbreviations stand for, and abbreviations of what it names in full, by the passages.
fn long_forms(query: &str, passages: &[String]) -> Vec<String> {
    let asked = format!(" {} ", folded(query));
    let has = |text: &str| asked.contains(&format!(" {} ", folded(text)));
    let mut found: Vec<String> = Vec::new();
    for (short, long) in passages.iter().map(String::as_str).chain([query]).flat_map(acronyms) {
        let missing = match (has(&short), has(&long)) {
            (true, false) => long,
            (false, true) => short,
            _ => continue,
        };
        if !found.iter().any(|known| folded(known) == folded(&missing)) {
            found.push(missing);
        }
    }
    found.truncate(2);
    found
}

/// Abbreviations that a text explains in brackets, `long form (LF)` or `LF (long form)`, each with its long form.
fn acronyms(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (open, _) in text.match_indices('(') {
        let Some(inside) = text[open + 1..].split_once(')').map(|(inside, _)| inside.trim()) else { break };
        let line = text[..open].rfind('\n').map_or(0, |at| at + 1);
        let before = text[line..open].trim_end();
        if is_acronym(inside) {
            let most = 2 * inside.chars().count();
            let start = before.rmatch_indices(' ').nth(most - 1).map_or(0, |(at, _)| at + 1);
            found.extend(
                long_form(inside, &before[start..]).map(|long| (inside.to_string(), long.to_string())),
            );
        } else {
            let last = before.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            if is_acronym(last) {
                found.extend(long_form(last, inside).map(|long| (last.to_string(), long.to_string())));
            }
        }
    }
    found
}

fn is_acronym(word: &str) -> bool {
    let count = word.chars().count();
    (2..=8).contains(&count)
        && word.chars().all(char::is_alphanumeric)
        && word.chars().filter(|c| c.is_uppercase()).count() >= 2
}

/// The end of `text` that `short` abbreviates: its letters occur there in order, the first one at the beginning of a
/// word. Schwartz and Hearst, *A Simple Algorithm for Identifying Abbreviation Definitions*, PSB 2003.
fn long_form<'a>(short: &str, text: &'a str) -> Option<&'a str> {
    let equal = |a: char, b: char| a.to_lowercase().eq(b.to_lowercase());
    let mut rest = text;
    let letters: Vec<char> = short.chars().collect();
    for (place, &letter) in letters.iter().enumerate().rev() {
        loop {
            let (at, c) = rest.char_indices().next_back()?;
            rest = &rest[..at];
            let begins = rest.chars().next_back().is_none_or(|before| !before.is_alphanumeric());
            if equal(c, letter) && (place > 0 || begins) {
                break;
            }
        }
    }
    let long = text[rest.len()..].trim();
    (long.chars().count() > short.chars().count() + 2).then_some(long)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(query: &str, passages: &[&str]) -> Expansion {
        let feedback: Vec<String> = passages.iter().map(|text| (*text).to_string()).collect();
        let request = ExpansionRequest { feedback: &feedback, ..ExpansionRequest::new(query) };
        LexicalExpander.expand(&request).expect("rules cannot fail")
    }

    #[test]
    fn telling_words_remain() {
        let found = expand("Wie lange hält der Dieselvorrat bei voller Last?", &[]);
        assert_eq!(found.lexical_queries, ["hält dieselvorrat voller last"]);
        assert_eq!(found.vector_queries, ["hält dieselvorrat voller last"]);
        assert_eq!(expand("what is it", &[]).lexical_queries, ["what is it"]);
        assert_eq!(expand("drain -node", &[]).lexical_queries, ["drain"]);
    }

    #[test]
    fn spellings_are_those_of_the_passages() {
        let spelled = |query, passage| {
            let found = spellings(&words(query), &Seen::of(&[String::from(passage)]));
            found.join(" ")
        };
        assert_eq!(spelled("Kuendigung", "Die Kündigung gilt."), "kündigung");
        assert_eq!(spelled("Kündigung", "Kuendigung per Brief"), "kuendigung");
        assert_eq!(spelled("neue Steuer", "Die Steuer ist neu."), "");
        assert_eq!(spelled("Kündigungsfrist", "Kündigung mit einer Frist"), "kündigung frist");
        assert_eq!(spelled("data base load", "The database is slow."), "database");
        assert_eq!(spelled("hinterland", "the winter and the land"), "");
    }

    #[test]
    fn abbreviations_are_resolved_both_ways() {
        let passage =
            "Every service has a Recovery Point Objective (RPO).\nUSV (unterbrechungsfreie Stromversorgung)";
        assert_eq!(
            acronyms(passage),
            [
                ("RPO".to_string(), "Recovery Point Objective".to_string()),
                ("USV".to_string(), "unterbrechungsfreie Stromversorgung".to_string()),
            ]
        );
        let long = |query: &str| long_forms(query, &[passage.to_string()]).join(" ");
        assert_eq!(long("RPO of gold"), "Recovery Point Objective");
        assert_eq!(long("recovery point objective of gold"), "RPO");
        assert_eq!(long("RPO, the recovery point objective"), "");
        assert_eq!(long("objective"), "");
        for text in ["(", "()", "(RPO)", "a (see Section 4.2) b", "x (RPO", "(((ABC)))"] {
            assert_eq!(acronyms(text), [], "{text}");
        }
    }
}
