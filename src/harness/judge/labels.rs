//! Labelled answers: what a judge has to agree with before it may gate.

use std::collections::HashSet;
use std::path::Path;

use serde::Deserialize;

use crate::corpus::{Answer, Passage};
use crate::error::{Error, Result};
use crate::metrics::agreement::cohen_kappa;

use super::prompt::Rating;

/// How a dimension of an answer is labelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Label {
    /// A judge should rate it 0.5 or more.
    Good,
    /// A judge should rate it lower.
    Bad,
}

/// An answer that was labelled by reading it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Labelled {
    /// Unique in its file.
    pub id: String,
    /// What was asked.
    pub question: String,
    /// What the answer may rest on.
    pub passages: Vec<Passage>,
    /// The answer, with citations.
    pub answer: String,
    /// Whether it addresses the question.
    pub relevance: Label,
    /// Whether all it states stands in the passages.
    pub groundedness: Label,
    /// Whether it has all that the passages say to the question.
    pub completeness: Label,
}

impl Labelled {
    /// Reads a JSON file of labelled answers. Fails, naming file and answer, when it is no such file, is empty, or
    /// has an id twice or an empty text.
    pub fn read(path: &Path) -> Result<Vec<Self>> {
        let text =
            std::fs::read_to_string(path).map_err(|e| Error::io("read the labelled answers", path, e))?;
        Self::parse(&text).map_err(|e| e.context(path.display()))
    }

    /// Reads labelled answers from JSON; errors are those of [`Labelled::read`] without the file's name.
    pub fn parse(text: &str) -> Result<Vec<Self>> {
        let labelled: Vec<Self> = serde_json::from_str(text)
            .map_err(|e| Error::input(format!("is no list of labelled answers: {e}")))?;
        if labelled.is_empty() {
            return Err(Error::input("holds no labelled answer"));
        }
        let mut ids = HashSet::new();
        for Self { id, question, answer, passages, .. } in &labelled {
            if !ids.insert(id) {
                return Err(Error::input(format!("two labelled answers have the id `{id}`")));
            }
            let texts = [question, answer].into_iter().chain(passages.iter().map(|passage| &passage.text));
            if texts.into_iter().any(|text| text.trim().is_empty()) {
                return Err(Error::input(format!("labelled answer `{id}` has an empty text")));
            }
        }
        Ok(labelled)
    }

    /// What a judge is shown.
    pub(super) fn to_answer(&self) -> Answer {
        Answer { text: self.answer.clone(), passages: self.passages.clone(), ..Answer::default() }
    }
}

/// How far a judge agrees with labels: Cohen's kappa over the answers, one a dimension. A rating of 0.5 or more is
/// `good`; one that could not be read agrees with neither label. `None` where kappa says nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Agreement {
    /// How many answers are labelled.
    pub answers: usize,
    /// For how many of them the judge gave no rating that can be read.
    pub unreadable: usize,
    /// Of relevance.
    pub relevance: Option<f64>,
    /// Of groundedness.
    pub groundedness: Option<f64>,
    /// Of completeness.
    pub completeness: Option<f64>,
}

impl Agreement {
    pub(super) fn new(labels: &[Labelled], ratings: &[Option<Rating>]) -> Self {
        let kappa = |label: fn(&Labelled) -> Label, rating: fn(&Rating) -> f64| {
            let labels: Vec<Option<Label>> = labels.iter().map(|labelled| Some(label(labelled))).collect();
            let good = |rating: f64| if rating >= 0.5 { Label::Good } else { Label::Bad };
            let ratings: Vec<Option<Label>> =
                ratings.iter().map(|r| r.as_ref().map(|r| good(rating(r)))).collect();
            cohen_kappa(&labels, &ratings)
        };
        Self {
            answers: labels.len(),
            unreadable: ratings.iter().filter(|rating| rating.is_none()).count(),
            relevance: kappa(|l| l.relevance, |r| r.relevance),
            groundedness: kappa(|l| l.groundedness, |r| r.groundedness),
            completeness: kappa(|l| l.completeness, |r| r.completeness),
        }
    }

    /// Why a judge with this agreement may not gate, if it needs at least `needed` in every dimension.
    pub(super) fn shortfall(&self, needed: f64) -> Option<String> {
        let dimensions = [
            ("relevance", self.relevance),
            ("groundedness", self.groundedness),
            ("completeness", self.completeness),
        ];
        if let Some((name, _)) = dimensions.iter().find(|(_, kappa)| kappa.is_none()) {
            return Some(format!(
                "its agreement on {name} says nothing: labels and ratings are of one class"
            ));
        }
        let known = dimensions.iter().filter_map(|(name, kappa)| Some((*name, (*kappa)?)));
        let (name, kappa) = known.reduce(|low, other| if other.1 < low.1 { other } else { low })?;
        let enough = kappa >= needed;
        (!enough)
            .then(|| format!("kappa {kappa:.2} < {needed:.2} ({name}, {} labelled answers)", self.answers))
    }
}
