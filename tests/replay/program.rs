//! `rankgate eval replay` as a program, and the eval `replay_gate`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::OnceLock;

use rankgate::models::HashEmbedder;
use rankgate::record::baseline::{PublishOptions, publish};
use rankgate::record::{Captured, Tool};
use serde_json::Value;

use super::{FRUIT, limited, put, row};
use crate::harness::{Ran, clean, program};
use crate::models::Sandbox;

/// A sandbox with an index, and `rows` in `rows.ndjson`.
struct Bench(Sandbox);

impl Bench {
    fn new(rows: &[Captured]) -> Self {
        let bench = Self(Sandbox::new());
        bench.0.settings("[models]\nembedder = \"hash\"\n");
        put(&bench.0.path("index"), "notes", FRUIT, Some(&HashEmbedder::default()));
        let mut text = Vec::new();
        rows.iter().for_each(|row| row.write(&mut text).unwrap());
        fs::write(bench.0.path("rows.ndjson"), text).unwrap();
        bench
    }

    fn run(&self, extra: &[&str]) -> (Option<i32>, String, String) {
        let mut command = self.0.rankgate(&["eval", "replay", "--index"]);
        command.arg(self.0.path("index")).arg("--against").arg(self.0.path("rows.ndjson")).args(extra);
        let Output { status, stdout, stderr } = command.output().unwrap();
        (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
    }

    fn json(&self, extra: &[&str]) -> Value {
        let (_, out, err) = self.run(&[&["--json"], extra].concat());
        let json = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
        let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/replay.schema.json");
        let schema: Value = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
        jsonschema::validate(&schema, &json).unwrap();
        json
    }
}

fn stable() -> Captured {
    limited(row(Tool::Search, "kiwi", &["a", "b", "c"]), 3)
}

fn moved() -> Captured {
    limited(row(Tool::Query, "kiwi", &["x", "y", "z"]), 3)
}

fn broken() -> Captured {
    let line = r#"{"schema_version":1,"tool_name":"query","query":"kiwi","retrieved_slugs":["a"],
        "parts":[{"mode":"hyde","text":"a"},{"mode":"hyde","text":"b"}]}"#;
    let Ok(Value::Object(row)) = serde_json::from_str(line) else { panic!("{line}") };
    Captured::from_object(row).unwrap()
}

#[test]
fn figures_decide_only_when_they_are_asked_to() {
    let half = Bench::new(&[stable(), moved()]);
    let slow = Bench::new(&[Captured { latency_ms: Some(1e-6), ..stable() }]);
    let quick = Bench::new(&[Captured { latency_ms: Some(1e9), ..stable() }]);
    let failing = Bench::new(&[stable(), broken()]);
    for (bench, extra, code, words) in [
        (&half, &[][..], 0, "Mean Jaccard@k:    0.500"),
        (&half, &["--fail-under-jaccard", "0.5", "--fail-under-top1", "0.5"], 0, "Top-1 stability:   50.0%"),
        (&half, &["--fail-under-jaccard", "0.51"], 1, "mean_jaccard  0.500, has to be 0.510"),
        (&half, &["--fail-under-top1", "0.51"], 1, "top1_stability_rate  0.500"),
        (&half, &["--fail-over-latency", "2"], 1, "latency_ratio  not measured"),
        (&slow, &[], 0, "warning: 1 rows take more than twice as long"),
        (&slow, &["--fail-over-latency", "2"], 1, "latency_ratio"),
        (&quick, &["--fail-over-latency", "2"], 0, "0.00 times"),
        (&failing, &[], 0, "errored 1: the query has two `hyde:` parts"),
        // The surviving row is perfect, and says nothing about the other one.
        (
            &failing,
            &["--fail-under-jaccard", "0"],
            1,
            "rows_errored  1.000, has to be 0.000: \"kiwi\": the query has two",
        ),
    ] {
        let (found, out, err) = bench.run(extra);
        assert!(found == Some(code) && out.contains(words), "{extra:?}: {found:?} {out}{err}");
    }
    let settings = fs::read_to_string(half.0.path("project/.config/rankgate.toml")).unwrap();
    assert_eq!(settings, "[models]\nembedder = \"hash\"\n", "a replay changes no setting");
}

#[test]
fn what_is_no_replay_exits_with_2() {
    let bench = Bench::new(&[stable()]);
    for extra in [
        &["--fail-under-jaccard", "NaN"][..],
        &["--fail-under-jaccard", "abc"],
        &["--fail-under-top1", "1.5"],
        &["--fail-over-latency", "nan"],
        &["--fail-over-latency", "inf"],
        &["--fail-over-latency", "0"],
        &["--limit", "0"],
        &["--limit", "NaN"],
        &["--top-regressions", "many"],
        &["--mode", "balanced"],
    ] {
        let (code, out, err) = bench.run(extra);
        assert!(
            code == Some(2) && out.is_empty() && err.contains(extra[0]),
            "{extra:?}: {code:?} {out}{err}"
        );
    }
    let good = fs::read_to_string(bench.0.path("rows.ndjson")).unwrap();
    for (text, words) in [
        (String::new(), "there are no captured searches in it"),
        ("\n \n".into(), "there are no captured searches in it"),
        (format!("{good}\n{{"), "rows.ndjson:3: "),
        (good.replace(":1,", ":2,"), "this program reads 1 (update rankgate"),
        (good.replace("\"search\"", "\"find\""), "rows.ndjson:1: `tool_name`"),
        (good.replace("[\"a\",\"b\",\"c\"]", "7"), "`retrieved_slugs`"),
        (good.replace("kiwi", " "), "none of its 1 rows could be replayed"),
    ] {
        fs::write(bench.0.path("rows.ndjson"), text).unwrap();
        let (code, _, err) = bench.run(&["--fail-under-jaccard", "0"]);
        assert!(code == Some(2) && err.contains(words), "{words}: {code:?} {err}");
    }
    fs::remove_file(bench.0.path("rows.ndjson")).unwrap();
    let (code, out, err) = bench.run(&[]);
    assert!(code == Some(2) && out.is_empty() && err.contains("rows.ndjson"), "{err}");
    let nothing = bench.0.rankgate(&["eval", "replay"]).output().unwrap();
    assert_eq!(nothing.status.code(), Some(2));
}

#[test]
fn the_page_shows_what_moved_most_and_the_document_all_of_it() {
    let long = limited(row(Tool::Search, &"kiwi ".repeat(40), &["a", "b", "c"]), 3);
    let swapped = limited(row(Tool::Search, "kiwi", &["b", "a", "c"]), 3);
    let mut rows =
        vec![swapped, moved(), stable(), long, row(Tool::Search, "kiwi grape", &["d", "a\u{1b}[2J"])];
    rows.extend(vec![stable(); 25]);
    let bench = Bench::new(&rows);
    let (code, out, err) = bench.run(&["--limit", "28"]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(err.contains("Replaying 28 of 30 captured queries…") && err.contains("  ...25/28\n"), "{err}");
    assert!(!err.contains("...28/28") && !err.contains("50/"), "{err}");
    assert!(out.contains("Replayed 28 of 28 captured queries (0 skipped, 0 errored)"), "{out}");
    // Both without a common document come first, then the one whose order changed; nothing that is as it was.
    let top: Vec<&str> = out.lines().filter(|line| line.starts_with("  jaccard=")).collect();
    assert_eq!(top[0], "  jaccard=0.00  captured=3   current=3   \"kiwi\"");
    assert_eq!(top[2], "  jaccard=1.00 order=changed  captured=3   current=3   \"kiwi\"");
    assert_eq!(top.len(), 3, "{out}");
    assert!(out.contains("left     d  was 1: in no lane, down to rank 4"), "{out}");
    assert!(!out.contains('\u{1b}'));

    let json = bench.json(&["--top-regressions", "1"]);
    assert_eq!((json["version"].as_u64(), json["regressions"].as_array().unwrap().len()), (Some(1), 1));
    assert_eq!(json["regressions"][0]["diff"]["left"][0]["lost"]["stage"], "index");
    assert!(json.get("results").is_none());
    let json = bench.json(&["--verbose", "--top-regressions", "0"]);
    assert_eq!(json["regressions"], Value::Array(vec![]));
    assert_eq!(json["results"].as_array().unwrap().len(), 30);
    assert_eq!(
        (&json["results"][0]["top1_match"], &json["results"][0]["jaccard"]),
        (&false.into(), &1.0.into())
    );
    assert_eq!(json["summary"]["rows_total"], 30);
}

#[test]
fn a_baseline_is_replayed_without_its_header_and_what_is_left_out_is_named() {
    let bench = Bench::new(&[stable()]);
    let (from, to) = (bench.0.path("rows.ndjson"), bench.0.path("team.baseline.ndjson"));
    publish(&from, &to, &PublishOptions::default()).unwrap();
    fs::rename(to, &from).unwrap();
    let json = bench.json(&[]);
    assert_eq!(json["summary"]["rows_total"], 1, "the header is no row");
    let bench = Bench::new(&[stable(), row(Tool::Search, "mail [REDACTED] about kiwi", &["a"])]);
    let json = bench.json(&[]);
    assert_eq!((&json["summary"]["rows_total"], &json["summary"]["rows_skipped"]), (&2.into(), &1.into()));
    assert_eq!(json["not_replayed"][0]["reason"], "personal data was taken out of its text");
    assert_eq!(json["not_replayed"][0]["first_query"], "mail [REDACTED] about kiwi");
    let (code, out, _) = bench.run(&[]);
    assert!(code == Some(0) && out.contains("skipped 1: personal data was taken out"), "{out}");
}

#[test]
fn searches_by_words_are_replayed_where_the_model_is_missing() {
    let bench = Bench::new(&[stable(), moved()]);
    bench.0.settings("[models]\nembedder = \"no-such-model\"\n");
    let (code, out, err) = bench.run(&[]);
    assert!(code == Some(0) && err.contains("note: searches by meaning are left out"), "{err}");
    assert!(out.contains("Replayed 1 of 2 captured queries (1 skipped, 0 errored)"), "{out}");
    assert!(out.contains("skipped 1: it was searched by meaning, and there is no embedder"), "{out}");
}

/// Runs the eval `replay_gate` without any model at hand.
fn replay_gate(variables: &[(&str, &str)]) -> Ran {
    let none = tempfile::tempdir().unwrap();
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let mut command = clean(PROGRAM.get_or_init(|| program("evals")));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).arg("replay_gate");
    command.env("RANKGATE_HOME", none.path()).env("RANKGATE_DATA", none.path()).env("RANKGATE_OFFLINE", "1");
    command.envs(variables.iter().copied());
    Ran::new(command.output().unwrap())
}

#[test]
fn the_hermetic_gate_needs_no_model_and_refuses_floors_that_are_none() {
    let ran = replay_gate(&[]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let trials = ran.trials();
    assert_eq!(trials.get("replay_gate[query]::gate"), Some(&"ok"), "{trials:?}");
    assert!(trials.len() >= 2 * 10, "at least ten queries, by meaning and by both: {}", trials.len());
    // Words and meaning together miss two of the documents that have to come first: a higher floor fails.
    let ran = replay_gate(&[("RANKGATE_REPLAY_TOP1", "1"), ("RANKGATE_REPLAY_RECALL", "1")]);
    let trials = ran.trials();
    assert_eq!((ran.code, trials.get("replay_gate[query]::gate")), (101, Some(&"FAILED")), "{trials:?}");
    for floor in ["NaN", "abc", "1.2", ""] {
        let ran = replay_gate(&[("RANKGATE_REPLAY_TOP1", floor)]);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(ran.code != 0 && said.contains("RANKGATE_REPLAY_TOP1 is `"), "{floor}: {said}");
    }
}
