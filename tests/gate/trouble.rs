//! What may not go wrong around a verdict: files, pipes, damage, inputs of two meanings.

use std::fs;
use std::process::{Command, Stdio};

use rankgate::record::Captured;
use serde_json::json;

use super::{Bench, row};

/// A program behind a pipe that wants no more must not turn a breach into a pass.
#[test]
fn a_closed_pipe_changes_no_verdict() {
    let bench = Bench::new();
    let lost = bench.baseline("lost.ndjson", [row("word8", "gone lost")]);
    for (args, code) in [
        (vec!["gate", "--baseline", lost.to_str().unwrap(), "--allow-stale"], 1),
        (vec!["replay", "--against", lost.to_str().unwrap(), "--fail-under-jaccard", "0.5"], 1),
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rankgate"));
        child.arg("eval").args(&args).args(["--index", "index"]).current_dir(bench.0.path());
        child.env("RANKGATE_HOME", bench.path("home")).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = child.spawn().unwrap();
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(code), "{args:?}");
    }
}

#[test]
fn an_output_never_replaces_an_input_a_report_or_a_database() {
    let bench = Bench::new();
    let ten = bench.ten_rows();
    let (ten, before) = (ten.to_str().unwrap(), fs::read(&ten).unwrap());
    let database = bench.path("index/index.db");
    for (args, said) in [
        (vec!["--junit", "ten.ndjson"], "--junit and --baseline are the same file"),
        (vec!["--summary", "./ten.ndjson"], "--summary and --baseline are the same file"),
        (vec!["--junit", "both", "--summary", "both"], "--summary and --junit are the same file"),
        (vec!["--junit", database.to_str().unwrap()], "a database"),
        (vec!["--summary", database.to_str().unwrap()], "a database"),
    ] {
        let (code, _, err) = bench.eval(&[&["gate", "--baseline", ten][..], &args].concat());
        assert!(
            code == Some(2) && err.contains(said) && err.contains("choose another file"),
            "{args:?}: {err}"
        );
    }
    assert_eq!(fs::read(bench.path("ten.ndjson")).unwrap(), before);
    assert_eq!(&fs::read(&database).unwrap()[..15], b"SQLite format 3");
    assert!(!bench.path("both").exists());
}

/// A breach stays a breach when its report cannot be written; a pass without the report that was asked for is none.
#[test]
fn a_report_that_cannot_be_written_hides_no_breach() {
    let bench = Bench::new();
    let lost = bench.baseline("lost.ndjson", [row("word8", "gone lost")]);
    let kept = bench.baseline("kept.ndjson", [row("word1", "a1 b1")]);
    for (baseline, expected) in [(lost, 1), (kept, 2)] {
        let args = [
            "gate",
            "--baseline",
            baseline.to_str().unwrap(),
            "--allow-stale",
            "--junit",
            "no/such/folder.xml",
        ];
        let (code, _, err) = bench.eval(&args);
        assert!(code == Some(expected) && err.contains("no/such/folder.xml"), "{err}");
    }
}

/// Postings that nobody wrote may name documents that there are not.
#[test]
fn a_damaged_index_is_an_error_with_its_repair() {
    let bench = Bench::new();
    let ten = bench.ten_rows();
    for file in fs::read_dir(bench.path("index/lexical")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "idx") {
            let mut bytes = fs::read(&path).unwrap();
            // What is at the end is looked at when the index is opened, which makes a damaged one anew.
            let begin = bytes.len() / 4;
            bytes[..begin].iter_mut().step_by(2).for_each(|byte| *byte ^= 0x55);
            fs::remove_file(&path).unwrap(); // it may be linked, and mapped
            fs::write(&path, bytes).unwrap();
        }
    }
    let args = ["gate", "--baseline", ten.to_str().unwrap(), "--junit", "gate.xml"];
    let (code, out, err) = bench.eval(&args);
    assert!(matches!(code, Some(1 | 2)), "{code:?} {out}{err}");
    assert!(bench.path("gate.xml").exists());
    let doctor = Command::new(env!("CARGO_BIN_EXE_rankgate"))
        .args(["doctor", "--index", "index"])
        .current_dir(bench.0.path())
        .env("RANKGATE_HOME", bench.path("home"))
        .output()
        .unwrap();
    let said = String::from_utf8(doctor.stdout).unwrap();
    assert!(doctor.status.code() == Some(1) && said.contains("differ from their checksums"), "{said}");
}

#[test]
fn what_can_be_read_in_two_ways_is_refused() {
    let bench = Bench::new();
    let entry = |slug: &str| format!(r#"[{{"query": "word1", "relevant_slugs": ["{slug}"]}}]"#);
    let file =
        format!(r#"{{"schema_version": 1, "queries": {}, "queries": {}}}"#, entry("gone"), entry("a1"));
    bench.write("twice.json", &file);
    let (code, _, err) = bench.eval(&["gate", "--qrels", "twice.json", "--mode", "bm25"]);
    assert!(
        code == Some(2) && err.contains("twice.json") && err.contains("key `queries` stands twice"),
        "{err}"
    );
    let row =
        r#"{"schema_version":1,"tool_name":"search","query":"word1","query":"word2","retrieved_slugs":[]}"#;
    bench.write("twice.ndjson", row);
    let (code, _, err) = bench.eval(&["replay", "--against", "twice.ndjson"]);
    assert!(
        code == Some(2) && err.contains("twice.ndjson:1") && err.contains("key `query` stands twice"),
        "{err}"
    );
}

#[test]
fn queries_that_say_nothing_are_counted() {
    let bench = Bench::new();
    let judged = |id: &str, relevance: i64| json!({"id": id, "query": "word1", "judgments": [{"docid": "a1", "relevance": relevance}]});
    bench.write("queries.json", &json!([judged("q1", 3), judged("q2", 0), judged("q3", 0)]).to_string());
    let (_, out, _) = bench.eval(&["gate", "--qrels", "queries.json", "--mode", "bm25"]);
    assert!(out.contains("note: 2 queries have no relevant document and are not counted"), "{out}");
    let (_, out, err) = bench.eval(&["qrels", "--qrels", "queries.json", "--mode", "bm25"]);
    assert!(format!("{out}{err}").contains("2 queries have no relevant document"), "{out}{err}");
}

/// Both rankings are compared down to the limit of the captured search.
#[test]
fn documents_below_the_limit_are_not_compared() {
    let bench = Bench::new();
    let mut first = row("word1", "a1 gone lost");
    first.asked.limit = Some(1);
    let one = bench.baseline("one.ndjson", [first]);
    let (code, out, err) = bench.eval(&["gate", "--baseline", one.to_str().unwrap(), "--allow-stale"]);
    assert!(code == Some(0) && out.contains("mean_jaccard              1.000"), "{out}{err}");
}

/// What the left-out rows would have shown, nobody knows.
#[test]
fn a_replay_that_demands_something_allows_few_rows_to_be_left_out() {
    let bench = Bench::new();
    let mut gone = row("word2", "a2 b2");
    gone.asked.collection = Some("gone\n::error::forged".into());
    let mut text = Vec::new();
    [row("word1", "a1 b1"), gone].iter().for_each(|row: &Captured| row.write(&mut text).unwrap());
    bench.write("two.ndjson", &String::from_utf8(text).unwrap());
    let demanding = ["replay", "--against", "two.ndjson", "--fail-under-jaccard", "0.5"];
    let (code, out, _) = bench.eval(&demanding);
    assert!(code == Some(1) && out.contains("rows_skipped"), "{out}");
    assert!(!out.lines().any(|line| line.starts_with("::")), "{out}");
    assert_eq!(bench.eval(&[&demanding[..], &["--max-skipped", "1"]].concat()).0, Some(0));
    assert_eq!(bench.eval(&demanding[..3]).0, Some(0));
    let published = bench.path("two.b");
    let options = rankgate::record::baseline::PublishOptions::default();
    rankgate::record::baseline::publish(&bench.path("two.ndjson"), &published, &options).unwrap();
    let (code, out, _) = bench.eval(&["gate", "--baseline", "two.b", "--allow-stale"]);
    assert!(code == Some(1) && !out.lines().any(|line| line.starts_with("::")), "{out}");
}
