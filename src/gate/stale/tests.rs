use super::*;
use crate::record::{Captured, Tool};

fn now(corpus: &str, index: &str, vector: &str) -> Fingerprints {
    Fingerprints {
        corpus: Some(corpus.into()),
        index: Some(index.into()),
        models: [("vector".to_string(), vector.to_string())].into(),
        code: Some("c2".into()),
        ..Fingerprints::default()
    }
}

fn row(fingerprints: Fingerprints) -> Captured {
    let source_ids = vec!["docs".into(), "wiki".into()];
    let row = Captured::new(Tool::Query, "x", Vec::new());
    Captured { fingerprints, source_ids, vector_enabled: Some(true), ..row }
}

fn then(rows: impl IntoIterator<Item = Fingerprints>) -> AllFingerprints {
    let mut all = AllFingerprints::default();
    rows.into_iter().for_each(|own| all.add(&row(own)));
    all
}

fn words(found: &Staleness) -> Vec<String> {
    found.differences.iter().map(Difference::words).collect()
}

#[test]
fn what_differs_is_named() {
    let baseline = then([now("d", "0123456789abcdef", "m")]);
    assert_eq!(stale(&baseline, &now("d", "0123456789abcdef", "m")), Staleness::default());
    assert!(Staleness::default().refusal("b").is_none());
    let found = stale(&baseline, &Fingerprints { models: Default::default(), ..now("d", "i2", "m") });
    let error = found.refusal("b").expect("is stale").to_string();
    assert!(
        error.starts_with(
            "b: the baseline is stale: index was 0123456789ab, is i2; model of vector was m, is absent ("
        ),
        "{error}"
    );
    assert!(error.contains("--allow-stale"), "{error}");
}

#[test]
fn what_differs_is_said_in_words_where_the_rows_know_them() {
    let texts = |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    let counts = |pairs: &[(&str, u64)]| pairs.iter().map(|(k, v)| (k.to_string(), *v)).collect();
    let old = Fingerprints {
        collections: counts(&[("docs", 20), ("wiki", 3)]),
        rules: texts(&[("words", "1"), ("passages", "p"), ("vectors", "small")]),
        model_names: texts(&[("vector", "small")]),
        ..now("d", "i", "m")
    };
    let new = Fingerprints {
        collections: counts(&[("docs", 25), ("notes", 7)]),
        rules: texts(&[("words", "2"), ("passages", "p"), ("vectors", "large")]),
        model_names: texts(&[("vector", "large")]),
        ..now("d2", "i2", "m2")
    };
    assert_eq!(
        words(&stale(&then([old.clone()]), &new)),
        [
            "corpus: collection `docs` had 20 documents, has 25, collection `wiki` (3 documents) is gone, collection \
             `notes` (7 documents) is new",
            "index: the model of the vectors was small, is large, the rule for words was 1, is 2",
            "model of vector: was `small`, is `large`",
        ]
    );
    let edited = Fingerprints { corpus: Some("d2".into()), ..old.clone() };
    assert_eq!(
        words(&stale(&then([old.clone()]), &edited)),
        ["corpus: documents changed, their number did not: `docs` (20), `wiki` (3)"]
    );
    let runtime = Fingerprints { models: texts(&[("vector", "m3")]), ..old.clone() };
    assert_eq!(
        words(&stale(&then([old.clone()]), &runtime)),
        ["model of vector: `small`, in another revision or with another runtime"]
    );
    let none = Fingerprints { models: texts(&[]), model_names: texts(&[]), ..old.clone() };
    assert_eq!(words(&stale(&then([old]), &none)), ["model of vector: was `small`, and there is none"]);
    // An older row only names the collections of its hits.
    let docs = Fingerprints { collections: counts(&[("docs", 20)]), ..now("d2", "i", "m") };
    assert_eq!(words(&stale(&then([now("d", "i", "m")]), &docs)), ["corpus: collection `wiki` is gone"]);
}

#[test]
fn a_baseline_over_two_indexes_is_stale_whichever_is_there() {
    let baseline = then([now("d", "i1", "m"), now("d", "i2", "m")]);
    assert_eq!(words(&stale(&baseline, &now("d", "i2", "m"))), ["index was i1 and i2, is i2"]);
}

#[test]
fn other_code_and_other_settings_are_noted_and_refuse_nothing() {
    let set = |fusion: &str| [("fusion".to_string(), fusion.to_string())].into();
    let old = Fingerprints { code: Some("c1".into()), settings: set("adaptive"), ..now("d", "i", "m") };
    let new = Fingerprints { settings: set("rrf"), ..now("d", "i", "m") };
    let found = stale(&then([old]), &new);
    assert!(found.refusal("b").is_none());
    assert_eq!(
        found.notes,
        ["setting `fusion` was adaptive, is rrf", "captured with the code c1, replayed with c2"]
    );
}

#[test]
fn rows_that_state_nothing_are_counted() {
    let silent = stale(&then([Fingerprints::default()]), &now("d", "i", "m"));
    assert!(silent.differences.is_empty());
    assert_eq!(
        silent.notes,
        [
            "no row of the baseline states a fingerprint of the corpus: it may be stale",
            "no row of the baseline states a fingerprint of the index: it may be stale",
            "no row of the baseline states a fingerprint of the model of vector: it may be stale",
        ]
    );
    let full = now("d", "i", "m");
    let modelless = Fingerprints { models: Default::default(), ..full.clone() };
    let some = stale(&then([full.clone(), modelless, Fingerprints::default(), full.clone()]), &full);
    assert_eq!(
        some.notes,
        [
            "1 of 4 rows state no fingerprint of the corpus: it may be stale",
            "1 of 4 rows state no fingerprint of the index: it may be stale",
            "2 of 4 rows state no fingerprint of the model of vector: it may be stale",
        ]
    );
}
