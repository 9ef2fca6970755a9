//! Judges as they are met: on a server that refuses, and the local model against the labelled answers.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use rankgate::corpus::{Answer, Passage};
use rankgate::harness::{Judge, Label, Labelled, Scored};
use rankgate::models::Generator;

use crate::server::{Server, completion, generator, http, ok};

fn labels() -> Vec<Labelled> {
    Labelled::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/judge.json")).unwrap()
}

fn judge(generator: Arc<dyn Generator>) -> Judge {
    Judge::new(move || Ok(Some(Arc::clone(&generator)))).calibrated(labels(), 0.6)
}

fn scored(judge: &Judge) -> Scored {
    let passage = Passage { text: "The gate opens at six.".into(), ..Passage::default() };
    let answer = Answer { text: "At six. [1]".into(), passages: vec![passage], ..Answer::default() };
    judge.judge("When does the gate open?", &answer, &[])
}

#[test]
fn a_judge_that_cannot_be_reached_is_skipped_with_the_reason() {
    let refused = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/v1", listener.local_addr().unwrap())
    };
    let wants_a_key = Server::answering(http("401 Unauthorized", "", ""));
    for (generator, words, requests) in [
        (generator(&refused, |_| ()), "refuses the connection", 0),
        (wants_a_key.generator(|_| ()), "401 Unauthorized", 1),
        (
            wants_a_key.generator(|preset| preset.key_variable = Some("RANKGATE_NO_SUCH_KEY".into())),
            "RANKGATE_NO_SUCH_KEY is not set",
            1,
        ),
    ] {
        let judge = judge(generator);
        for _ in 0..2 {
            let said = scored(&judge);
            let skipped =
                matches!(&said, Scored::Skipped(why) if why.starts_with("no judge: ") && why.contains(words));
            assert!(skipped, "{said:?}");
        }
        assert_eq!(wants_a_key.requests().len(), requests, "it is tried once");
    }
}

#[test]
fn a_server_that_answers_at_random_informs_and_one_that_breaks_later_is_an_error() {
    let lenient = r#"{"reason": "good", "relevance": 1, "groundedness": 1, "completeness": 1}"#;
    let labelled = labels().len();
    let server = Server::start(move |_, before| {
        let whole = before <= labelled;
        crate::server::Does::Answers(if whole { ok(&completion(lenient)) } else { http("500 Fault", "", "") })
    });
    let judge = judge(server.generator(|_| ()));
    let first = scored(&judge);
    assert!(
        matches!(&first, Scored::Informs { why, .. } if why.starts_with("kappa 0.00 < 0.60")),
        "{first:?}"
    );
    let second = scored(&judge);
    assert!(matches!(&second, Scored::Failed(why) if why.contains("500")), "{second:?}");
}

/// Labels speak of the corpus as it is, in several languages, and both ways in every dimension.
#[test]
fn labelled_answers_rest_on_the_corpus() {
    let labels = labels();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/corpus");
    for labelled in &labels {
        for passage in &labelled.passages {
            let text = std::fs::read_to_string(corpus.join(&passage.docid)).unwrap();
            assert!(text.contains(&passage.text), "{}: {} has no such passage", labelled.id, passage.docid);
        }
        let cited = rankgate::text::citations(&labelled.answer);
        assert!(cited.iter().all(|n| (1..=labelled.passages.len()).contains(n)), "{}", labelled.id);
    }
    let languages: HashSet<&str> = labels.iter().filter_map(|l| l.id.split('-').next()).collect();
    assert!(languages.len() >= 5 && (20..=30).contains(&labels.len()), "{languages:?} {}", labels.len());
    for dimension in
        [|l: &Labelled| l.relevance, |l: &Labelled| l.groundedness, |l: &Labelled| l.completeness]
    {
        let good = labels.iter().filter(|l| dimension(l) == Label::Good).count();
        assert!((8..=labels.len() - 8).contains(&good), "{good} of {}", labels.len());
    }
}

/// Whether the local model may gate is for its kappa to say; that it answers in the form it is asked for is certain.
#[cfg(feature = "local-llm")]
fn hold_the_local_model_against(labels: Vec<Labelled>) {
    use rankgate::models;
    use rankgate::store::cache::Cache;

    if crate::models::pinned(models::catalogue::GENERATOR).is_none() {
        return;
    }
    // Kept beside what the evals computed: a rating takes some ten seconds, and does not change.
    let data = rankgate::store::history::data_dir(env!("CARGO_MANIFEST_DIR").as_ref());
    std::fs::create_dir_all(&data).unwrap();
    let cache = Arc::new(Cache::open(&data.join("judge.db")).unwrap());
    let nano = models::generator(&Default::default(), Some(cache)).unwrap();
    let asked = labels.len();
    let judge = Judge::new(move || Ok(Some(Arc::clone(&nano)))).calibrated(labels, 0.6);
    let judge = judge.evidence(1500).timeout(std::time::Duration::from_secs(1800));
    let agreement = judge.agreement().unwrap_or_else(|| panic!("{:?}", scored(&judge))).clone();
    eprintln!("nano as a judge: {agreement:?}");
    assert_eq!((agreement.answers, agreement.unreadable), (asked, 0));
    let kappas = [agreement.relevance, agreement.groundedness, agreement.completeness];
    let may_gate = kappas.iter().all(|kappa| kappa.is_some_and(|kappa| kappa >= 0.6));
    match scored(&judge) {
        Scored::Value(..) => assert!(may_gate, "{kappas:?}"),
        Scored::Informs { .. } => assert!(!may_gate, "{kappas:?}"),
        other => panic!("{other:?}"),
    }
}

#[test]
#[cfg(feature = "local-llm")]
fn the_local_model_is_held_against_some_labels() {
    hold_the_local_model_against(labels().into_iter().step_by(10).collect());
}

#[test]
#[cfg(feature = "local-llm")]
#[ignore = "takes minutes: prints how far the local model agrees with all labels"]
fn the_local_model_is_held_against_all_labels() {
    hold_the_local_model_against(labels());
}
