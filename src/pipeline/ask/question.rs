//! What a question asks for.

use std::collections::{BTreeMap, HashSet};

use super::super::query::Pipeline;
use super::super::request::Request;
use crate::error::Result;
use crate::text::{self, TellingWord, fold, telling};

/// A question with what the collection says of its words.
pub(super) struct Question {
    /// As it was asked, without what it excludes.
    pub text: String,
    /// Its telling words, each once, and how much each says: ln(1 + (N − df + 0.5) / (df + 0.5)).
    pub words: BTreeMap<TellingWord, f64>,
    /// Whether a number is asked for.
    pub wants_number: bool,
}

impl Question {
    pub(super) fn new(pipeline: &Pipeline, request: &Request) -> Result<Self> {
        let text = request.question();
        let parsed = text::parse(&text);
        let found = pipeline.index().lexical().search(&parsed, request.collection.as_deref(), 1)?;
        let known: BTreeMap<String, f64> = found
            .terms
            .iter()
            .flat_map(|term| telling(&term.term).into_iter().map(|word| (word.text, f64::from(term.idf))))
            .collect();
        // What the collection never heard of says most.
        let unknown = (2.0 * found.documents as f64 + 2.0).ln();
        let words = telling(&text).into_iter().map(|word| {
            let idf = known.get(&word.text).copied().unwrap_or(unknown);
            (word, idf)
        });
        Ok(Self { words: words.collect(), wants_number: wants_number(&text), text })
    }

    /// The share of the question's telling words, by what they say, that are among `words`.
    pub(super) fn covered(&self, words: &HashSet<TellingWord>) -> f64 {
        let total: f64 = self.words.values().sum();
        let found = self.words.iter().filter(|(word, _)| words.contains(word)).map(|(_, idf)| idf);
        if total > 0.0 { found.sum::<f64>() / total } else { 0.0 }
    }
}

/// How a number is asked for in the languages of the project's fixtures, folded; what follows may be an ending.
const HOW_MANY: &[&str] = &[
    "how many",
    "how much",
    "how long",
    "how often",
    "how old",
    "how far",
    "how fast",
    "how large",
    "how high",
    "how soon",
    "when",
    "what year",
    "which year",
    "what percent",
    "what number",
    "what time",
    "wie viel",
    "wieviel",
    "wie lange",
    "wie oft",
    "wie hoch",
    "wie alt",
    "wie weit",
    "wie gross",
    "wie schnell",
    "wann",
    "combien",
    "quand",
    "quelle heure",
    "quel pourcentage",
    "cuanto",
    "cuanta",
    "cuando",
    "que ano",
    "quanto",
    "quanti",
    "quante",
    "quanta",
    "quando",
];
/// The same for scripts without spaces.
const HOW_MANY_UNSPACED: &[&str] = &[
    "多少",
    "几",
    "多久",
    "多长",
    "何日",
    "何分",
    "何時",
    "何年",
    "何人",
    "何時間",
    "いくつ",
    "いくら",
    "いつ",
    "どのくらい",
];

fn wants_number(text: &str) -> bool {
    let words: String =
        fold(&text::normalize(text)).chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
    let spaced = format!(" {}", words.split_whitespace().collect::<Vec<_>>().join(" "));
    HOW_MANY.iter().any(|words| spaced.contains(&format!(" {words}")))
        || HOW_MANY_UNSPACED.iter().any(|words| text.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_for_numbers_are_known() {
        for text in
            ["How many?", "Seit wann gilt das?", "¿Cuántos días?", "保存多少天?", "何日間保存されますか"]
        {
            assert!(wants_number(text), "{text}");
        }
        for text in ["Who may do it?", "Somewhere", "Wer darf das?", ""] {
            assert!(!wants_number(text), "{text}");
        }
    }
}
