//! `rankgate index` as a process.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rankgate::Document;
use rankgate::models::HashEmbedder;
use rankgate::pipeline::index::IndexReader;
use rankgate::store::index::IndexDb;

use super::{build, document, words};

fn rankgate(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rankgate"));
    command.args(args).current_dir(home).env("RANKGATE_HOME", home).env("RANKGATE_EMBEDDER", "hash");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn output(home: &Path, args: &[&str]) -> Output {
    rankgate(home, args).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A folder `docs` with `count` documents, each with the word `version`.
fn write_corpus(home: &Path, count: usize, version: &str) {
    let docs = home.join("docs");
    fs::create_dir_all(&docs).unwrap();
    for n in 0..count {
        let text = format!("# Note {n}\n\n{version} {}\n", format!("word{n} filler text ").repeat(60));
        fs::write(docs.join(format!("n{n:04}.md")), text).unwrap();
    }
}

#[test]
fn the_command_reports_what_changed() {
    let home = tempfile::tempdir().unwrap();
    write_corpus(home.path(), 3, "first");
    let run = output(home.path(), &["index", "docs"]);
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success(), "{}", stderr(&run));
    assert!(
        text.starts_with("docs: 3 added, 0 changed, 0 removed, 0 unchanged; 3 passages, vectors by "),
        "{text}"
    );
    assert_eq!(stderr(&run), "");
    fs::write(home.path().join("docs/bad.md"), b"\xff\xfe").unwrap();
    let run = output(home.path(), &["index", "docs"]);
    assert_eq!(run.status.code(), Some(2));
    assert!(stderr(&run).contains("docs/bad.md: not UTF-8 at byte 0"), "{}", stderr(&run));
    let run = output(home.path(), &["index", "docs", "--skip-invalid", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!((&json["version"], &json["collections"][0]["unchanged"]), (&1.into(), &3.into()));
    assert!(json["skipped"][0].as_str().unwrap().contains("bad.md"));
    for name in ["a.pdf", "b.PDF", "c.html", "LICENCE", ".hidden"] {
        fs::write(home.path().join("docs").join(name), "x").unwrap();
    }
    let note = "note: 4 files of other kinds left out (2 .pdf, 1 without an ending, 1 .html); read are .md, ";
    let run = output(home.path(), &["index", "docs", "--skip-invalid"]);
    assert!(run.status.success() && stderr(&run).starts_with(note), "{}", stderr(&run));
    let run = output(home.path(), &["index", "absent"]);
    assert!(run.status.code() == Some(2) && stderr(&run).contains("absent: cannot read"), "{}", stderr(&run));
    fs::create_dir(home.path().join("void")).unwrap();
    let run = output(home.path(), &["index", "void"]);
    assert!(run.status.code() == Some(2) && stderr(&run).contains("no documents"), "{}", stderr(&run));
}

/// Lets `child` run for a while, then stops it as a power failure would.
fn kill_after(mut child: Child, moment: Duration) {
    std::thread::sleep(moment);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn killed_at_any_moment_the_index_is_the_old_or_the_new_one() {
    const COUNT: usize = 200;
    const ROUNDS: u32 = 10;
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("index");
    let model = HashEmbedder::default();
    write_corpus(home.path(), COUNT, "edition0");
    let started = Instant::now();
    assert!(output(home.path(), &["index", "docs"]).status.success());
    let whole = started.elapsed();
    let mut states = [0, 0];
    for round in 1..=ROUNDS {
        write_corpus(home.path(), COUNT, &format!("edition{round}"));
        // From the start of a run to its end, where the two commits are.
        let moment = whole * round / ROUNDS;
        kill_after(rankgate(home.path(), &["index", "docs"]).spawn().unwrap(), moment);
        let index = IndexReader::open(&dir).unwrap();
        let [old, new] = [round - 1, round].map(|edition| words(&index, &format!("edition{edition}")).len());
        assert!((old, new) == (COUNT, 0) || (old, new) == (0, COUNT), "round {round}: {old} old, {new} new");
        let passages = index.vectors(&model).unwrap().len();
        assert!((COUNT..=2 * COUNT).contains(&passages), "round {round}: {passages} vectors");
        states[usize::from(new > 0)] += 1;
        assert!(output(home.path(), &["index", "docs"]).status.success());
        assert_eq!(words(&IndexReader::open(&dir).unwrap(), &format!("edition{round}")).len(), COUNT);
    }
    eprintln!("killed: {} times the old state, {} times the new one", states[0], states[1]);
}

#[test]
fn the_repair_of_a_damaged_index_works() {
    let home = tempfile::tempdir().unwrap();
    write_corpus(home.path(), 3, "first");
    assert!(output(home.path(), &["index", "docs"]).status.success());
    let db = home.path().join("index/index.db");
    fs::write(&db, "x".repeat(5000)).unwrap();
    let run = output(home.path(), &["index", "docs"]);
    assert!(run.status.code() == Some(2) && stderr(&run).contains("move it away"), "{}", stderr(&run));
    fs::rename(&db, home.path().join("away")).unwrap();
    let run = output(home.path(), &["index", "docs"]);
    assert!(run.status.success(), "{}", stderr(&run));
    assert_eq!(words(&IndexReader::open(&home.path().join("index")).unwrap(), "first").len(), 3);
}

#[test]
fn two_runs_at_once_take_turns() {
    let home = tempfile::tempdir().unwrap();
    write_corpus(home.path(), 200, "shared");
    let runs: Vec<Child> =
        (0..3).map(|_| rankgate(home.path(), &["index", "docs", "--json"]).spawn().unwrap()).collect();
    let mut added = Vec::new();
    for run in runs {
        let run = run.wait_with_output().unwrap();
        assert!(run.status.success(), "{}", stderr(&run));
        let json: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
        added.push(json["collections"][0]["added"].as_u64().unwrap());
    }
    added.sort_unstable();
    assert_eq!(added, [0, 0, 200]);
    assert_eq!(words(&IndexReader::open(&home.path().join("index")).unwrap(), "shared").len(), 200);
}

#[test]
fn the_database_holds_vectors_tightly() {
    let dir = tempfile::tempdir().unwrap();
    let corpus: Vec<Document> = (0..400).map(|n| document(&format!("d{n}"), &format!("text {n}"))).collect();
    build(dir.path(), &corpus, Some(&HashEmbedder::new(384))).unwrap();
    let vectors = 400 * 384 * 4;
    let size = fs::metadata(dir.path().join("index.db")).unwrap().len();
    assert!(size < vectors * 5 / 4 + 200_000, "{size} bytes for {vectors} bytes of vectors");
    assert_eq!(IndexDb::open(dir.path()).unwrap().meta().unwrap().model.unwrap().dims, 384);
}
