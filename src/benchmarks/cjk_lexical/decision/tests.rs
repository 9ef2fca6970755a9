//! What is frozen stays, and what was changed is named.

use super::super::fixture::CjkQuery;
use super::super::measure::co_run;
use super::*;

fn original() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/cjk-lexical")
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("is made");
    for entry in from.read_dir().expect("reads") {
        let path = entry.expect("reads").path();
        let target = to.join(path.file_name().expect("has a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, target).expect("is copied");
        }
    }
}

/// A copy of the fixture, with everything that was frozen.
fn copied() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary folder");
    copy(&original(), dir.path());
    dir
}

fn refused(dir: &Path, wanted: &str) {
    let error = Fixture::read(dir).and_then(|fixture| gates(&fixture)).expect_err(wanted).to_string();
    assert!(error.contains(wanted), "{error}\nis not about\n{wanted}");
}

fn replace(path: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(path).expect("reads");
    assert!(text.contains(from), "{} has no {from}", path.display());
    std::fs::write(path, text.replacen(from, to, 1)).expect("writes");
}

#[test]
fn the_gates_are_bound_to_the_frozen_baseline() {
    let fixture = Fixture::read(&original()).expect("keeps its rules");
    let bound = gates(&fixture).expect("unchanged").expect("are there");
    let queries: Vec<&CjkQuery> = fixture.queries.iter().collect();
    let mut run = co_run(&fixture, &queries, None, 0).expect("runs");
    check(&fixture, &bound, &run).expect("the plain tokenizer finds what it found");
    run.baseline.bm25.cases[0].found.push("zh/d001.md".into());
    let error = check(&fixture, &bound, &run).expect_err("differs").to_string();
    assert!(error.contains("the result of the plain tokenizer is not that of baseline/"), "{error}");
}

#[test]
fn a_change_of_fixture_baseline_or_gates_is_refused_by_name() {
    let dir = copied();
    replace(&dir.path().join("queries.json"), "备份保留多少天", "备份保留几天");
    refused(dir.path(), "queries.json: differs from what baseline/");

    let dir = copied();
    let frozen = artefact::latest(&dir.path().join("baseline")).expect("reads").expect("is there");
    replace(&frozen, "\"answered\": false", "\"answered\": true");
    refused(dir.path(), "was changed since it was frozen");

    let dir = copied();
    replace(&dir.path().join(GATES), "\"index_bytes_ratio\": 1.75", "\"index_bytes_ratio\": 3.0");
    refused(dir.path(), "the gates are not those that follow from the baseline");

    let dir = copied();
    replace(&dir.path().join(GATES), "\"version\": 1", "\"version\": 2");
    refused(dir.path(), "version 2 is unknown");
}

#[test]
fn freezing_writes_once_and_a_decision_beside_it() {
    let dir = copied();
    std::fs::remove_file(dir.path().join(GATES)).expect("is removed");
    let before = std::fs::read_dir(dir.path().join("baseline")).expect("reads").count();
    let fixture = Fixture::read(dir.path()).expect("keeps its rules");
    let queries: Vec<&CjkQuery> = fixture.queries.iter().collect();
    let run = co_run(&fixture, &queries, None, 0).expect("runs");
    let (frozen, written) = freeze(&fixture, &run).expect("writes");
    assert!(written.iter().all(|path| path.is_file()), "{written:?}");
    // The old baseline stays beside the new one.
    assert_eq!(std::fs::read_dir(dir.path().join("baseline")).expect("reads").count(), before + 2);
    let read = gates(&fixture).expect("unchanged").expect("are there");
    assert_eq!(
        (read.baseline, read.failure_coverage),
        (frozen.baseline.clone(), frozen.failure_coverage.clone())
    );
    let error = freeze(&fixture, &run).expect_err("once").to_string();
    assert!(error.contains("there are gates already"), "{error}");

    let decision = crate::benchmarks::cjk_lexical::gates::promotion(&frozen, &run.baseline, &run.candidate);
    let first = keep(&fixture, &frozen, &run, &decision).expect("writes");
    let bytes = std::fs::read(&first).expect("reads");
    assert_ne!(keep(&fixture, &frozen, &run, &decision).expect("writes"), first);
    assert_eq!(std::fs::read(&first).expect("reads"), bytes);
    // Nothing was timed, and nothing compared in Latin letters.
    assert!(String::from_utf8(bytes).expect("is text").contains("\"outcome\": \"no-ship\""));
}
