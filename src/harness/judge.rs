//! A language model that rates answers.
//!
//! A judge is a measuring instrument that has to be checked itself: before it may gate it has to agree with labelled
//! answers. Until then it informs: its scores are shown and kept out of every verdict.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::json;

use crate::corpus::{Answer, Passage};
use crate::error::{Error, ErrorKind, Result};
use crate::models::Generator;

use super::answers::{Answered, Asks};
use super::scorer::{Observed, Scored, Scorer};

mod labels;
mod prompt;

pub use labels::{Agreement, Label, Labelled};
use prompt::{Rated, Rating, rate};

/// Rates answers by relevance, groundedness and completeness, each from 0 to 1; the score is their mean.
///
/// The generator is opened, tried, and compared with the labels once a process, at the first score or in
/// [`Judge::prepare`]. Where there is none (none configured, no key, no answer from the server) the scores are
/// *skipped*, with the reason. Later failures, and answers that are no ratings, are errors and never a 0 that looks
/// measured. Clones share one judge.
///
/// ```
/// use rankgate::prelude::*;
/// use rankgate::models::{Generator, ScriptedGenerator};
/// # fn labels() -> Vec<Labelled> { Vec::new() }
/// # fn my_answerer(question: &str) -> Result<Answer> { Ok(Answer::default()) }
/// # let mut suite = Suite::default();
/// let judge = Judge::new(|| {
///     let lenient = r#"{"reason": "fine", "relevance": 1, "groundedness": 1, "completeness": 1}"#;
///     let generator = ScriptedGenerator::new("lenient", move |_| Ok(lenient.to_string()));
///     Ok(Some(std::sync::Arc::new(generator) as std::sync::Arc<dyn Generator>))
/// });
/// let judge = judge.calibrated(labels(), 0.6);
/// suite
///     .eval("ask")
///     .cases(|| vec![Example::new("q1", "What is the notice period?")])
///     .subject(|case, _| my_answerer(case.input))
///     .score(judge.scorer(|_| &[]));
/// ```
#[derive(Clone)]
pub struct Judge {
    open: Arc<Open>,
    labels: Arc<[Labelled]>,
    needed: f64,
    evidence: usize,
    timeout: Duration,
    state: Arc<OnceLock<State>>,
}

type Open = dyn Fn() -> Result<Option<Arc<dyn Generator>>> + Send + Sync;

/// What became of the generator.
enum State {
    Ready { generator: Arc<dyn Generator>, agreement: Option<Agreement>, informs: Option<String> },
    Absent(String),
    Broken(String),
}

impl Judge {
    /// A judge over the generator that `open` returns; with `None` there is none. It informs until it is
    /// [`calibrated`](Judge::calibrated).
    pub fn new(open: impl Fn() -> Result<Option<Arc<dyn Generator>>> + Send + Sync + 'static) -> Self {
        Self {
            open: Arc::new(open),
            labels: Arc::new([]),
            needed: f64::INFINITY,
            evidence: 6000,
            timeout: Duration::from_secs(60),
            state: Arc::default(),
        }
    }

    /// Lets the judge gate if its ratings agree with `labels` to a Cohen's kappa of `kappa` in every dimension; else
    /// it informs.
    #[must_use]
    pub fn calibrated(self, labels: Vec<Labelled>, kappa: f64) -> Self {
        Self { labels: labels.into(), needed: kappa, state: Arc::default(), ..self }
    }

    /// How many bytes of the passages the judge is shown, shared evenly among them: 6,000 unless set. A model with a
    /// context of 2,048 tokens takes about 1,500.
    #[must_use]
    pub fn evidence(self, bytes: usize) -> Self {
        Self { evidence: bytes, state: Arc::default(), ..self }
    }

    /// How long one rating may take: 60 seconds unless set.
    #[must_use]
    pub fn timeout(self, limit: Duration) -> Self {
        Self { timeout: limit, state: Arc::default(), ..self }
    }

    /// Opens, tries and calibrates the judge now. Belongs into the eval's [`setup`](super::Eval::setup), which has
    /// no time limit: rating the labels takes as long as rating as many cases. A judge that is not there fails
    /// nothing here; its scores say so.
    pub fn prepare(&self) {
        self.state();
    }

    /// How far the judge agrees with its labels; `None` without labels and where there is no judge.
    pub fn agreement(&self) -> Option<&Agreement> {
        match self.state() {
            State::Ready { agreement, .. } => agreement.as_ref(),
            State::Absent(_) | State::Broken(_) => None,
        }
    }

    /// The score `judge`. `topics` are what the answer should mention, as for
    /// [`topic_coverage`](super::topic_coverage), or none.
    pub fn scorer<C: Asks, O: Answered>(
        &self,
        topics: impl for<'a> Fn(&'a C) -> &'a [Vec<String>] + Send + Sync + 'static,
    ) -> Scorer<C, O> {
        let judge = self.clone();
        Scorer::new("judge", move |seen: &Observed<'_, C, O>| {
            judge.judge(seen.case.question(), seen.output.answer(), topics(seen.case))
        })
    }

    /// What [`Judge::scorer`] says of one answer. Skipped when no answer was given.
    pub fn judge(&self, question: &str, answer: &Answer, topics: &[Vec<String>]) -> Scored {
        let (generator, informs) = match self.state() {
            State::Absent(why) => return Scored::skipped(format!("no judge: {why}")),
            State::Broken(why) => return Scored::Failed(why.clone()),
            State::Ready { generator, informs, .. } => (generator, informs),
        };
        if let Some(reason) = &answer.abstained {
            return Scored::skipped(format!("no answer was given: {reason}"));
        }
        let rating = match self.rate(&**generator, question, answer, topics) {
            Ok(rating) => rating,
            Err(error) => return Scored::Failed(error.report()),
        };
        let detail = json!({
            "relevance": rating.relevance, "groundedness": rating.groundedness,
            "completeness": rating.completeness, "reason": rating.reason,
            "judge": generator.name(), "fingerprint": generator.fingerprint(), "prompt": prompt::VERSION,
        });
        match informs {
            Some(why) => Scored::Informs { value: rating.mean(), detail, why: why.clone() },
            None => Scored::Value(rating.mean(), detail),
        }
    }

    fn rate(
        &self,
        generator: &dyn Generator,
        question: &str,
        answer: &Answer,
        topics: &[Vec<String>],
    ) -> Result<Rating> {
        rate(generator, &Rated { question, answer, topics }, self.evidence, self.timeout)
    }

    fn state(&self) -> &State {
        self.state.get_or_init(|| match (self.open)() {
            Ok(None) => State::Absent("none is configured".into()),
            Ok(Some(generator)) => self.try_out(generator).unwrap_or_else(|error| gone(&error)),
            Err(error) => gone(&error),
        })
    }

    /// Rates the labelled answers, or one of no matter, to see that the generator answers.
    fn try_out(&self, generator: Arc<dyn Generator>) -> Result<State> {
        let rate = |question: &str, answer: &Answer| {
            match self.rate(&*generator, question, answer, &[]) {
                Ok(rating) => Ok(Some(rating)),
                // It is there, and what it says cannot be read.
                Err(error) if error.kind() == ErrorKind::Model => Ok(None),
                Err(error) => Err(error),
            }
        };
        if self.labels.is_empty() {
            rate("Is it there?", &trial_answer())?;
            let informs = Some("it was not compared with labelled answers".to_string());
            return Ok(State::Ready { generator: Arc::clone(&generator), agreement: None, informs });
        }
        let ratings = self.labels.iter().map(|labelled| rate(&labelled.question, &labelled.to_answer()));
        let ratings = ratings.collect::<Result<Vec<_>>>()?;
        let agreement = Agreement::new(&self.labels, &ratings);
        let informs = agreement.shortfall(self.needed);
        Ok(State::Ready { generator: Arc::clone(&generator), agreement: Some(agreement), informs })
    }
}

/// What an error at the set-up makes of the judge: one that cannot be reached here is absent, anything else is a
/// mistake to be seen.
fn gone(error: &Error) -> State {
    use ErrorKind as Kind;
    match error.kind() {
        Kind::Access | Kind::Network | Kind::Timeout | Kind::NotFound | Kind::Busy => {
            State::Absent(error.report())
        }
        _ => State::Broken(error.report()),
    }
}

fn trial_answer() -> Answer {
    let passage = Passage { text: "It is there.".into(), ..Passage::default() };
    Answer { text: "Yes. [1]".into(), passages: vec![passage], ..Answer::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{Prompt, ScriptedGenerator};
    use serde_json::Value;

    fn labels() -> Vec<Labelled> {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/judge.json");
        Labelled::read(&path).expect("can be read")
    }

    fn ratings(relevance: f64, groundedness: f64, completeness: f64) -> String {
        json!({"reason": "", "relevance": relevance, "groundedness": groundedness, "completeness": completeness})
            .to_string()
    }

    fn judge(script: impl Fn(&Prompt) -> Result<String> + Send + Sync + 'static) -> Judge {
        let generator: Arc<dyn Generator> = Arc::new(ScriptedGenerator::new("scripted", script));
        Judge::new(move || Ok(Some(Arc::clone(&generator)))).calibrated(labels(), 0.6)
    }

    /// What the labels say of the answer in a prompt, on a good day.
    fn as_labelled(prompt: &Prompt) -> String {
        let document: Value = serde_json::from_str(&prompt.user).expect("is JSON");
        let labels = labels();
        let same = |l: &&Labelled| document["answer"] == *l.answer && document["question"] == *l.question;
        let Some(labelled) = labels.iter().find(same) else { return ratings(1.0, 0.5, 0.0) };
        let rating = |label| if label == Label::Good { 0.75 } else { 0.25 };
        ratings(rating(labelled.relevance), rating(labelled.groundedness), rating(labelled.completeness))
    }

    fn scored(judge: &Judge) -> Scored {
        judge.judge("When?", &trial_answer(), &[])
    }

    #[test]
    fn a_judge_that_agrees_with_the_labels_gates() {
        let judge = judge(|prompt| Ok(as_labelled(prompt)));
        let agreement = judge.agreement().expect("has labels");
        assert_eq!((agreement.answers, agreement.unreadable), (labels().len(), 0));
        assert_eq!([agreement.relevance, agreement.groundedness, agreement.completeness], [Some(1.0); 3]);
        match scored(&judge) {
            Scored::Value(value, detail) => {
                assert_eq!(value, 0.5);
                assert_eq!((&detail["groundedness"], &detail["prompt"]), (&json!(0.5), &json!("judge-v1")));
            }
            other => panic!("{other:?}"),
        }
        let abstained = Answer { abstained: Some("no evidence".into()), ..Answer::default() };
        assert!(matches!(judge.judge("When?", &abstained, &[]), Scored::Skipped(_)));
    }

    #[test]
    fn a_judge_that_does_not_agree_informs_and_says_how_far_off_it_is() {
        let informs = |judge: Judge| match scored(&judge) {
            Scored::Informs { value, why, .. } => (value, why),
            other => panic!("{other:?}"),
        };
        let (value, why) = informs(judge(|_| Ok(ratings(1.0, 1.0, 1.0))));
        assert_eq!((value, why.as_str()), (1.0, "kappa 0.00 < 0.60 (relevance, 29 labelled answers)"));
        // Good but for one dimension.
        let blind = judge(|prompt| {
            let mut rating: Value = serde_json::from_str(&as_labelled(prompt)).expect("is JSON");
            rating["groundedness"] = json!(1);
            Ok(rating.to_string())
        });
        assert!(informs(blind).1.starts_with("kappa 0.00 < 0.60 (groundedness"));
        let wrong = judge(|prompt| {
            Ok(as_labelled(prompt).replace("0.75", "x").replace("0.25", "0.75").replace('x', "0.25"))
        });
        assert!(informs(wrong).1.contains("kappa -"), "it is right about what is bad, and calls it good");
        let unlabelled =
            Judge::new(|| Ok(Some(Arc::new(ScriptedGenerator::new("s", |_| Ok(ratings(1.0, 1.0, 1.0)))))));
        assert_eq!(informs(unlabelled).1, "it was not compared with labelled answers");
        let one_class = labels().into_iter().filter(|l| l.relevance == Label::Good).collect();
        let judge = judge(|_| Ok(ratings(1.0, 1.0, 1.0))).calibrated(one_class, 0.6);
        assert!(informs(judge).1.contains("relevance says nothing"));
    }

    #[test]
    fn what_is_no_rating_is_an_error_and_no_zero() {
        for (answer, words) in [
            ("I like it.".to_string(), "answered what is no rating"),
            (ratings(1.0, 1.0, 1.0).replacen("1.0", "NaN", 1), "answered what is no rating"),
            (ratings(1.0, 1.5, 1.0), "rates groundedness 1.5"),
        ] {
            let judge = judge(move |_| Ok(answer.clone()));
            assert_eq!(judge.agreement().map(|a| a.unreadable), Some(labels().len()));
            let said = scored(&judge);
            assert!(
                matches!(&said, Scored::Failed(why) if why.contains(words) && why.contains("`scripted`")),
                "{said:?}"
            );
        }
    }

    #[test]
    fn a_judge_that_is_not_there_is_skipped_and_one_that_breaks_later_fails() {
        let absent = |why: &Scored| matches!(why, Scored::Skipped(why) if why.starts_with("no judge: "));
        assert!(absent(&scored(&Judge::new(|| Ok(None)))));
        for kind in [ErrorKind::Access, ErrorKind::Network, ErrorKind::Timeout] {
            assert!(absent(&scored(&judge(move |_| Err(Error::new(kind, "nobody there"))))), "{kind:?}");
            assert!(absent(&scored(&Judge::new(move || Err(Error::new(kind, "no key"))))), "{kind:?}");
        }
        let mistaken = scored(&Judge::new(|| Err(Error::usage("no preset `smal`"))));
        assert!(matches!(mistaken, Scored::Failed(why) if why.contains("smal")));
        let later = judge(|prompt| match prompt.user.contains("It is there.") {
            true => Err(Error::new(ErrorKind::Network, "the line broke")),
            false => Ok(as_labelled(prompt)),
        });
        assert!(matches!(scored(&later), Scored::Failed(why) if why.contains("the line broke")));
    }

    #[test]
    fn labelled_answers_are_checked() {
        let one = r#"{"id": "a", "question": "q", "passages": [{"docid": "d", "text": "t"}], "answer": "x",
            "relevance": "good", "groundedness": "bad", "completeness": "good"}"#;
        assert_eq!(Labelled::parse(&format!("[{one}]")).map(|l| l.len()).ok(), Some(1));
        for (text, words) in [
            ("[]".to_string(), "holds no labelled answer"),
            (format!("[{one}, {one}]"), "two labelled answers have the id `a`"),
            (format!("[{}]", one.replace("\"x\"", "\" \"")), "`a` has an empty text"),
            (format!("[{}]", one.replace("\"bad\"", "\"poor\"")), "unknown variant `poor`"),
            ("{".into(), "is no list of labelled answers"),
        ] {
            let error = Labelled::parse(&text).expect_err(&text).to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
