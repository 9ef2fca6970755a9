//! Answers: passages are retrieved, weighed, quoted or put into words, and cited.
//!
//! ```text
//! question ─ query ─ passages ─ evidence ─┬─ answer ─ (verify) ─ answer with [n]
//!                                         └─ none
//! ```

mod evidence;
mod extractive;
mod frame;
mod generated;
mod passages;
mod question;

use std::time::Duration;

use tracing::field::Empty;
use tracing::info_span;

use super::query::Pipeline;
use super::request::Request;
use crate::corpus::{Answer, Passage};
use crate::error::{Error, Result};
use crate::models::support;
use crate::record::Tool;
use crate::text::{citations, sentences, uncited};
use crate::trace::Trace;
use question::Question;

/// From which support on a sentence of a verified answer may stay.
const SUPPORTED: f64 = 0.5;

/// Who writes an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Answerer {
    /// Quotes one to three sentences of the passages; needs no language model.
    #[default]
    Extractive,
    /// The pipeline's generator writes it.
    Generated,
}

/// One question, and how it is to be answered.
#[derive(Debug, Clone, PartialEq)]
pub struct AskRequest {
    /// What is searched for, how thoroughly, and how a generator draws its words; its limit is not used.
    pub request: Request,
    /// Who answers.
    pub answerer: Answerer,
    /// How many passages the answer may rest on, at least one.
    pub passages: usize,
    /// Whether every sentence must be supported by a passage that it cites; else there is no answer.
    pub verified: bool,
    /// Whether there is no answer when the passages lack the evidence. Otherwise the extractive answerer always
    /// answers, and a generator alone decides whether it can.
    pub evidence: bool,
    /// About how many tokens of passages the generator reads. With the rules and the answer, 1,100 fit into a context
    /// of 2,048.
    pub reads: usize,
    /// How long the generator may take.
    pub timeout: Duration,
}

impl AskRequest {
    /// `request` answered by quoting from five passages, or not at all when they lack the evidence.
    pub fn new(request: Request) -> Self {
        Self {
            request,
            answerer: Answerer::Extractive,
            passages: 5,
            verified: false,
            evidence: true,
            reads: 1_100,
            timeout: Duration::from_secs(120),
        }
    }

    /// The same question for `answerer`.
    #[must_use]
    pub fn answerer(mut self, answerer: Answerer) -> Self {
        self.answerer = answerer;
        self
    }

    /// The same question, and the answer is checked sentence by sentence.
    #[must_use]
    pub fn verified(mut self) -> Self {
        self.verified = true;
        self
    }
}

impl Pipeline {
    /// Answers a question from the passages that are found for it, with citations `[n]`.
    ///
    /// An answer that is missing is an answer too: [`Answer::abstained`] says why. Without an embedder, passages are
    /// found and weighed by their words alone. Fails like [`query`](Self::query); without passages to choose from
    /// (`passages` 0); and, for [`Answerer::Generated`], without a generator and when it does.
    pub fn ask(&self, ask: &AskRequest) -> Result<(Answer, Trace)> {
        if ask.passages == 0 {
            return Err(Error::usage("an answer needs at least one passage"));
        }
        if ask.answerer == Answerer::Generated && self.generator.is_none() {
            return Err(Error::usage("a generated answer needs a generator, and this pipeline has none")
                .with_hint("open it with one, or take the extractive answerer"));
        }
        let request = ask.request.clone().limit(ask.passages);
        let work = || {
            let (found, passages) = self.passages_for(&request)?;
            Ok((found, self.answer(ask, passages)?))
        };
        self.entry(Tool::Ask, &request, work).map(|(_, answer, trace)| (answer, trace))
    }

    /// Answers from these passages.
    fn answer(&self, ask: &AskRequest, passages: Vec<Passage>) -> Result<Answer> {
        let mut answer = Answer { passages, answerer: "extractive".into(), ..Answer::default() };
        if let (Answerer::Generated, Some(generator)) = (ask.answerer, &self.generator) {
            answer.answerer = generator.name().into();
        }
        if answer.passages.is_empty() {
            return Ok(abstained(answer, "no passage was found".into()));
        }
        let question = Question::new(self, &ask.request)?;
        let evidence = self.evidence(&question, &answer.passages)?;
        if ask.evidence && !evidence.enough() {
            return Ok(abstained(answer, "the passages found do not hold the answer".into()));
        }
        let answer = match ask.answerer {
            Answerer::Extractive => extractive::answer(&question, &evidence, answer),
            Answerer::Generated => self.generated(ask, &question, &evidence, answer)?,
        };
        if ask.verified && answer.abstained.is_none() { self.verify(answer) } else { Ok(answer) }
    }

    /// Takes the answer back when a sentence is not supported by a passage that it cites.
    fn verify(&self, answer: Answer) -> Result<Answer> {
        let span = info_span!("verify", sentences = Empty, supported = Empty, lowest = Empty).entered();
        let mut lowest: Option<(f64, &str)> = None;
        let all = sentences(&answer.text);
        let mut supported = 0;
        for &sentence in &all {
            let found = support(sentence, &cited(sentence, &answer.passages), self.embedder())?.score;
            supported += usize::from(found >= SUPPORTED);
            if lowest.is_none_or(|(score, _)| found < score) {
                lowest = Some((found, sentence));
            }
        }
        span.record("sentences", all.len());
        span.record("supported", supported);
        span.record("lowest", lowest.map(|(score, _)| score));
        let Some((_, sentence)) = lowest.filter(|(score, _)| *score < SUPPORTED) else { return Ok(answer) };
        let reason = if citations(sentence).is_empty() {
            "no passage is cited for"
        } else {
            "no cited passage supports"
        };
        let reason = format!("{reason} “{}”", uncited(sentence));
        Ok(abstained(answer, reason))
    }
}

/// The texts that `sentence` cites.
fn cited<'a>(sentence: &str, passages: &'a [Passage]) -> Vec<&'a str> {
    let found = citations(sentence).into_iter().filter_map(|n| passages.get(n.checked_sub(1)?));
    found.map(|passage| passage.text.as_str()).collect()
}

/// No answer, for this reason; the passages stay, to look at.
fn abstained(answer: Answer, reason: String) -> Answer {
    Answer { text: String::new(), citations: Vec::new(), abstained: Some(reason), ..answer }
}
