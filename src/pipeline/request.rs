//! What a search is asked: a text, structured parts, a collection, a limit.

use std::time::Duration;

use crate::corpus::{Expansion, Mode, Query, QueryMode};
use crate::error::{Error, Result};
use crate::settings::{Fusion, Thoroughness};
use crate::text;

/// One search.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// What a person typed; goes to both lanes.
    pub text: String,
    /// Parts that go to one lane only.
    pub modes: Vec<QueryMode>,
    /// Only documents of this collection.
    pub collection: Option<String>,
    /// How many hits are wanted.
    pub limit: usize,
    /// How the lanes become one; `None` takes the setting.
    pub fusion: Option<Fusion>,
    /// Whether the head of the list may be reranked.
    pub rerank: bool,
    /// Whether links are followed from the best documents; `None` takes the setting.
    pub graph: Option<bool>,
    /// Whether hits carry the stretch of text that matched best.
    pub snippets: bool,
    /// How much work a hybrid search does; `None` takes the setting.
    pub thoroughness: Option<Thoroughness>,
    /// Whether the query is expanded, and by whom; `None` leaves it to the thoroughness and the pipeline.
    pub expand: Option<Expand>,
    /// An expansion that is known already: it is applied as it is, and nobody is asked for one.
    pub expansion: Option<Expansion>,
    /// The language of the text, if known.
    pub lang: Option<String>,
    /// How a model draws its answers.
    pub sampling: Sampling,
    /// How long an expansion may take; `None` takes the setting.
    pub expand_within: Option<Duration>,
}

/// Whether a query is expanded, and by whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expand {
    /// Not at all.
    Never,
    /// By rules.
    Lexical,
    /// By the pipeline's generator.
    Model,
}

/// How a model draws its answers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// 0 takes the likeliest answer every time.
    pub temperature: f32,
    /// Where drawing begins.
    pub seed: u64,
    /// Which execution of the same request this is: it draws its own answer.
    pub trial: u32,
}

impl Default for Sampling {
    fn default() -> Self {
        Self { temperature: 0.0, seed: 42, trial: 0 }
    }
}

impl Request {
    /// A request for ten hits of `text`, everything else as configured.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            modes: Vec::new(),
            collection: None,
            limit: 10,
            fusion: None,
            rerank: true,
            graph: None,
            snippets: false,
            thoroughness: None,
            expand: None,
            expansion: None,
            lang: None,
            sampling: Sampling::default(),
            expand_within: None,
        }
    }

    /// The same request for `limit` hits.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// The same request with this much work.
    #[must_use]
    pub fn thoroughness(mut self, level: Thoroughness) -> Self {
        self.thoroughness = Some(level);
        self
    }

    /// A request from parts as typed: `term: …`, `intent: …` and `hyde: …` go to their lane, everything else
    /// is joined to the text.
    ///
    /// Fails when nothing is asked, or when two hypothetical answers are given.
    ///
    /// ```
    /// use rankgate::pipeline::Request;
    /// let request = Request::parse(["how to roll back", "term: helm rollback"]).unwrap();
    /// assert_eq!((request.text.as_str(), request.modes.len()), ("how to roll back", 1));
    /// ```
    pub fn parse<S: AsRef<str>>(parts: impl IntoIterator<Item = S>) -> Result<Self> {
        let mut text = Vec::new();
        let mut modes = Vec::new();
        for part in parts {
            let part = part.as_ref();
            match structured(part) {
                Some(mode) => modes.push(mode),
                None => text.push(part.to_string()),
            }
        }
        let mut request = Self::new(text.join(" "));
        request.modes = modes;
        request.validate()?;
        Ok(request)
    }

    /// Checks what no lane could answer: an empty request, or two hypothetical answers.
    pub(super) fn validate(&self) -> Result<()> {
        if self.text.trim().is_empty() && self.modes.iter().all(|part| part.text.trim().is_empty()) {
            return Err(Error::usage("the query is empty").with_hint("say what to look for"));
        }
        if self.parts(Mode::Hyde).count() > 1 {
            return Err(Error::usage("the query has two `hyde:` parts")
                .with_hint("one hypothetical answer is enough"));
        }
        Ok(())
    }

    /// What is asked in words: the text, else the structured parts.
    pub(super) fn question(&self) -> String {
        if self.text.trim().is_empty() {
            self.modes.iter().map(|part| part.text.trim()).collect::<Vec<_>>().join(" ")
        } else {
            self.wanted()
        }
    }

    /// The text without what it excludes: a model would take an excluded word for a wish.
    pub(super) fn wanted(&self) -> String {
        let parsed = text::parse(&self.text);
        if parsed.excluded.is_empty() || parsed.is_empty() {
            return self.text.clone();
        }
        parsed.terms.iter().chain(&parsed.phrases).map(String::as_str).collect::<Vec<_>>().join(" ")
    }

    /// The texts of one structured mode.
    pub(super) fn parts(&self, mode: Mode) -> impl Iterator<Item = &str> {
        self.modes
            .iter()
            .filter(move |part| part.mode == mode)
            .map(|part| part.text.trim())
            .filter(|t| !t.is_empty())
    }
}

impl From<&Query> for Request {
    fn from(query: &Query) -> Self {
        let mut request = Self::new(&query.text);
        request.modes = query.modes.clone();
        request.collection = query.collection.clone();
        request.lang = query.lang.clone();
        request
    }
}

fn structured(part: &str) -> Option<QueryMode> {
    let (name, text) = part.split_once(':')?;
    let mode = match name.trim() {
        "term" => Mode::Term,
        "intent" => Mode::Intent,
        "hyde" => Mode::Hyde,
        _ => return None,
    };
    Some(QueryMode { mode, text: text.trim().to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_go_to_their_lane_and_other_colons_stay_text() {
        let request = Request::parse(["error: refused", "hyde: The port is closed.", "now"]).expect("parses");
        assert_eq!(request.text, "error: refused now");
        assert_eq!(request.parts(Mode::Hyde).collect::<Vec<_>>(), ["The port is closed."]);
    }

    #[test]
    fn nothing_asked_and_two_answers_are_refused() {
        assert!(Request::parse([" "]).is_err());
        assert!(Request::parse(["term:  "]).is_err());
        assert!(Request::parse(["hyde: a", "hyde: b"]).is_err());
    }
}
