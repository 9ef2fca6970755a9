//! The answerer without a model: it quotes.

use std::collections::BTreeSet;

use tracing::info_span;

use super::evidence::{Evidence, Quote};
use super::question::Question;
use crate::corpus::Answer;
use crate::text::{sentences, telling};

/// Sentences of an answer at most.
const MOST: usize = 3;
/// The share of the best score from which on another sentence may be added.
const NEAR: f64 = 0.8;
/// A sentence with fewer telling words leans on the one before it.
const LEANS: usize = 4;

/// Quotes the sentence that answers best; the one before it, if it leans on that; and what covers words of the
/// question that they leave out.
pub(super) fn answer(question: &Question, evidence: &Evidence, answer: Answer) -> Answer {
    let chosen = choose(question, &evidence.quotes);
    let _span = info_span!("answer", answerer = answer.answerer, sentences = chosen.len()).entered();
    let mut text = String::new();
    let mut citations = BTreeSet::new();
    for quote in chosen {
        citations.insert(quote.passage + 1);
        for sentence in sentences(&quote.text) {
            if !text.is_empty() {
                // A row of a table has no stop: what follows must not become part of it.
                text.push(if sentence_ended(&text) { ' ' } else { '\n' });
            }
            text.push_str(&format!("{sentence} [{}]", quote.passage + 1));
        }
    }
    Answer { text, citations: citations.into_iter().collect(), ..answer }
}

/// Whether the last sentence of `text` is told from what follows on the same line.
fn sentence_ended(text: &str) -> bool {
    sentences(&format!("{text} Next.")).last().is_some_and(|last| *last == "Next.")
}

fn choose<'a>(question: &Question, quotes: &'a [Quote]) -> Vec<&'a Quote> {
    let mut ranked: Vec<&Quote> = quotes.iter().collect();
    ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
    let Some(&best) = ranked.first() else { return Vec::new() };
    let mut chosen = vec![best];
    if telling(&best.text).len() < LEANS {
        let before = |quote: &&Quote| quote.passage == best.passage && quote.place + 1 == best.place;
        chosen.extend(quotes.iter().find(before));
    }
    if best.text.ends_with([':', '：']) {
        let after = |quote: &&Quote| quote.passage == best.passage && quote.place > best.place;
        chosen.extend(quotes.iter().filter(after).take(MOST - chosen.len()));
    }
    for &quote in &ranked[1..] {
        let adds = question.words.keys().any(|word| {
            quote.words.contains(word) && !chosen.iter().any(|chosen| chosen.words.contains(word))
        });
        let known = chosen.iter().any(|chosen| chosen.text == quote.text);
        if chosen.len() < MOST && adds && !known && quote.score >= NEAR * best.score {
            chosen.push(quote);
        }
    }
    chosen.sort_by_key(|quote| (quote.passage, quote.place));
    chosen
}
