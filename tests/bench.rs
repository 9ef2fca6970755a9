//! `rankgate bench publish` as a program: exit codes, output, and what a kill leaves behind.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rankgate::record::baseline::Baseline;
use rankgate::record::{Captured, Tool};
use serde_json::Value;

/// A folder with `rows` captured searches.
struct Folder(tempfile::TempDir);

impl Folder {
    fn with(rows: usize) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        let mut text = Vec::new();
        for id in 0..rows {
            let slugs = (0..10).map(|rank| format!("docs/{id}/{rank}.md")).collect();
            Captured::new(Tool::Query, format!("how to set option {id}"), slugs).write(&mut text).unwrap();
        }
        std::fs::write(folder.path("captured.ndjson"), text).unwrap();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn publish(&self, extra: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rankgate"));
        command.args(["bench", "publish", "--from"]).arg(self.path("captured.ndjson"));
        command.arg("--to").arg(self.path("team.baseline.ndjson")).args(extra);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, extra: &[&str]) -> (Option<i32>, String, String) {
        let Output { status, stdout, stderr } = self.publish(extra).output().unwrap();
        (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
    }
}

#[test]
fn publish_says_what_it_wrote_and_exits_as_documented() {
    let folder = Folder::with(3);
    let (code, out, _) = folder.run(&["--json", "--threshold-top1", "0.9"]);
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &json["row_count"], &json["label"]), (Some(0), &3.into(), &"team".into()));
    assert_eq!(json["thresholds"]["top1"], 0.9);
    assert!(Path::new(json["output_path"].as_str().unwrap()).is_absolute());
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/bench-publish.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
    jsonschema::validate(&schema, &json).unwrap();

    let before = std::fs::read(folder.path("team.baseline.ndjson")).unwrap();
    for (extra, wanted) in [
        (&[][..], "there is a file already (replace it with --force"),
        (&["--force", "--threshold-jaccard", "NaN"], "threshold `jaccard` is NaN"),
        (&["--force", "--threshold-jaccard", "abc"], "invalid float"),
        (&["--force", "--threshold-latency-multiplier", "inf"], "is inf, not above 0"),
        (&["--force", "--colour", "red"], "unexpected argument '--colour'"),
    ] {
        let (code, out, err) = folder.run(extra);
        assert!(code == Some(2) && out.is_empty() && err.contains(wanted), "{code:?} {err}");
    }
    std::fs::write(folder.path("captured.ndjson"), "{\"schema_version\":1}").unwrap();
    let (code, _, err) = folder.run(&["--force"]);
    assert!(code == Some(2) && err.contains("captured.ndjson:1: `tool_name` is missing"), "{err}");
    assert_eq!(std::fs::read(folder.path("team.baseline.ndjson")).unwrap(), before);
}

#[cfg(unix)]
#[test]
fn a_kill_never_leaves_half_a_baseline() {
    let folder = Folder::with(500);
    let started = Instant::now();
    assert_eq!(folder.run(&[]).0, Some(0));
    let whole_run = started.elapsed();
    let target = folder.path("team.baseline.ndjson");
    let old = std::fs::read(&target).unwrap();
    let (mut kept, mut replaced) = (0, 0);
    for moment in 0..50u32 {
        let mut child = folder.publish(&["--force", "--label", "new"]).spawn().unwrap();
        // Spread over the run by the golden ratio; the last part is where the file is renamed.
        let share = f64::from(moment) * 0.618_034 % 1.0;
        std::thread::sleep(Duration::from_secs_f64(whole_run.as_secs_f64() * share));
        child.kill().unwrap();
        child.wait().unwrap();
        if std::fs::read(&target).unwrap() == old {
            kept += 1;
        } else {
            let baseline = Baseline::open(&target).unwrap();
            assert_eq!((baseline.header.label.as_str(), baseline.header.row_count), ("new", 500));
            std::fs::write(&target, &old).unwrap();
            replaced += 1;
        }
    }
    assert!(kept > 0, "no kill came before the end: {replaced} runs were whole");
}

fn cjk(extra: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rankgate"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(["bench", "cjk-lexical"]).args(extra);
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

#[test]
fn a_selection_of_cjk_queries_is_reported_and_decides_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("corpus.jsonl", "{\"_id\": \"a\", \"title\": \"\", \"text\": \"备份保留三十五天\"}\n");
    write("queries.jsonl", "{\"_id\": \"q\", \"text\": \"保留多少天\"}\n");
    write("qrels.tsv", "query-id\tcorpus-id\tscore\nq\ta\t1\n");
    let (code, out, err) =
        cjk(&["--language", "ja", "--json", "--collection", folder.path().to_str().unwrap()]);
    assert_eq!(code, Some(0), "{err}");
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&json["queries"], &json["selection"], &json["decision"]),
        (&8.into(), &true.into(), &Value::Null)
    );
    let recall = &json["collections"][0]["recall@10"];
    assert_eq!((&recall["words"], &recall["default"]), (&0.0.into(), &1.0.into()));
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/bench-cjk-lexical.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
    jsonschema::validate(&schema, &json).unwrap();

    let (code, out, _) = cjk(&["--query", "zh-q004"]);
    assert!(
        code == Some(0) && out.contains("1 of 25 queries") && out.contains("nothing is decided"),
        "{out}"
    );
    for (extra, wanted) in [
        (&["--language", "th"][..], "no query of language `th`"),
        (&["--query", "zh-q999"], "no query `zh-q999`"),
        (&["--language", "ja", "--query", "zh-q004"], "no query is left"),
        (&["--language", "ja", "--write"], "cannot be used with"),
        (&["--fixture", "absent"], "manifest.json: cannot read"),
        (&["--passes", "0"], "invalid value"),
    ] {
        let (code, out, err) = cjk(extra);
        assert!(code == Some(2) && out.is_empty() && err.contains(wanted), "{code:?} {err}");
    }
}
