//! Baselines of something else, and rows that cannot be compared.

use rankgate::record::{Captured, Fingerprints};
use serde_json::{Value, json};

use super::{Bench, corpus, row, ten_queries};

#[test]
fn a_baseline_of_something_else_is_refused() {
    let bench = Bench::new();
    bench.ten_rows();
    let elsewhere = Bench::new();
    assert_eq!(bench.fingerprints(), elsewhere.fingerprints(), "the same documents, indexed twice");
    let mut other = corpus();
    other[19].body.push_str(" more");
    bench.index("docs", other);
    let lenient = ["gate", "--baseline", "ten.ndjson", "--threshold-jaccard", "0.8"];
    let (code, out, err) = bench.eval(&lenient);
    assert!(code == Some(2) && out.starts_with("gate: INCONCLUSIVE"), "{out}");
    let said = "corpus: documents changed, their number did not: `docs` (20)";
    assert!(
        err.contains(&format!("ten.ndjson: the baseline is stale: {said}")) && err.contains("--allow-stale"),
        "{err}"
    );
    let (code, out, _) = bench.eval(&[&lenient[..], &["--allow-stale"]].concat());
    assert!(code == Some(0) && out.contains(&format!("note: stale: {said}")), "{out}");
    // A replay says so, too, and refuses nothing.
    let (code, out, _) = bench.eval(&["replay", "--against", "ten.ndjson"]);
    assert!(code == Some(0) && out.contains(&format!("note: stale: {said}")), "{out}");

    bench.index("wiki", corpus()[..3].to_vec());
    let (_, _, err) = bench.eval(&lenient);
    assert!(err.contains("is stale: corpus: collection `wiki` (3 documents) is new"), "{err}");

    let models = [("vector".to_string(), "m".to_string())].into();
    let row =
        Captured { fingerprints: Fingerprints { models, ..bench.fingerprints() }, ..row("word1", "a1 b1") };
    bench.baseline("model.ndjson", [row]);
    let (code, _, err) = bench.eval(&["gate", "--baseline", "model.ndjson"]);
    assert!(code == Some(2) && err.contains("model of vector was m, is absent"), "{err}");
}

/// A stale baseline takes no answer from the other question, and a pass of the other none from it.
#[test]
fn beside_a_stale_baseline_known_queries_are_answered() {
    let bench = Bench::new();
    bench.ten_rows();
    bench.write("ten.json", &ten_queries().to_string());
    bench.index("docs", corpus()[..19].to_vec());
    let gate = ["gate", "--baseline", "ten.ndjson", "--qrels", "ten.json", "--mode", "bm25", "-k", "2"];
    let gate = [&gate[..], &["--threshold-recall-at-k", "0.5", "--junit", "gate.xml"]].concat();
    for more in [&[][..], &["--inconclusive=pass"], &["--inconclusive=fail"]] {
        let (code, found) = bench.json(&[&gate[..], more].concat(), "gate.schema.json");
        assert_eq!((code, &found["verdict"]), (Some(2), &"inconclusive".into()), "{found}");
        assert!(found["correctness_gate"]["summary"]["queries_run"] == 10, "{found}");
        let stale = &found["regression_gate"]["stale"][0];
        assert_eq!(stale["details"], json!(["collection `docs` had 20 documents, has 19"]), "{found}");
        assert_eq!(found["regression_gate"]["summary"], Value::Null, "nothing was replayed: {found}");
    }
    let (_, out, _) = bench.eval(&gate);
    assert!(out.contains("correctness: PASS") && out.contains("regression: INCONCLUSIVE"), "{out}");
    let missed = ["gate", "--baseline", "ten.ndjson", "--qrels", "ten.json", "--mode", "bm25", "-k", "2"];
    let missed = [&missed[..], &["--threshold-recall-at-k", "1"]].concat();
    let (code, found) = bench.json(&missed, "gate.schema.json");
    assert_eq!((code, &found["verdict"]), (Some(1), &"fail".into()), "what fails fails: {found}");
    let xml = bench.read("gate.xml");
    let document = roxmltree::Document::parse(&xml).unwrap();
    let error = document.descendants().find(|node| node.has_tag_name("error")).unwrap();
    assert_eq!(error.parent().unwrap().attribute("name"), Some("stale_fingerprints"), "{xml}");
}

/// What somebody changed in the settings is what a regression is held against.
#[test]
fn a_changed_setting_is_named_beside_the_regression() {
    let bench = Bench::new();
    let settings = [("fusion".to_string(), "rrf".to_string())].into();
    let lost = Captured {
        fingerprints: Fingerprints { settings, ..bench.fingerprints() },
        ..row("word8", "gone lost")
    };
    bench.baseline("lost.ndjson", [lost]);
    let (code, out, _) = bench.eval(&["gate", "--baseline", "lost.ndjson"]);
    assert!(code == Some(1) && out.contains("note: setting `fusion` was rrf, is adaptive"), "{out}");
}

#[test]
fn rows_that_cannot_be_replayed_are_no_pass() {
    let bench = Bench::new();
    // 99 rows that are as they were, and one whose collection is gone.
    let same = (0..99).map(|n| row(&format!("word1 {}", "pad ".repeat(n)), "a1 b1")).map(|row| Captured {
        asked: rankgate::record::captured::Asked { limit: Some(1), ..Default::default() },
        retrieved_slugs: vec!["a1".into()],
        ..row
    });
    let mut gone = row("word2", "a2 b2");
    gone.asked.collection = Some("wiki".into());
    bench.baseline("most.ndjson", same.chain([gone]));
    let (code, out, _) = bench.eval(&["gate", "--baseline", "most.ndjson"]);
    assert!(code == Some(1) && out.contains("rows_skipped 1 is above its ceiling 0"), "{out}");
    let way_out = "--max-skipped 1 allows it: \"word2\": the index has no collection `wiki`";
    assert!(out.contains(way_out), "{out}");
    let (code, out, _) = bench.eval(&["gate", "--baseline", "most.ndjson", "--max-skipped", "1"]);
    assert!(code == Some(0) && out.contains("note: 1 of 100 rows were left out"), "{out}");
}
