//! What is looked up for a query, word by word.
//!
//! | typed | looked up | when no document has it |
//! |---|---|---|
//! | `deploys` | the word (⅓) and its stem (⅔) | known words like it (½): 1–2 letters off, else the longest common beginning |
//! | `real-time` | `realtime` (½) and `real time` side by side (½); besides, its parts (½) | its parts, each as a word |
//! | `DEC-0054` | the same without the parts: half an identifier is another one | its parts, each as a word |
//! | `数据库` | every pair of characters, and neighbouring pairs together (⅛) | |
//! | `動くと` | the same: a pair with hiragana counts ½, a pair of nothing else ¼ | |
//! | `猫` | every word or run in which it occurs | |

use std::collections::BTreeSet;

use crate::text::{Segment, Tokenizer, stem};

use super::{Layer, Reading};

/// The share of a word's weight that its exact form earns; its stem earns the rest. Inflection is mostly
/// noise, so that the stem says more, but a document with the very word is the better one of two.
const EXACT: f32 = 1.0 / 3.0;
/// Evidence that is only near to what was typed counts half.
const NEAR: f32 = 0.5;
/// What two overlapping pairs side by side add. Each has earned its own weight: more than a little would make a long
/// common string outweigh the rare words of a query.
const SIDE_BY_SIDE: f32 = 0.125;
/// What a pair is worth by how many of its characters are hiragana, which mostly writes particles and endings.
const HIRAGANA: [f32; 3] = [1.0, 0.5, 0.25];

/// One way in which a text may have been written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Form {
    /// A term of a layer.
    Term(Layer, String),
    /// Exact terms at these distances.
    Phrase(Vec<(u32, String)>),
    /// Any exact term that begins so.
    Prefix(String),
}

/// Forms that are counted together, as one, and what they earn.
#[derive(Debug, Clone)]
pub(super) struct Clue {
    pub(super) how: &'static str,
    pub(super) forms: Vec<Form>,
    pub(super) weight: f32,
}

impl Clue {
    fn new(how: &'static str, weight: f32, forms: Vec<Form>) -> Self {
        Self { how, forms, weight }
    }
}

/// One thing that a query asks for.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    /// Its name in statistics and explanations.
    pub(super) text: String,
    pub(super) clues: Vec<Clue>,
    /// Whether it is a word of the query; otherwise it only supports one.
    pub(super) counts: bool,
    /// What takes its place when no document has it.
    pub(super) instead: Instead,
    /// What supports it when some document has it.
    pub(super) support: Vec<Wanted>,
}

/// What takes the place of a word that no document has.
#[derive(Debug, Clone)]
pub(super) enum Instead {
    Nothing,
    Parts(Vec<String>),
    WordsLike,
}

/// The distinct things that `texts` ask for.
pub(super) fn wanted<'a>(texts: impl IntoIterator<Item = &'a String>, reading: &Reading) -> Vec<Wanted> {
    let mut seen = BTreeSet::new();
    let Reading { tokenizer, languages } = reading;
    let all = texts.into_iter().flat_map(|text| tokenizer.segments(text));
    let all = all.flat_map(|segment| of(segment, languages));
    all.filter(|wanted| seen.insert(wanted.text.clone())).collect()
}

fn of(segment: Segment, languages: &[String]) -> Vec<Wanted> {
    if segment.tail.is_some() {
        return of_run(segment.parts);
    }
    let whole = segment.parts.concat();
    if let Some(joined) = segment.joined {
        return vec![compound(joined, segment.parts, segment.identifier, languages)];
    }
    match segment.humps.into_iter().next() {
        Some(humps) if humps.len() > 1 && humps.concat() == whole => {
            vec![compound(whole, humps, true, languages)]
        }
        _ => vec![word(whole, languages)],
    }
}

/// A plain word.
pub(super) fn word(text: String, languages: &[String]) -> Wanted {
    let clues = vec![
        Clue::new("exact", EXACT, vec![Form::Term(Layer::Exact, text.clone())]),
        Clue::new("stem", 1.0 - EXACT, stems(&text, languages)),
    ];
    Wanted { text, clues, counts: true, instead: Instead::WordsLike, support: Vec::new() }
}

/// Known words in place of one that is not, given by their stems.
pub(super) fn words_like(text: &str, stems: BTreeSet<String>) -> Wanted {
    let forms = stems.into_iter().map(|stem| Form::Term(Layer::Stem, stem)).collect();
    supporting(text.to_owned(), vec![Clue::new("similar", NEAR, forms)])
}

fn supporting(text: String, clues: Vec<Clue>) -> Wanted {
    Wanted { text, clues, counts: false, instead: Instead::Nothing, support: Vec::new() }
}

fn stems(text: &str, languages: &[String]) -> Vec<Form> {
    let distinct: BTreeSet<String> = languages.iter().map(|language| stem(text, language)).collect();
    distinct.into_iter().map(|stem| Form::Term(Layer::Stem, stem)).collect()
}

fn compound(joined: String, parts: Vec<String>, identifier: bool, languages: &[String]) -> Wanted {
    // A document with the very spelling has both: it was indexed joined and in parts.
    let mut one = vec![Form::Term(Layer::Exact, joined.clone())];
    one.extend(stems(&joined, languages));
    let apart = match parts.len() {
        1 => Form::Term(Layer::Exact, joined.clone()),
        _ => Form::Phrase((0..).zip(parts.iter().cloned()).collect()),
    };
    let support = match identifier {
        true => Vec::new(),
        false => parts.iter().map(|part| part_of(part, languages)).collect(),
    };
    let clues = vec![Clue::new("joined", 0.5, one), Clue::new("apart", 0.5, vec![apart])];
    Wanted { text: joined, clues, counts: true, instead: Instead::Parts(parts), support }
}

fn part_of(part: &str, languages: &[String]) -> Wanted {
    let mut clues = word(part.to_owned(), languages).clues;
    clues.iter_mut().for_each(|clue| clue.weight *= NEAR);
    supporting(part.to_owned(), clues)
}

fn of_run(pairs: Vec<String>) -> Vec<Wanted> {
    let single = pairs.len() == 1 && pairs[0].chars().nth(1).is_none();
    let plain = |text: &String, form| Wanted {
        text: text.clone(),
        clues: vec![Clue::new("exact", HIRAGANA[hiragana(text)], vec![form])],
        counts: true,
        instead: Instead::Nothing,
        support: Vec::new(),
    };
    if single {
        return vec![plain(&pairs[0], Form::Prefix(pairs[0].clone()))];
    }
    let mut out: Vec<Wanted> =
        pairs.iter().map(|pair| plain(pair, Form::Term(Layer::Exact, pair.clone()))).collect();
    // A pair is a fragment of a word: two that overlap in the query and in the document are more than both.
    for (at, both) in pairs.windows(2).enumerate() {
        let form = Form::Phrase(vec![(0, both[0].clone()), (1, both[1].clone())]);
        let text = format!("{}{}", both[0], both[1].chars().last().unwrap_or_default());
        out[at].support.push(supporting(text, vec![Clue::new("side by side", SIDE_BY_SIDE, vec![form])]));
    }
    out
}

/// How many of the characters of a pair are hiragana.
fn hiragana(pair: &str) -> usize {
    pair.chars().filter(|c| matches!(c, '\u{3041}'..='\u{309f}')).count().min(2)
}

/// The forms of a text that has to occur as it is: a quoted phrase or an exclusion. None without words.
pub(super) fn verbatim(text: &str, tokenizer: Tokenizer) -> Vec<Form> {
    let mut phrase = Vec::new();
    let mut position = 0;
    let mut joined = None;
    let segments = tokenizer.segments(text);
    let alone = segments.len() == 1;
    for segment in segments {
        if let Some(tail) = segment.tail {
            let single = segment.parts.first() == Some(&tail);
            if single && alone {
                return vec![Form::Prefix(tail)];
            }
            // A single character has no term of its own inside a longer run: its place is left open.
            phrase.extend((position..).zip(segment.parts.into_iter().filter(|_| !single)));
            position = phrase.last().map_or(0, |&(last, _)| last + 1) + 1;
        } else if let (Some(whole), 1) = (&segment.joined, segment.parts.len()) {
            phrase.push((position, whole.clone()));
            position += 1;
        } else {
            joined = segment.joined.filter(|_| alone);
            let count = segment.parts.len() as u32;
            phrase.extend((position..).zip(segment.parts));
            position += count;
        }
    }
    let mut forms: Vec<Form> = joined.map(|joined| Form::Term(Layer::Exact, joined)).into_iter().collect();
    match phrase.len() {
        0 => {}
        1 => forms.extend(phrase.pop().map(|(_, word)| Form::Term(Layer::Exact, word))),
        _ => forms.push(Form::Phrase(phrase)),
    }
    forms
}
