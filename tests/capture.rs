//! Capture as a program: what turns it on, what is exported and pruned, what the doctor says.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime};

use rankgate::record::captured::parse;
use rankgate::record::{Captured, Tool, utc};
use rankgate::store::captures::{Captures, DB_FILE, Wanted};
use serde_json::{Value, json};
use tempfile::TempDir;

mod crash;
mod recorder;

/// A user's folder and a project's, both empty.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn captures(&self) -> Captures {
        Captures::open(&self.path(DB_FILE)).unwrap()
    }

    /// Captures a search with this text at the moment `ago` before now.
    fn add(&self, tool: Tool, query: &str, ago: Duration) {
        self.captures().insert(&[row(tool, query, ago)]).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rankgate"));
        command.args(args).current_dir(self.0.path()).env("RANKGATE_HOME", self.0.path());
        command.env("RANKGATE_DATA", self.path("data")).env("RANKGATE_OFFLINE", "1");
        command.env("RANKGATE_EMBEDDER", "hash").env_remove("RANKGATE_CONTRIBUTOR_MODE");
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let Output { status, stdout, stderr } = self.command(args).output().unwrap();
        (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
    }

    /// The queries that `eval export` prints with these flags.
    fn exported(&self, flags: &[&str]) -> Vec<String> {
        let (code, out, err) = self.run(&[&["eval", "export"], flags].concat());
        assert_eq!(code, Some(0), "{err}");
        parse("export", out.as_bytes()).map(|row| row.unwrap().1.query).collect()
    }
}

fn row(tool: Tool, query: &str, ago: Duration) -> Captured {
    let moment = Some(utc(SystemTime::now() - ago));
    Captured { created_at: moment, ..Captured::new(tool, query, vec!["a.md".into()]) }
}

fn days(days: u64) -> Duration {
    Duration::from_secs(days * 86_400)
}

#[test]
fn a_setting_decides_and_the_variable_where_there_is_none() {
    let home = Home::new();
    home.write("docs/a.md", "# Backups\nDaily copies stay for 35 days.");
    assert_eq!(home.run(&["index", "docs"]).0, Some(0));
    let (on, off) = ("[eval]\ncapture = true\n", "[eval]\ncapture = false\n");
    let mut kept = 0;
    for (user, project, variable, captured) in [
        ("", "", None, false),
        ("", "", Some("0"), false),
        ("", "", Some("true"), false),
        ("", "", Some("1"), true),
        (on, "", None, true),
        (off, "", Some("1"), false),
        (off, on, None, true),
        (on, off, Some("1"), false),
    ] {
        home.write("config.toml", user);
        home.write(".config/rankgate.toml", project);
        let mut search = home.command(&["search", "copies"]);
        if let Some(value) = variable {
            search.env("RANKGATE_CONTRIBUTOR_MODE", value);
        }
        let output = search.output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        kept += u64::from(captured);
        let there = Captures::open_existing(&home.path(DB_FILE)).unwrap();
        assert_eq!(
            there.map_or(0, |captures| captures.count().unwrap()),
            kept,
            "{user:?} {project:?} {variable:?}"
        );
    }
    home.write("config.toml", "[eval]\ncapture = \"true\"\n");
    let (code, _, err) = home.run(&["search", "copies"]);
    assert!(code == Some(2) && err.contains("config.toml") && err.contains("line 2"), "{err}");
}

#[test]
fn every_search_of_the_command_line_is_kept_and_others_are_not() {
    let home = Home::new();
    home.write("docs/a.md", "# Backups\nDaily copies stay for 35 days.");
    home.write("config.toml", "[eval]\ncapture = true\n");
    assert_eq!(home.run(&["index", "docs"]).0, Some(0));
    for args in [
        &["search", "copies"][..],
        &["vsearch", "copies"],
        &["query", "--expander", "lexical", "copies", "-n", "3"],
        &["query", "--fast", "copies"],
        &["ask", "how long do copies stay?", "--passages", "2"],
        &["search", "nothing of the kind"],
    ] {
        assert_eq!(home.run(args).0, Some(0), "{args:?}");
    }
    assert_eq!(home.run(&["query", "copies", "--collection", "absent"]).0, Some(2)); // nothing came
    home.write("queries.json", r#"[{"id": "q", "query": "copies", "relevant": {"a.md": 1}}]"#);
    home.run(&["score", "--corpus", "docs", "--queries", "queries.json", "--mode", "bm25"]);
    let rows = home.captures().rows(&Wanted::default()).unwrap();
    let shown =
        rows.iter().rev().map(|row| (row.tool_name.name(), row.asked.limit, row.retrieved_slugs.len()));
    let wanted = [
        ("search", Some(10), 1),
        ("vsearch", Some(10), 1),
        ("query", Some(3), 1),
        ("query", Some(10), 1),
        ("ask", Some(2), 1),
        ("search", Some(10), 0),
    ];
    assert_eq!(shown.collect::<Vec<_>>(), wanted);
}

#[test]
fn a_reader_that_goes_away_costs_no_capture() {
    let home = Home::new();
    home.write("docs/a.md", "# Backups\nDaily copies stay for 35 days.");
    home.write("config.toml", "[eval]\ncapture = true\n");
    assert_eq!(home.run(&["index", "docs", "--no-vectors"]).0, Some(0));
    let mut child = home.command(&["search", "copies"]).spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
    assert_eq!(home.captures().count().unwrap(), 1);
}

#[test]
fn an_export_is_newest_first_and_filtered() {
    let home = Home::new();
    assert_eq!(
        home.run(&["eval", "export"]),
        (Some(0), String::new(), "0 captured searches exported\n".into())
    );
    assert!(!home.path(DB_FILE).exists(), "looking makes no database");
    home.add(Tool::Query, "old", days(9));
    home.add(Tool::Search, "new", days(1));
    home.add(Tool::Query, "older", days(40));
    let moment = SystemTime::now() - days(2);
    let twin = |query: &str| Captured { created_at: Some(utc(moment)), ..row(Tool::Ask, query, days(0)) };
    home.captures().insert(&[twin("first"), twin("second")]).unwrap();
    assert_eq!(home.exported(&[]), ["new", "second", "first", "old", "older"]);
    assert_eq!(home.exported(&["--limit", "2"]), ["new", "second"]);
    assert_eq!(home.exported(&["--since", "10 d", "--tool", "query"]), ["old"]);
    assert_eq!(home.exported(&["--since", "36h"]), ["new"]);
    assert_eq!(home.exported(&["--since", "0d"]), [""; 0]);
    assert_eq!(home.exported(&["--tool", "vsearch"]), [""; 0]);
    for flags in [
        &["--limit", "0"][..],
        &["--limit", "100001"],
        &["--limit", "-1"],
        &["--limit", "NaN"],
        &["--limit", "1.5"],
        &["--limit"],
        &["--since", "1w"],
        &["--since", "-1d"],
        &["--since", "yesterday"],
        &["--tool", "Query"],
        &["--tool", "grep"],
        &["--colour"],
    ] {
        let (code, out, err) = home.run(&[&["eval", "export"], flags].concat());
        assert!(code == Some(2) && out.is_empty() && !err.is_empty(), "{flags:?}: {code:?} {err}");
    }
    let (_, _, err) = home.run(&["eval", "export", "--since", "1w"]);
    assert!(err.contains("ms, s, m, h, d"), "{err}");
}

#[test]
fn what_is_exported_is_what_was_kept_whatever_it_holds() {
    let home = Home::new();
    let mut odd = row(Tool::Query, "a \u{202e}b\u{9b}31m \"c\"\n\u{1f980}", days(0));
    odd.latency_ms = Some(1.25);
    odd.extra = serde_json::from_str(r#"{"note": {"by": ["me", null, 1.5]}}"#).unwrap();
    home.captures().insert(std::slice::from_ref(&odd)).unwrap();
    let (code, out, _) = home.run(&["eval", "export"]);
    assert_eq!((code, out.lines().count()), (Some(0), 1));
    assert!(!out.contains(['\u{202e}', '\u{9b}']), "{out}");
    let read = parse("export", out.as_bytes()).next().unwrap().unwrap().1;
    assert_eq!(read, Captured { id: Some(1), ..odd });

    let file = home.path("out.ndjson");
    assert_eq!(home.run(&["eval", "export", "--to", "out.ndjson"]).1, "");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), out);
    assert_eq!(home.run(&["eval", "export", "--to", "out.ndjson"]).0, Some(0), "an export is replaced");
    home.write("notes.md", "mine");
    let (code, _, err) = home.run(&["eval", "export", "--to", "notes.md"]);
    assert!(code == Some(2) && err.contains("notes.md: holds no captured searches"), "{err}");
    assert_eq!(std::fs::read_to_string(home.path("notes.md")).unwrap(), "mine");
    assert_eq!(home.run(&["eval", "export", "--to", "absent/out.ndjson"]).0, Some(2));
}

#[test]
fn an_export_whose_reader_goes_away_has_not_failed() {
    let home = Home::new();
    let rows: Vec<_> = (0..2_000).map(|n| row(Tool::Query, &format!("query {n}"), days(1))).collect();
    assert_eq!(home.captures().insert(&rows).unwrap(), []);
    let mut child = home.command(&["eval", "export", "--limit", "100000"]).spawn().unwrap();
    let mut first = String::new();
    BufReader::with_capacity(64, child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.contains("query 1999"), "{first}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(home.exported(&[]).len(), 1_000);
}

#[test]
fn prune_removes_what_is_older_and_zero_everything() {
    let home = Home::new();
    let (code, out, _) = home.run(&["eval", "prune", "--older-than", "0d"]);
    assert!(code == Some(0) && out.starts_with("removed 0 captured searches"), "{out}");
    assert!(!home.path(DB_FILE).exists(), "looking makes no database");
    home.add(Tool::Query, "ancient secret", days(40));
    home.add(Tool::Query, "recent secret", days(1));
    let ahead = SystemTime::now() + days(3);
    let future = Captured { created_at: Some(utc(ahead)), ..row(Tool::Query, "future secret", days(0)) };
    home.captures().insert(&[future]).unwrap();

    let (code, out, _) = home.run(&["eval", "prune", "--older-than", "30d", "--dry-run"]);
    let cut = &utc(SystemTime::now() - days(30))[..10];
    assert!(
        code == Some(0) && out.starts_with("would remove 1 captured searches") && out.contains(cut),
        "{out}"
    );
    assert_eq!(home.captures().count().unwrap(), 3);
    assert!(home.run(&["eval", "prune", "--older-than", "30d"]).1.starts_with("removed 1 "));
    assert_eq!(home.exported(&[]), ["future secret", "recent secret"]);
    for bad in [&["--older-than", "1w"][..], &["--older-than", "-1d"], &["--older-than"], &[]] {
        assert_eq!(home.run(&[&["eval", "prune"], bad].concat()).0, Some(2), "{bad:?}");
    }
    assert!(home.run(&["eval", "prune", "--older-than", "0d"]).1.starts_with("removed 2 "));
    assert_eq!(home.captures().count().unwrap(), 0);
    for entry in home.0.path().read_dir().unwrap().map(|entry| entry.unwrap().path()) {
        assert!(!entry.is_file() || !holds(&entry, b"secret"), "{}", entry.display());
    }
}

fn holds(file: &Path, wanted: &[u8]) -> bool {
    std::fs::read(file).unwrap().windows(wanted.len()).any(|bytes| bytes == wanted)
}

#[test]
fn the_doctor_tells_what_is_wrong_and_exits_as_documented() {
    let home = Home::new();
    home.write("docs/a.md", "# Backups\nDaily copies stay for 35 days.");
    home.write("config.toml", "[search]\nrrf_k = 12.0\n[eval]\nscrub_pii = false\n");
    home.write(".config/rankgate.toml", "[eval]\ncapture = true\n");
    let doctor = || {
        let (code, out, err) = home.run(&["doctor", "--json"]);
        (code, serde_json::from_str::<Value>(&out).unwrap_or_else(|_| panic!("{out} {err}")))
    };
    let (code, report) = doctor();
    assert_eq!((code, &report["status"]), (Some(0), &json!("warn")));
    assert_eq!(status(&report, "index"), ("warn".into(), true), "{report:#}");
    assert_eq!(report["capture"]["on"], true);
    assert_eq!(report["capture"]["why"], "`eval.capture` is true");
    let origin = |key: &str| {
        let settings = report["settings"].as_array().unwrap();
        settings.iter().find(|setting| setting["key"] == key).unwrap()["origin"].as_str().unwrap().to_string()
    };
    assert!(
        origin("search.rrf_k").ends_with("config.toml") && origin("eval.scrub_pii").ends_with("config.toml")
    );
    assert!(origin("eval.capture").ends_with("rankgate.toml"));
    assert_eq!(
        (origin("models.embedder").as_str(), origin("search.fusion").as_str()),
        ("RANKGATE_EMBEDDER", "default")
    );

    assert_eq!(home.run(&["index", "docs"]).0, Some(0));
    assert_eq!(home.run(&["search", &"x".repeat(51_201)]).0, Some(0));
    home.run(&["search", "copies"]);
    let (code, report) = doctor();
    assert_eq!((code, report["capture"]["failures"].clone()), (Some(0), json!({"check_violation": 1})));
    assert_eq!(report["capture"]["searches"], 1);
    assert_eq!(status(&report, "capture failures").0, "warn");
    assert_eq!(status(&report, "index"), ("ok".into(), false));
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/doctor.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
    jsonschema::validate(&schema, &report).unwrap();
    let (_, text, _) = home.run(&["doctor"]);
    for wanted in [
        "ok    capture: on (`eval.capture` is true), personal data is kept; 1 searches in",
        "warn  capture failures: 1 searches of the last 24 hours were not kept: 1 check_violation",
        "ok    index: 1 documents in docs (1 vectors by hash)",
        "  models.embedder = \"hash\"  (RANKGATE_EMBEDDER)",
    ] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }

    // Another model than the one of the vectors, a file that is no database, a setting that is none.
    let (code, out, _) = {
        let output = home.command(&["doctor"]).env("RANKGATE_EMBEDDER", "all-minilm-l6-v2").output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), ())
    };
    assert!(code == Some(1) && out.contains("FAIL  index: ") && out.contains("were made by `hash`"), "{out}");
    home.write("cache.db", &"no database ".repeat(500));
    let (code, out, _) = home.run(&["doctor"]);
    assert!(code == Some(1) && out.contains("cache.db: ") && out.contains("the file is damaged"), "{out}");
    home.write("config.toml", "[serach]\n");
    assert_eq!(home.run(&["doctor"]).0, Some(2));
}

/// The status of a check, and whether its message says how to mend it.
fn status(report: &Value, name: &str) -> (String, bool) {
    let checks = report["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == name).unwrap();
    (check["status"].as_str().unwrap().into(), check["message"].as_str().unwrap().contains("rankgate index"))
}
