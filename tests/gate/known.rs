//! Known queries: their collections, their judgments, documents that are not there.

use rankgate::Document;
use serde_json::json;

use super::{Bench, close, ten_queries};

#[test]
fn a_hit_from_another_source_is_no_hit() {
    let bench = Bench::new();
    let twin = Document { id: "a1".into(), body: "something else".into(), ..Document::default() };
    bench.index("wiki", vec![twin]);
    let queries = |source: &str| {
        let document = json!({"source_id": source, "slug": "a1"});
        json!({"schema_version": 1, "queries": [{"query": "word1", "relevant": [document], "expected_top1": document}]})
    };
    for (source, wanted) in [("docs", 0), ("wiki", 1)] {
        bench.write("one.json", &queries(source).to_string());
        let (code, out, err) = bench.eval(&["gate", "--qrels", "one.json", "--mode", "bm25"]);
        assert_eq!(code, Some(wanted), "{source}: {out}{err}");
    }
    bench.write("one.json", &ten_queries().to_string());
    let (code, _, err) = bench.eval(&["gate", "--qrels", "one.json", "--mode", "bm25"]);
    assert!(
        code == Some(2) && err.contains("has no collection `default` (name the source, one of docs, wiki: "),
        "{err}"
    );
}

#[test]
fn too_few_judgments_refuse_to_decide() {
    let bench = Bench::new();
    // Of a1 and b1, only b1 was judged: half. Of a2 and b2 none.
    bench.write("qrels.txt", "q1 0 b1 1\nq2 0 gone 1\n");
    bench.write("topics.tsv", "q1\tword1\nq2\tword2\n");
    let trec = ["--qrels", "qrels.txt", "--queries", "topics.tsv", "--mode", "bm25"];
    let measured = [&["qrels"], &trec[..]].concat();
    let (code, found) = bench.json(&measured, "eval-qrels.schema.json");
    assert!(code == Some(0) && close(&found["metrics"]["judged"]["mean"], 0.25), "{found}");
    assert_eq!(found["reliable"], false);
    let (_, out, _) = bench.eval(&measured);
    assert!(
        out.contains("recall@10          0.5000")
            && out.contains("over 2  ?\n")
            && out.contains("? rests on guesses"),
        "{out}"
    );
    let (code, out, _) = bench.eval(&[&measured[..], &["--fail-under", "recall=0.1"]].concat());
    assert!(code == Some(2) && out.contains("nothing is decided: judged@10 0.250 is below 0.500"), "{out}");
    let enough = [&measured[..], &["--fail-under", "recall=0.1", "--min-judged", "0.25"]].concat();
    assert_eq!(bench.eval(&enough).0, Some(0));

    let gate = [&["gate"], &trec[..], &["--threshold-recall-at-k", "0"]].concat();
    for more in [&[][..], &["--inconclusive=pass"], &["--inconclusive=fail"]] {
        let (code, out, _) = bench.eval(&[&gate[..], more].concat());
        assert!(
            code == Some(2) && out.contains("mean_judged_at_k 0.250 is below its floor 0.500 (qrels.txt)"),
            "{out}"
        );
    }
}

/// Where an index has several collections, every file can say which one it means.
#[test]
fn judgments_in_trecs_form_name_collections() {
    let bench = Bench::new();
    let twin = Document { id: "a1".into(), body: "something else".into(), ..Document::default() };
    bench.index("wiki", vec![twin]);
    bench.write("topics.tsv", "q1\tword1\n");
    for (judged, wanted) in [("docs::a1", 0), ("wiki::a1", 1), ("a1", 2)] {
        bench.write("qrels.txt", &format!("q1 0 {judged} 1\n"));
        let args = [
            "gate",
            "--qrels",
            "qrels.txt",
            "--queries",
            "topics.tsv",
            "--mode",
            "bm25",
            "--min-judged",
            "0",
        ];
        let (code, out, err) = bench.eval(&args);
        assert_eq!(code, Some(wanted), "{judged}: {out}{err}");
        let said = ["", "missing:   wiki::a1", "`docs::docid` in TREC judgments"][wanted as usize];
        assert!(out.contains(said) || err.contains(said), "{out}{err}");
    }
}

#[test]
fn judged_documents_that_are_not_there_are_named() {
    let bench = Bench::new();
    let file = |slugs: &[&str]| json!({"schema_version": 1, "queries": [{"query_id": "q", "query": "word1", "relevant_slugs": slugs}]});
    bench.write("some.json", &file(&["a1", "a10x", "b", "c", "d", "e", "f"]).to_string());
    let said = "6 of 7 judged documents are not in the index: `a10x` (did you mean `a10`?), `b`";
    for command in ["gate", "qrels"] {
        let args = [command, "--qrels", "some.json", "--mode", "bm25"];
        let (_, out, err) = bench.eval(&args);
        assert!(out.contains(&format!("note: {said}")) && out.contains(", 1 more\n"), "{out}{err}");
    }
    let args = ["gate", "--qrels", "some.json", "--mode", "bm25"];
    let (_, found) = bench.json(&args, "gate.schema.json");
    let notes = found["correctness_gate"]["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note.as_str().unwrap().starts_with(said)), "{found}");
    bench.write("none.json", &file(&["x1", "x2"]).to_string());
    for command in ["gate", "qrels"] {
        let (code, out, err) = bench.eval(&[command, "--qrels", "none.json", "--mode", "bm25"]);
        assert!(code == Some(2) && out.is_empty(), "{out}");
        assert!(err.contains("none.json: 2 of 2 judged documents are not in the index: `x1`, `x2`"), "{err}");
    }
}
