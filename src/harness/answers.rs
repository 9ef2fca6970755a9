//! Scorers over answers that cite passages. None needs a judge.
//!
//! An answerer that copies the question gets nothing for it: [`topic_coverage`] leaves out what the question says
//! already, and [`not_echo`] counts the sentences that say no more. One that abstains from everything gets nothing
//! from [`abstention`] and [`topic_coverage`].

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::json;

use crate::corpus::{Answer, JudgedQuery};
use crate::error::Result;
use crate::models::{Embedder, support};
use crate::text::{citations, fold, normalize, sentences, tokens, uncited};

use super::case::Example;
use super::scorer::{Observed, Scored, Scorer};

/// An output that has an answer.
pub trait Answered {
    /// The answer to score.
    fn answer(&self) -> &Answer;
}

impl Answered for Answer {
    fn answer(&self) -> &Answer {
        self
    }
}

/// A case that asks something.
pub trait Asks {
    /// The question or query, as it was typed.
    fn question(&self) -> &str;
}

impl Asks for JudgedQuery {
    fn question(&self) -> &str {
        &self.query.text
    }
}

impl<I: AsRef<str>, E> Asks for Example<I, E> {
    fn question(&self) -> &str {
        self.input.as_ref()
    }
}

/// The sentences of an answer; without any, what the scorer says instead.
fn written(answer: &Answer) -> std::result::Result<Vec<&str>, Scored> {
    if let Some(reason) = &answer.abstained {
        return Err(Scored::skipped(format!("no answer was given: {reason}")));
    }
    let sentences: Vec<&str> = sentences(&answer.text)
        .into_iter()
        .filter(|sentence| uncited(sentence).contains(char::is_alphanumeric))
        .collect();
    if sentences.is_empty() {
        return Err(Scored::Value(0.0, json!({"empty": true})));
    }
    Ok(sentences)
}

/// A scorer over the sentences of an answer. An abstention is skipped, an empty answer has 0.
fn over_sentences<C, O: Answered, R: Into<Scored>>(
    name: &str,
    score: impl Fn(&C, &Answer, &[&str]) -> R + Send + Sync + 'static,
) -> Scorer<C, O> {
    Scorer::new(name, move |seen: &Observed<'_, C, O>| {
        let answer = seen.output.answer();
        match written(answer) {
            Ok(sentences) => score(seen.case, answer, &sentences).into(),
            Err(instead) => instead,
        }
    })
}

/// The share of the answer's sentences that cite a passage there is. Skipped when no answer was given.
pub fn citations_present<C, O: Answered>() -> Scorer<C, O> {
    over_sentences("citations present", |_, answer, sentences| {
        let cites = |sentence: &&&str| citations(sentence).into_iter().any(|n| exists(answer, n));
        let cited = sentences.iter().filter(cites).count();
        let detail = json!({"sentences": sentences.len(), "cited": cited});
        Scored::Value(cited as f64 / sentences.len() as f64, detail)
    })
}

/// The share of the citations written that resolve to a passage; those that the answerer took out of the text count
/// as written. Skipped when none was written (which [`citations_present`] scores) and when no answer was given.
pub fn citations_valid<C, O: Answered>() -> Scorer<C, O> {
    Scorer::new("citations valid", |seen: &Observed<'_, C, O>| {
        let answer = seen.output.answer();
        if let Some(reason) = &answer.abstained {
            return Scored::skipped(format!("no answer was given: {reason}"));
        }
        let in_text = citations(&answer.text);
        let valid = in_text.iter().filter(|n| exists(answer, **n)).count();
        let written = in_text.len() + answer.invalid_citations;
        if written == 0 {
            return Scored::skipped("no citation was written");
        }
        let dangling: Vec<usize> = in_text.iter().copied().filter(|n| !exists(answer, *n)).collect();
        let detail = json!({
            "written": written, "valid": valid, "removed": answer.invalid_citations,
            "without_passage": dangling, "passages": answer.passages.len(),
        });
        Scored::Value(valid as f64 / written as f64, detail)
    })
}

fn exists(answer: &Answer, n: usize) -> bool {
    (1..=answer.passages.len()).contains(&n)
}

/// The share of the expected topics that the answer mentions. A topic is a list of acceptable forms (`rollback`,
/// `roll back`, `revert`), one of which has to occur, at the borders of words in scripts that have them; case,
/// accents and width make no difference.
///
/// A topic that the question names already shows nothing and is left out, so that a copy of the question scores 0.
/// An abstention mentions no topic. Skipped without topics, as for what cannot be answered.
///
/// ```
/// use rankgate::prelude::*;
/// # let mut suite = Suite::default();
/// let topics = vec![vec!["30 days".to_string(), "a month".to_string()]];
/// suite
///     .eval("ask")
///     .cases(move || vec![Example::new("q1", "What is the notice period?").expecting(topics)])
///     .subject(|case, _| my_answerer(case.input))
///     .score(topic_coverage(|case: &Example<&str, Vec<Vec<String>>>| &case.expected));
/// # fn my_answerer(question: &str) -> Result<Answer> { Ok(Answer::default()) }
/// ```
pub fn topic_coverage<C: Asks, O: Answered>(
    topics: impl for<'a> Fn(&'a C) -> &'a [Vec<String>] + Send + Sync + 'static,
) -> Scorer<C, O> {
    Scorer::new("topic coverage", move |seen: &Observed<'_, C, O>| {
        let topics = topics(seen.case);
        if topics.is_empty() {
            return Scored::skipped("no topic is expected");
        }
        let question = plain(seen.case.question());
        let telling: Vec<&Vec<String>> = topics.iter().filter(|topic| !mentions(&question, topic)).collect();
        if telling.is_empty() {
            return Scored::Failed("the question names every expected topic, so they show nothing".into());
        }
        let answer = seen.output.answer();
        let text = if answer.abstained.is_some() { String::new() } else { plain(&uncited(&answer.text)) };
        let missing: Vec<&String> = telling
            .iter()
            .filter(|topic| !mentions(&text, topic))
            .filter_map(|topic| topic.first())
            .collect();
        let covered = telling.len() - missing.len();
        let detail =
            json!({"topics": telling.len(), "missing": missing, "in_question": topics.len() - telling.len()});
        Scored::Value(covered as f64 / telling.len() as f64, detail)
    })
}

/// Case, width, accents and runs of spaces taken out.
fn plain(text: &str) -> String {
    let text = fold(&normalize(text));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether one of `forms` occurs in `text`, which is [`plain`].
fn mentions(text: &str, forms: &[String]) -> bool {
    forms.iter().any(|form| occurs(text, &plain(form)))
}

fn occurs(text: &str, form: &str) -> bool {
    let (Some(first), Some(last)) = (form.chars().next(), form.chars().next_back()) else { return false };
    text.match_indices(form).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + form.len()..].chars().next();
        is_border(before, first) && is_border(after, last)
    })
}

/// Whether a word may end between `inside`, the edge of a form, and what stands beside it.
fn is_border(beside: Option<char>, inside: char) -> bool {
    let joins = |c: char| c.is_alphanumeric() && !is_unspaced(c);
    !(joins(inside) && beside.is_some_and(joins))
}

/// Scripts without spaces between words, and Hangul, whose particles are written onto words.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1100}'..='\u{11ff}' | '\u{1780}'..='\u{17ff}'
        | '\u{2e80}'..='\u{31ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

/// The share of the answer's sentences that say something the question does not: with a word of their own. Catches
/// an answerer that copies or turns round the question. Skipped when no answer was given.
pub fn not_echo<C: Asks, O: Answered>() -> Scorer<C, O> {
    over_sentences("not an echo", |case: &C, _, sentences| {
        let question = words(case.question());
        let echoes: Vec<&&str> =
            sentences.iter().filter(|sentence| words(&uncited(sentence)).is_subset(&question)).collect();
        let share = 1.0 - echoes.len() as f64 / sentences.len() as f64;
        Scored::Value(share, json!({"sentences": sentences.len(), "echoes": echoes}))
    })
}

fn words(text: &str) -> HashSet<String> {
    tokens(text).into_iter().map(|token| fold(&token.text)).collect()
}

/// How far the answer is supported by what it cites: the mean over its sentences of
/// [`support`](crate::models::support) by the passages that the sentence cites. A sentence that cites none has 0.
/// Skipped when no answer was given.
///
/// `embedder` is asked at the first score; with `None` only words are compared.
pub fn grounded<C, O: Answered>(
    embedder: impl Fn() -> Result<Option<Arc<dyn Embedder>>> + Send + Sync + 'static,
) -> Scorer<C, O> {
    over_sentences("grounded", move |_, answer, sentences| -> Result<Scored> {
        let embedder = embedder()?;
        let mut total = 0.0;
        let mut details = Vec::new();
        for sentence in sentences {
            let cited = citations(sentence).into_iter().filter(|n| exists(answer, *n));
            let passages: Vec<&str> = cited.map(|n| answer.passages[n - 1].text.as_str()).collect();
            let claim = uncited(sentence);
            let score = match passages.is_empty() {
                true => 0.0,
                false => support(&claim, &passages, embedder.as_deref())?.score,
            };
            total += score;
            details.push(json!({"sentence": sentence, "score": score, "cited": passages.len()}));
        }
        Ok(Scored::Value(total / sentences.len() as f64, json!(details)))
    })
}

/// 1 when the answerer answers what can be answered and abstains from the rest, else 0.
pub fn abstention<C, O: Answered>(answerable: impl Fn(&C) -> bool + Send + Sync + 'static) -> Scorer<C, O> {
    Scorer::new("abstention", move |seen: &Observed<'_, C, O>| {
        let answer = seen.output.answer();
        let answered = answer.abstained.is_none() && !answer.text.trim().is_empty();
        let answerable = answerable(seen.case);
        let right = if answerable { answered } else { answer.abstained.is_some() };
        let detail = json!({"answerable": answerable, "abstained": answer.abstained});
        Scored::Value(f64::from(u8::from(right)), detail)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::Passage;
    use crate::harness::scorer::tests::run;
    use crate::models::HashEmbedder;
    use std::time::Duration;

    type Topics = Vec<Vec<String>>;
    type Asked = Example<&'static str, Topics>;

    const QUESTION: &str = "What is the notice period for customer contracts?";

    fn expecting(topics: &[&[&str]]) -> Asked {
        let forms = |topic: &&[&str]| topic.iter().map(ToString::to_string).collect();
        Example::new("q", QUESTION).expecting(topics.iter().map(forms).collect())
    }

    fn answer(text: &str) -> Answer {
        let passages = [
            "Customer contracts end with a notice period of 30 days to the end of a month.",
            "The data centre is cooled by two chillers on the roof.",
        ];
        let passage = |text: &&str| Passage { text: text.to_string(), ..Passage::default() };
        Answer { text: text.into(), passages: passages.iter().map(passage).collect(), ..Answer::default() }
    }

    fn abstained() -> Answer {
        Answer { abstained: Some("no evidence".into()), ..answer("") }
    }

    /// The value; -1 when skipped.
    fn value(scorer: &Scorer<Asked, Answer>, case: &Asked, output: &Answer) -> f64 {
        match run(scorer, case, output, Duration::ZERO) {
            Scored::Value(value, _) => value,
            Scored::Skipped(_) => -1.0,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn citations_are_counted_by_sentence_and_by_passage() {
        let case = expecting(&[]);
        for (text, removed, present, valid) in [
            ("30 days [1]. To the end of a month. [1][2]", 0, 1.0, 1.0),
            ("30 days [1]. To the end of a month.", 0, 0.5, 1.0),
            ("30 days [7]. To the end of a month. [1]", 0, 0.5, 0.5),
            ("30 days [1].", 3, 1.0, 0.25),
            ("30 days.", 2, 0.0, 0.0),
            ("30 days.", 0, 0.0, -1.0),
            ("[0]", 0, 0.0, 0.0),
            ("", 0, 0.0, -1.0),
        ] {
            let output = Answer { invalid_citations: removed, ..answer(text) };
            assert_eq!(value(&citations_present(), &case, &output), present, "{text}");
            assert_eq!(value(&citations_valid(), &case, &output), valid, "{text}");
        }
        assert_eq!(value(&citations_present(), &case, &abstained()), -1.0);
        assert_eq!(value(&citations_valid(), &case, &abstained()), -1.0);
    }

    #[test]
    fn topics_are_found_in_any_form_at_the_borders_of_words() {
        let forms = |text: &str, form: &str| occurs(&plain(text), &plain(form));
        for (text, form) in [
            ("Roll-back, then ROLLBACK.", "rollback"),
            ("die Kündigungsfrist", "kundigungsfrist"),
            ("３０ days", "30 Days"),
            ("30\n  days", "30 days"),
            ("契約は三十日前に解約", "三十日"),
            ("기간은 30일입니다", "30일"),
            ("use c++", "c++"),
        ] {
            assert!(forms(text, form), "{form} in {text}");
        }
        for (text, form) in [("rollbacks", "rollback"), ("130 days", "30 days"), ("3.50", "50a"), ("x", "")] {
            assert!(!forms(text, form), "{form} in {text}");
        }
    }

    #[test]
    fn a_copy_of_the_question_covers_no_topic_and_says_nothing() {
        let case = expecting(&[&["notice period"], &["30 days", "thirty days"], &["end of a month"]]);
        let coverage = topic_coverage(|case: &Asked| &case.expected);
        for (text, covered, new) in [
            (QUESTION, 0.0, 0.0),
            ("The notice period for customer contracts [1]. What is the period? [1]", 0.0, 0.0),
            ("The question is: What is the notice period for customer contracts? [1]", 0.0, 1.0),
            ("Thirty days [1].", 0.5, 1.0),
            ("The notice period is 30 days to the end of a month. [1]", 1.0, 1.0),
            ("No.", 0.0, 1.0),
        ] {
            assert_eq!(value(&coverage, &case, &answer(text)), covered, "{text}");
            assert_eq!(value(&not_echo(), &case, &answer(text)), new, "{text}");
        }
        assert_eq!(value(&coverage, &case, &abstained()), 0.0, "an abstention covers nothing");
        let unanswerable = expecting(&[]);
        assert_eq!(value(&coverage, &unanswerable, &answer("30 days")), -1.0);
        let useless = expecting(&[&["notice"], &["customer contract", "contracts"]]);
        let scored = run(&coverage, &useless, &answer("30 days"), Duration::ZERO);
        assert!(
            matches!(&scored, Scored::Failed(why) if why.contains("names every expected topic")),
            "{scored:?}"
        );
    }

    #[test]
    fn an_answer_is_grounded_in_what_it_cites_and_in_nothing_else() {
        type Open = fn() -> Result<Option<Arc<dyn Embedder>>>;
        let embedders: [Open; 2] = [|| Ok(None), || Ok(Some(Arc::new(HashEmbedder::default())))];
        for embedder in embedders {
            let score = |text: &str| value(&grounded(embedder), &expecting(&[]), &answer(text));
            let right = score("The notice period of customer contracts is 30 days. [1]");
            assert!(right > 0.6, "{right}");
            let elsewhere = score("The notice period of customer contracts is 30 days. [2]");
            assert!(elsewhere < 0.3, "{elsewhere}");
            assert!(score("The notice period of customer contracts is 90 days. [1]") < 0.5);
            assert_eq!(score("The notice period of customer contracts is 30 days."), 0.0, "cites nothing");
            assert_eq!(score("The notice period of customer contracts is 30 days. [9]"), 0.0);
            let half = score("The notice period of customer contracts is 30 days. [1] Birds fly south.");
            assert!((half - right / 2.0).abs() < 1e-9, "{half}");
        }
        let broken = grounded::<Asked, Answer>(|| Err(crate::Error::usage("no model")));
        let scored = run(&broken, &expecting(&[]), &answer("30 days [1]"), Duration::ZERO);
        assert!(matches!(scored, Scored::Failed(why) if why.contains("no model")));
        assert_eq!(value(&broken, &expecting(&[]), &abstained()), -1.0);
    }

    #[test]
    fn abstaining_is_right_only_where_nothing_answers() {
        let right = abstention(|case: &Asked| !case.expected.is_empty());
        let (answerable, unanswerable) = (expecting(&[&["30 days"]]), expecting(&[]));
        for (output, of_answerable, of_unanswerable) in
            [(answer("30 days [1]"), 1.0, 0.0), (abstained(), 0.0, 1.0), (answer(" "), 0.0, 0.0)]
        {
            assert_eq!(value(&right, &answerable, &output), of_answerable);
            assert_eq!(value(&right, &unanswerable, &output), of_unanswerable);
        }
    }
}
