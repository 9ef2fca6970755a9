//! `rankgate eval gate` and `eval qrels` as a program, on an index whose rankings are known beforehand.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rankgate::Document;
use rankgate::pipeline::{Pipeline, indexer};
use rankgate::record::baseline::{PublishOptions, publish};
use rankgate::record::{Captured, Fingerprints, Tool};
use serde_json::{Value, json};

mod known;
#[cfg(target_os = "linux")]
mod memory;
mod stale;
mod trouble;

/// An index, files beside it, and a home.
struct Bench(tempfile::TempDir);

/// Twenty documents of equal length: `word7` finds `a7`, which has it three times, then `b7`, which has it once.
fn corpus() -> Vec<Document> {
    let document = |id: String, body: String| Document { id, body, ..Document::default() };
    let pair = |n: usize| {
        [
            document(format!("a{n}"), format!("word{n} word{n} word{n} pad")),
            document(format!("b{n}"), format!("word{n} pad pad pad")),
        ]
    };
    (1..=10).flat_map(pair).collect()
}

impl Bench {
    fn new() -> Self {
        let bench = Self(tempfile::tempdir().unwrap());
        bench.index("docs", corpus());
        bench
    }

    fn index(&self, collection: &str, documents: Vec<Document>) {
        let documents = documents.into_iter().map(Ok);
        indexer::build(&self.path("index"), collection, documents, None, &mut |_| {}).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn fingerprints(&self) -> Fingerprints {
        let pipeline = Pipeline::with_models(&self.path("index"), &Default::default(), None, None).unwrap();
        pipeline.fingerprints().unwrap()
    }

    /// Publishes `rows` as `NAME.ndjson`.
    fn baseline(&self, name: &str, rows: impl IntoIterator<Item = Captured>) -> PathBuf {
        let mut text = Vec::new();
        rows.into_iter().for_each(|row| row.write(&mut text).unwrap());
        let (from, to) = (self.path("captured"), self.path(name));
        fs::write(&from, text).unwrap();
        publish(&from, &to, &PublishOptions { force: true, ..PublishOptions::default() }).unwrap();
        to
    }

    /// Ten captured searches by words, with fingerprints of this index.
    fn ten_rows(&self) -> PathBuf {
        let fingerprints = self.fingerprints();
        let rows = (1..).zip(TEN).map(|(id, (text, slugs))| Captured {
            id: Some(id),
            fingerprints: fingerprints.clone(),
            ..row(text, slugs)
        });
        self.baseline("ten.ndjson", rows)
    }

    /// Exit code, stdout, stderr of `rankgate eval …`.
    fn eval(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_rankgate"))
            .arg("eval")
            .args(args)
            .args(["--index", "index"])
            .current_dir(self.0.path())
            .env("RANKGATE_HOME", self.path("home"))
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    fn json(&self, args: &[&str], schema: &str) -> (Option<i32>, Value) {
        let (code, out, err) = self.eval(&[args, &["--json"]].concat());
        let value: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
        let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas").join(schema);
        let schema: Value = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
        jsonschema::validate(&schema, &value).unwrap();
        (code, value)
    }
}

fn row(text: &str, slugs: &str) -> Captured {
    Captured::new(Tool::Search, text, slugs.split_whitespace().map(str::to_string).collect())
}

/// Query, ranking as captured. Now each finds `aN bN`, and `nothing` nothing.
const TEN: [(&str, &str); 10] = [
    ("word1", "a1 b1"),
    ("word2", "a2 b2"),
    ("word3", "a3 b3"),
    ("word4", "a4 b4"),
    ("word5", "a5 b5"),
    // Common 1 of 3; the first stays.
    ("word6", "a6 gone"),
    // The same two, swapped.
    ("word7", "b7 a7"),
    // Nothing in common.
    ("word8", "gone lost"),
    // Nothing then, nothing now: stable.
    ("nothing", ""),
    ("word10", "a10 b10"),
];

/// Ten queries with their answer, slugs alone.
fn ten_queries() -> Value {
    let five = (1..=5).map(|n| {
        json!({"query_id": format!("q{n}"), "query": format!("word{n}"), "relevant_slugs": [format!("a{n}"), format!("b{n}")],
            "first_relevant_slug": format!("a{n}")})
    });
    let mut queries: Vec<Value> = five.collect();
    queries.extend([
        // Relevant, but second.
        json!({"query_id": "q6", "query": "word6", "relevant_slugs": ["b6"], "first_relevant_slug": "b6"}),
        json!({"query_id": "q7", "query": "word7", "relevant_slugs": ["gone"]}),
        json!({"query_id": "q8", "query": "word8", "relevant_slugs": ["a8", "gone"]}),
        json!({"query_id": "q9", "query": "nothing", "relevant_slugs": ["a9"]}),
        json!({"query_id": "q10", "query": "word10", "relevant_slugs": ["a10", "b10"], "first_relevant_slug": "b10"}),
    ]);
    json!({"schema_version": 1, "queries": queries})
}

fn close(value: &Value, wanted: f64) -> bool {
    value.as_f64().is_some_and(|value| (value - wanted).abs() < 1e-9)
}

#[test]
fn ten_rows_by_hand() {
    let bench = Bench::new();
    bench.ten_rows();
    let gate = ["gate", "--baseline", "ten.ndjson", "--threshold-jaccard", "0.83", "--threshold-top1", "0.8"];
    let (code, found) = bench.json(&gate, "gate.schema.json");
    let summary = &found["regression_gate"]["summary"];
    // 1 for words 1 to 5, 7, 10 and `nothing`; 1/3 for word 6; 0 for word 8.
    assert!(close(&summary["mean_jaccard"], (8.0 + 1.0 / 3.0) / 10.0), "{summary}");
    // All but words 7 and 8: 0.8 is at its floor, and passes.
    assert!(close(&summary["top1_stability_rate"], 0.8), "{summary}");
    assert_eq!((summary["rows_total"].as_u64(), summary["rows_replayed"].as_u64()), (Some(10), Some(10)));
    assert_eq!((code, &found["verdict"], &found["reasons"]), (Some(0), &"pass".into(), &json!([])));
    assert_eq!(found["regression_gate"]["latency_skipped"], true, "no row states a latency");
    assert_eq!(found["correctness_gate"], json!({"ran": false}));
    let worst = found["regression_gate"]["worst"].as_array().unwrap();
    let queries: Vec<_> = worst.iter().map(|row| row["query"].as_str().unwrap()).collect();
    assert_eq!(queries, ["word8", "word6", "word7"]);

    // The thresholds of the file, 0.85 and 0.80, are those of a gate that is told none.
    let (code, out, _) = bench.eval(&["gate", "--baseline", "ten.ndjson"]);
    assert_eq!(code, Some(1), "{out}");
    assert!(
        out.starts_with("gate: FAIL\n")
            && out.contains("mean_jaccard 0.833 is below its floor 0.850 (ten.ndjson)"),
        "{out}"
    );
    assert!(
        out.contains("search #8 \"word8\"")
            && out.contains("left     gone  was 1")
            && out.contains("entered  a8  now 1"),
        "{out}"
    );
    assert!(!out.contains("top1_stability_rate 0.800 is"), "{out}");
}

#[test]
fn ten_known_queries_by_hand() {
    let bench = Bench::new();
    bench.write("ten.json", &ten_queries().to_string());
    let gate = ["gate", "--qrels", "ten.json", "--mode", "bm25", "-k", "2"];
    let (code, found) = bench.json(&gate, "gate.schema.json");
    let summary = &found["correctness_gate"]["summary"];
    // Recall 1 six times (q1 to q5, q10) and for q6, 1/2 for q8; first relevant: not q6, q7, q9.
    assert!(close(&summary["mean_recall_at_k"], 0.75), "{summary}");
    assert!(close(&summary["first_relevant_hit_rate"], 0.7), "{summary}");
    assert!(close(&summary["expected_top1_hit_rate"], 5.0 / 7.0), "{summary}");
    assert_eq!((code, &summary["expected_top1_denominator"]), (Some(0), &7.into()));
    assert_eq!(found["regression_gate"], json!({"ran": false}));
    let (code, out, _) = bench.eval(&[&gate[..], &["--threshold-recall-at-k", "0.76"]].concat());
    assert_eq!(code, Some(1), "{out}");
    assert!(out.contains("mean_recall_at_k 0.750 is below its floor 0.760 (ten.json)"), "{out}");
    assert!(out.contains("recall=0.00  q7 \"word7\"") && out.contains("missing:   gone\n"), "{out}");

    let measured = ["qrels", "--qrels", "ten.json", "--mode", "bm25", "-k", "2"];
    let (code, found) = bench.json(&measured, "eval-qrels.schema.json");
    let mean = |metric: &str| found["metrics"][metric]["mean"].clone();
    // nDCG: q6 has its document second, q8 one of two first.
    let (second, half) = (1.0 / 3f64.log2(), 1.0 / (1.0 + 1.0 / 3f64.log2()));
    for (metric, wanted) in [
        ("precision", (6.0 + 0.5 + 0.5) / 10.0),
        ("recall", 0.75),
        ("ndcg", (6.0 + second + half) / 10.0),
        ("mrr", (6.0 + 0.5 + 1.0) / 10.0),
        ("first_relevant", 0.7),
        ("expected_top1", 5.0 / 7.0),
    ] {
        assert!(close(&mean(metric), wanted), "{metric}: {}", mean(metric));
    }
    assert_eq!((code, &found["reliable"], &mean("judged")), (Some(0), &Value::Null, &Value::Null));
    for (floor, wanted) in
        [("recall=0.75", 0), ("recall=0.7501", 1), ("recall=NaN", 2), ("colour=0.1", 2), ("recall", 2)]
    {
        let (code, out, err) = bench.eval(&[&measured[..], &["--fail-under", floor]].concat());
        assert_eq!(code, Some(wanted), "{floor}: {out}{err}");
        assert_eq!(
            out.contains("FAIL recall@2 0.7500 is below its floor 0.7501 (ten.json)"),
            wanted == 1,
            "{out}"
        );
    }
}

#[test]
fn exit_codes() {
    let bench = Bench::new();
    let ten = bench.ten_rows();
    let text = fs::read_to_string(&ten).unwrap();
    bench.write("truncated.ndjson", &text[..text.trim_end().rfind('\n').unwrap() + 1]);
    bench.write("cut.ndjson", &text[..text.len() - 20]);
    bench.write("hash.ndjson", &text.replacen("\"query\":\"word8\"", "\"query\":\"word9\"", 1));
    bench.write("rows.ndjson", &text.replacen("\"gone\"", "\"g0ne\"", 1));
    let corpus = bench.fingerprints().corpus.unwrap();
    bench.write("header.ndjson", &text.replacen(&corpus, &"0".repeat(64), 1));
    bench.write("none.ndjson", "");
    bench.write("loose.ndjson", &text.replacen("\"jaccard\":0.85", "\"jaccard\":0.15", 1));
    bench.write("pretty.json", &serde_json::to_string_pretty(&ten_queries()).unwrap());
    bench.write("qrels.txt", "q1 0 a1 1\n");
    bench.write("array.json", "[1, 2]");
    bench.write(
        "null.json",
        &ten_queries().to_string().replacen("\"first_relevant_slug\":\"a1\"", "\"expected_top1\":null", 1),
    );
    bench.write("good.json", &ten_queries().to_string());
    bench.baseline("same.ndjson", [row("word1", "a1 b1")]);
    let same: &[&str] = &["--baseline", "same.ndjson"];
    for (args, wanted, said) in [
        (same, 0, "gate: PASS"),
        (&["--baseline", "ten.ndjson"], 1, "gate: FAIL"),
        (&["--baseline", "ten.ndjson", "--threshold-jaccard", "0.8"], 0, "gate: PASS"),
        (&["--baseline", "same.ndjson", "--qrels", "good.json", "--mode", "bm25"], 0, "correctness: PASS"),
        // One question that fails is enough, and the other one is answered all the same.
        (&["--baseline", "ten.ndjson", "--qrels", "good.json", "--mode", "bm25"], 1, "correctness: PASS"),
        (
            &[
                "--baseline",
                "same.ndjson",
                "--qrels",
                "good.json",
                "--mode",
                "bm25",
                "--threshold-first-relevant-hit",
                "0.8",
            ],
            1,
            "regression: PASS",
        ),
        // Ten rows cannot show that a mean of 0.83 is no chance.
        (&["--baseline", "ten.ndjson", "--significance"], 2, "gate: INCONCLUSIVE"),
        (&["--baseline", "ten.ndjson", "--significance", "--inconclusive=pass"], 0, "gate: INCONCLUSIVE"),
        (&["--baseline", "ten.ndjson", "--significance", "--inconclusive=fail"], 1, "gate: INCONCLUSIVE"),
        (&[], 2, "required arguments"),
        (&["--baseline", "absent.ndjson"], 2, "absent.ndjson: cannot read"),
        (&["--qrels", "absent.json"], 2, "absent.json: cannot read"),
        (&["--baseline", "truncated.ndjson"], 2, "the header states 10 rows, there are 9"),
        (&["--baseline", "cut.ndjson"], 2, "cut.ndjson:11: not JSON"),
        (&["--baseline", "hash.ndjson"], 2, "`query_hash` is"),
        (&["--baseline", "rows.ndjson"], 2, "the rows are not those of the header's `rows_hash`"),
        (&["--baseline", "none.ndjson"], 2, "the file is empty"),
        // Else a header without them would pass for a baseline that was never captured with any.
        (&["--baseline", "header.ndjson"], 2, "not that of its `header_hash`"),
        (&["--baseline", "captured"], 2, "captured: not a baseline: these are captured searches"),
        (
            &["--baseline", "good.json"],
            2,
            "good.json: not a baseline: these are queries with a known answer (give them to --qrels)",
        ),
        (&["--baseline", "pretty.json"], 2, "not a baseline: these are queries with a known answer"),
        (&["--baseline", "qrels.txt"], 2, "not a baseline: these are queries with a known answer"),
        (
            &["--qrels", "ten.ndjson"],
            2,
            "ten.ndjson: no queries with a known answer: this is a baseline (give it to --baseline)",
        ),
        (&["--qrels", "captured"], 2, "no queries with a known answer: these are captured searches"),
        (&["--baseline", "loose.ndjson"], 2, "not that of its `header_hash`"),
        (&["--qrels", "array.json"], 2, "array.json:"),
        (&["--qrels", "null.json", "--mode", "bm25"], 2, "`expected_top1` is null"),
        (&["--baseline", "same.ndjson", "--threshold-jaccard", "NaN"], 2, "from 0 to 1"),
        (&["--baseline", "same.ndjson", "--threshold-jaccard", "abc"], 2, "invalid float"),
        (&["--baseline", "same.ndjson", "--threshold-latency-multiplier", "inf"], 2, "above 0"),
        (&["--qrels", "good.json", "--min-judged", "NaN"], 2, "from 0 to 1"),
        (&["--qrels", "good.json", "-k", "0"], 2, "invalid value"),
        (&["--baseline", "same.ndjson", "--colour", "red"], 2, "unexpected argument"),
        (&["--baseline", "same.ndjson", "--junit", "no/such/folder.xml"], 2, "cannot"),
    ] {
        let (code, out, err) = bench.eval(&[&["gate"], args].concat());
        assert_eq!(code, Some(wanted), "{args:?}: {out}{err}");
        assert!(out.contains(said) || err.contains(said), "{args:?}: {out}{err}");
    }
    let (code, _, err) = bench.eval(&["qrels", "--qrels", "absent.json"]);
    assert!(code == Some(2) && err.contains("absent.json"), "{err}");
}

#[test]
fn reports_for_a_job() {
    let bench = Bench::new();
    bench.ten_rows();
    bench.write("summary.md", "# Before");
    let gate = ["gate", "--baseline", "ten.ndjson", "--junit", "gate.xml", "--summary", "summary.md"];
    assert_eq!(bench.eval(&gate).0, Some(1));
    let summary = bench.read("summary.md");
    assert!(summary.starts_with("# Before\n\n## Retrieval gate: FAIL\n"), "{summary}");
    let xml = bench.read("gate.xml");
    let document = roxmltree::Document::parse(&xml).unwrap();
    let failures = document.descendants().filter(|node| node.has_tag_name("failure")).count();
    assert_eq!(failures, 1, "one decision, whatever the queries: {xml}");
    assert!(xml.contains("search #8 &quot;word8&quot;") && xml.contains("left     gone  was 1"), "{xml}");
    // What could not be decided at all leaves reports too.
    let (code, _, err) =
        bench.eval(&["gate", "--baseline", "absent", "--junit", "gate.xml", "--summary", "summary.md"]);
    assert!(code == Some(2) && err.contains("absent: cannot read"), "{err}");
    assert!(bench.read("summary.md").starts_with(&format!("{summary}\n\n## Retrieval gate: ERROR\n")));
    assert!(
        bench.read("gate.xml").contains("<error message=\"absent: cannot read"),
        "{}",
        bench.read("gate.xml")
    );
}
