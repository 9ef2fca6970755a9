//! Expansions and answers made without a model, sound unless `FAULT` says otherwise: what their scorers catch.

use std::path::Path;
use std::sync::Arc;

use rankgate::corpus::{Answer, Expansion, Passage};
use rankgate::models::HashEmbedder;
use rankgate::prelude::*;

use crate::fixtures::{self, fault};

/// An answer's question, and topics; without a topic it cannot be answered.
type Asked = Example<String, Vec<Vec<String>>>;

/// The labelled answers that are whole, with what each has to mention.
const TOPICS: [(&str, &[&[&str]]); 10] = [
    ("en-copies-whole", &[&["35 days"], &["13 months"]]),
    ("en-token-whole", &[&["10 minutes"], &["ask again"]]),
    ("en-back-whole", &[&["1 percent", "1 %"], &["old pool", "previous pool"]]),
    ("de-diesel-whole", &[&["48 Stunden"], &["60 Prozent", "60 %"]]),
    ("de-credit-whole", &[&["25 %", "25 Prozent"]]),
    ("fr-journaux-whole", &[&["7 jours"], &["72 heures"]]),
    ("it-batterie-whole", &[&["cinque anni"], &["dodici"]]),
    ("es-429-whole", &[&["restringido"], &["24 horas"]]),
    ("ja-limit-whole", &[&["32 個"], &["20 個"]]),
    ("zh-failover-whole", &[&["十五秒"], &["最后一秒"]]),
];

fn labelled() -> Result<Vec<Labelled>> {
    Labelled::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/judge.json"))
}

fn asked() -> Result<Vec<Asked>> {
    let labelled = labelled()?;
    let question = |id: &str| {
        let found = labelled.iter().find(|labelled| labelled.id == id);
        found.map(|found| found.question.clone()).ok_or_else(|| Error::not_found(format!("no answer `{id}`")))
    };
    let mut cases = Vec::new();
    for (id, topics) in TOPICS {
        let topics: Vec<Vec<String>> =
            topics.iter().map(|forms| forms.iter().map(ToString::to_string).collect()).collect();
        cases.push(Example::new(id, question(id)?).expecting(topics));
    }
    cases.push(Example::new("unanswerable", "What does the moon weigh?".into()).expecting(Vec::new()));
    Ok(cases)
}

fn answer(case: &Asked) -> Result<Answer> {
    let labelled = labelled()?;
    let at = labelled.iter().position(|labelled| labelled.id == case.id());
    let (Some(at), fault) = (at, fault()) else {
        // An answerer that always answers copies what it was asked, too.
        let copied = fault() == "copied question";
        let reason = (!copied).then(|| "no passage says it".to_string());
        let text = if copied { case.input.clone() } else { String::new() };
        return Ok(Answer { text, abstained: reason, ..Answer::default() });
    };
    let mut answer = Answer {
        text: labelled[at].answer.clone(),
        passages: labelled[at].passages.clone(),
        answerer: "labelled".into(),
        ..Answer::default()
    };
    match fault.as_str() {
        "copied question" => answer.text = format!("{} [1]", case.input),
        "unsupporting citations" => {
            // Passages there are, of another answer.
            let other: &[Passage] = &labelled[(at + labelled.len() / 2) % labelled.len()].passages;
            answer.passages = other.iter().cycle().take(2).cloned().collect();
        }
        "dangling citations" => {
            answer.text = answer.text.replace("[1]", "[8]").replace("[2]", "[9]");
        }
        _ => {}
    }
    Ok(answer)
}

fn expansion(query: &JudgedQuery) -> Expansion {
    let query = &query.query.text;
    let variants = match fault().as_str() {
        "constant expansion" => ["database backup", "how do I restore a database backup?"].map(String::from),
        "degenerate expansion" => [query.clone(), query.to_uppercase()],
        _ => {
            let words: Vec<&str> = query.split_whitespace().rev().collect();
            [words.join(" ") + " guide", format!("{query}, step by step")]
        }
    };
    let [lexical, vector] = variants;
    Expansion { lexical_queries: vec![lexical], vector_queries: vec![vector], ..Expansion::default() }
}

fn queries() -> Result<Vec<JudgedQuery>> {
    let mut queries = fixtures::queries(|category| category == "same-language")?;
    queries.truncate(24);
    Ok(queries)
}

pub fn register(suite: &mut Suite) {
    let texts = || Ok(queries()?.into_iter().map(|query| query.query.text).collect());
    suite
        .eval("expansions")
        .cases(queries)
        .subject(|case, _| Ok::<_, Error>(expansion(case)))
        .score(expansion_valid())
        .score(has_lexical_variants())
        .score(has_vector_variants())
        .score(varied(texts, || Ok(Arc::new(HashEmbedder::default()))))
        .threshold(0.8);
    suite
        .eval("answers")
        .cases(asked)
        .subject(|case, _| answer(case))
        .score(citations_present())
        .score(citations_valid())
        // Of the labelled answers, in seven languages and by words alone: it stands at 0.79.
        .score(grounded(|| Ok(Some(Arc::new(HashEmbedder::default())))).at_least(0.7))
        .score(topic_coverage(|case: &Asked| &case.expected))
        .score(not_echo())
        .score(abstention(|case: &Asked| !case.expected.is_empty()))
        .threshold(0.8);
}
