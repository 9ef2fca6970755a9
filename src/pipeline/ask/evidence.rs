//! What the passages say about the question, sentence by sentence, and whether that is enough to answer it.

use std::collections::HashSet;

use tracing::field::Empty;
use tracing::info_span;

use super::super::query::Pipeline;
use super::super::rerank::late_interaction;
use super::frame::without_citations;
use super::question::Question;
use crate::corpus::Passage;
use crate::error::Result;
use crate::models::{Embedder, TextRole, TokenVectors, UNRELATED};
use crate::text::{Line, TellingKind, TellingWord, language_of, sentences, telling, unwrapped};

/// What the question's words in a sentence add to its nearness. This and the two below make the best sentence hold
/// the answer of 126 of 144 English and 123 of 144 German questions on XQuAD, on which they were chosen.
const COVERED: f64 = 0.3;
/// What a number adds where one is asked for.
const NUMBER: f64 = 0.05;
/// What each place further down the list of passages takes.
const LATER: f64 = 0.02;

/// A sentence of a passage that could be quoted.
#[derive(Debug, Clone)]
pub(super) struct Quote {
    /// The passage's place in the list, from 0.
    pub passage: usize,
    /// The sentence's place in the passage, from 0; headings are not counted.
    pub place: usize,
    /// The byte of the passage at which its line begins.
    pub start: usize,
    /// As it stands, on one line, without marks of lists and tables around it.
    pub text: String,
    /// With the passage's title, the heading above it and the head of its table: what it is about.
    pub context: String,
    /// The telling words of text and context.
    pub words: HashSet<TellingWord>,
    /// How near it is to the question in meaning: 0 is as far as unrelated sentences, 1 is the question itself.
    pub near: f64,
    /// How well it answers; higher is better, comparable for one question.
    pub score: f64,
}

/// The sentences that could be quoted, in the order of the passages, and how sure an answer can be.
pub(super) struct Evidence {
    /// The sentences.
    pub quotes: Vec<Quote>,
    /// How likely they hold the answer.
    pub confidence: f64,
}

impl Evidence {
    /// Whether an answer is likelier right than not.
    pub(super) fn enough(&self) -> bool {
        self.confidence >= 0.5
    }
}

impl Pipeline {
    /// Weighs every sentence of the passages.
    pub(super) fn evidence(&self, question: &Question, passages: &[Passage]) -> Result<Evidence> {
        let span = info_span!(
            "evidence",
            sentences = Empty,
            covered = Empty,
            near = Empty,
            foreign = Empty,
            confidence = Empty,
            model = Empty
        );
        let _entered = span.enter();
        let mut quotes: Vec<Quote> =
            passages.iter().enumerate().flat_map(|(n, passage)| quotes(n, passage)).collect();
        if let Some(embedder) = self.embedder() {
            span.record("model", embedder.fingerprint());
            let contexts: Vec<&str> = quotes.iter().map(|quote| quote.context.as_str()).collect();
            let near = nearness(question, &contexts, embedder)?;
            quotes.iter_mut().zip(near).for_each(|(quote, near)| quote.near = near);
        }
        for quote in &mut quotes {
            let number = telling(&quote.text).iter().any(|word| word.kind == TellingKind::Number);
            let wanted = if question.wants_number && number { NUMBER } else { 0.0 };
            let late = LATER * quote.passage as f64;
            quote.score = quote.near + COVERED * question.covered(&quote.words) + wanted - late;
        }
        let covered = (0..passages.len()).map(|n| {
            let words =
                quotes.iter().filter(|q| q.passage == n).flat_map(|q| q.words.iter().cloned()).collect();
            question.covered(&words)
        });
        let covered = covered.fold(0.0, f64::max);
        let nearest = quotes.iter().max_by(|a, b| a.near.total_cmp(&b.near));
        let foreign = nearest.is_some_and(|quote| is_foreign(&question.text, &passages[quote.passage].text));
        let near = self.embedder().map(|_| nearest.map_or(0.0, |quote| quote.near));
        let confidence = if quotes.is_empty() { 0.0 } else { confidence(covered, near, foreign) };
        span.record("sentences", quotes.len());
        span.record("covered", covered);
        span.record("near", near);
        span.record("foreign", foreign);
        span.record("confidence", confidence);
        Ok(Evidence { quotes, confidence })
    }
}

/// Whether question and passage are plainly of two languages.
fn is_foreign(question: &str, passage: &str) -> bool {
    let (question, passage) = (language_of(question), language_of(passage));
    question.is_some() && passage.is_some() && question != passage
}

/// How likely the passages hold the answer, given the share of the question's words that one passage has, and the
/// nearness of the nearest sentence, if there is an embedder.
///
/// Logistic regressions on XQuAD with `multilingual-e5-small`: one question a paragraph of every second article,
/// with three of each article's five paragraphs in the index, in English and, for `foreign`, in German.
fn confidence(covered: f64, near: Option<f64>, foreign: bool) -> f64 {
    let x = match near {
        None => 9.6 * covered - 4.6,
        Some(near) if foreign => 20.0 * near - 8.3,
        Some(near) => 4.3 * covered + 25.0 * near - 15.2,
    };
    1.0 / (1.0 + (-x).exp())
}

/// Late interaction of the question with each of `texts`, on a scale on which unrelated sentences are 0 and the
/// question's own words 1: cosines of different models spread differently.
fn nearness(question: &Question, texts: &[&str], embedder: &dyn Embedder) -> Result<Vec<f64>> {
    let asked = embedder.embed_tokens(&[&question.text], TextRole::Query)?;
    let compare = |texts: &[&str]| -> Result<Vec<f64>> {
        let found: Vec<TokenVectors> = embedder.embed_tokens(texts, TextRole::Passage)?;
        let late = |other| asked.first().and_then(|asked| late_interaction(asked, other)).unwrap_or(0.0);
        Ok(found.iter().map(late).collect())
    };
    let far = compare(UNRELATED)?;
    let far = far.iter().sum::<f64>() / far.len() as f64;
    Ok(compare(texts)?
        .into_iter()
        .map(|late| ((late - far) / (1.0 - far).max(f64::EPSILON)).clamp(0.0, 1.0))
        .collect())
}

/// The sentences of passage number `n` that can be quoted.
fn quotes(n: usize, passage: &Passage) -> Vec<Quote> {
    let mut out: Vec<Quote> = Vec::new();
    let (mut heading, mut head, mut code) = ("", "", false);
    let lines = unwrapped(&passage.text);
    let row = |at: usize| lines.get(at).map(|line| line.text.as_str());
    for (at, Line { start, text: line }) in lines.iter().enumerate() {
        let ruled =
            |line: &str| line.starts_with('|') && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '));
        if line.starts_with("```") {
            code = !code;
        } else if line.starts_with('#') && !code {
            (heading, head) = (line.trim_start_matches(['#', ' ']), "");
        } else if line.starts_with('|') && row(at + 1).is_some_and(ruled) {
            head = line;
        } else if !ruled(line) {
            head = if line.starts_with('|') { head } else { "" };
            let whole = line.starts_with('|') || code;
            // Before it is parted: the stop of `1.` ends no sentence.
            let line = without_marks(line);
            for part in if whole { vec![line] } else { sentences(line) } {
                let text = without_citations(part);
                if !text.chars().any(char::is_alphanumeric) {
                    continue;
                }
                let context = [passage.title.as_str(), heading, head.trim_matches(['|', ' ']), &text];
                let context =
                    context.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n");
                let words = telling(&context).into_iter().collect();
                let place = out.len();
                out.push(Quote {
                    passage: n,
                    place,
                    start: *start,
                    text,
                    context,
                    words,
                    near: 0.0,
                    score: 0.0,
                });
            }
        }
    }
    out
}

/// A line without what makes it an item of a list or a row of a table.
fn without_marks(line: &str) -> &str {
    let line = line.trim_matches(['|', ' ']);
    let item = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let item = if item.len() < line.len() { item.strip_prefix(". ") } else { None };
    item.or_else(|| line.strip_prefix("- ")).or_else(|| line.strip_prefix("* ")).unwrap_or(line).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_lists_and_headings_give_whole_quotes() {
        let text = "## Classes\n| Class | Loss |\n|---|---|\n| gold | 15 minutes |\n\n1. Stop it. Then go [3].\n- last";
        let passage = Passage { title: "Policy".into(), text: text.into(), ..Passage::default() };
        let found = quotes(0, &passage);
        let texts: Vec<&str> = found.iter().map(|quote| quote.text.as_str()).collect();
        assert_eq!(texts, ["gold | 15 minutes", "Stop it.", "Then go (3).", "last"]);
        assert_eq!(found[0].context, "Policy\nClasses\nClass | Loss\ngold | 15 minutes");
    }
}
