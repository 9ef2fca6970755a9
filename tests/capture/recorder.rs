//! Capture as a library: what a row holds, what is scrubbed, what becomes of searches that cannot be kept.

use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rankgate::corpus::{Mode, QueryMode};
use rankgate::models::{Embedder, HashEmbedder};
use rankgate::pipeline::{AskRequest, Expand, Pipeline, Request, indexer};
use rankgate::record::{Captured, Fingerprints, Tool};
use rankgate::settings::{Fusion, SearchSettings, Thoroughness};
use rankgate::store::captures::{Captures, DB_FILE, FailureReason, Recorder, Wanted};
use rankgate::{Document, ErrorKind};
use rusqlite::Connection;
use tempfile::TempDir;

const LONG: Duration = Duration::from_secs(60);

fn folder() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(DB_FILE);
    (dir, path)
}

/// All rows, oldest first.
fn rows(path: &std::path::Path) -> Vec<Captured> {
    let mut rows = Captures::open(path).unwrap().rows(&Wanted::default()).unwrap();
    rows.sort_by_key(|row| row.id);
    rows
}

fn search(query: &str) -> Captured {
    Captured::new(Tool::Search, query, vec!["a.md".into()])
}

/// A pipeline over two documents, recorded to the database beside its index.
fn recorded() -> (TempDir, PathBuf, Pipeline, Arc<Recorder>) {
    let (dir, path) = folder();
    let embedder: Arc<dyn Embedder> = Arc::new(HashEmbedder::default());
    let document =
        |id: &str, body: &str| Document { id: id.into(), body: body.into(), ..Document::default() };
    let documents = [
        document("backup.md", "Daily copies stay for 35 days. The master key is rotated every April."),
        document("cooling.md", "Filters are changed every quarter. The hall is kept at 24 degrees."),
    ];
    indexer::build(dir.path(), "notes", documents.map(Ok), Some(&*embedder), &mut |_| {}).unwrap();
    let pipeline =
        Pipeline::with_models(dir.path(), &SearchSettings::default(), Some(embedder), None).unwrap();
    let recorder = Arc::new(Recorder::start(&path, true));
    (dir, path, pipeline.with_recorder(recorder.clone()), recorder)
}

#[test]
fn a_row_holds_what_is_needed_to_search_again() {
    let (_dir, path, pipeline, recorder) = recorded();
    pipeline
        .search(&Request { collection: Some("notes".into()), ..Request::new("daily copies").limit(3) })
        .unwrap();
    pipeline.vsearch(&Request::new("filters")).unwrap();
    let mut request =
        Request::new("how long do the copies stay").limit(2).thoroughness(Thoroughness::Thorough);
    request.expand = Some(Expand::Lexical);
    request.fusion = Some(Fusion::Rrf);
    request.rerank = false;
    request.lang = Some("en".into());
    let (hits, _) = pipeline.query(&request).unwrap();
    let parts = vec![QueryMode { mode: Mode::Term, text: "april".into() }];
    pipeline.query(&Request { modes: parts.clone(), ..Request::new("rotation") }).unwrap();
    pipeline.query(&Request::new("copies").thoroughness(Thoroughness::Fast)).unwrap();
    let (answer, _) = pipeline.ask(&AskRequest::new(Request::new("how long do daily copies stay"))).unwrap();
    assert!(pipeline.query(&Request::new(" ")).is_err());
    assert_eq!(recorder.drain(LONG).written, 6);

    let rows = rows(&path);
    let tools: Vec<_> = rows.iter().map(|row| row.tool_name).collect();
    assert_eq!(tools, [Tool::Search, Tool::Vsearch, Tool::Query, Tool::Query, Tool::Query, Tool::Ask]);
    let [search, vsearch, query, parted, fast, ask] = rows.as_slice() else { panic!("six") };

    assert_eq!((search.asked.limit, search.asked.collection.as_deref()), (Some(3), Some("notes")));
    assert_eq!((search.asked.thoroughness, search.vector_enabled), (None, Some(false)));
    assert_eq!((vsearch.vector_enabled, vsearch.expand_enabled), (Some(true), Some(false)));

    assert_eq!(query.retrieved_slugs, hits.docids().map(String::from).collect::<Vec<_>>());
    assert_eq!(query.source_ids, ["notes"]);
    assert_eq!((query.expand_enabled, query.expansion_applied), (Some(true), Some(true)));
    assert!(query.expansion.as_ref().is_some_and(|e| !e.lexical_queries.is_empty()), "{query:?}");
    assert_eq!(query.extra["expander"], "lexical");
    let asked = &query.asked;
    assert_eq!((asked.thoroughness, asked.fusion), (Some(Thoroughness::Thorough), Some(Fusion::Rrf)));
    assert_eq!((asked.rerank, asked.graph, asked.lang.as_deref()), (Some(false), None, Some("en")));
    assert!(
        ["bm25", "vector", "fusion", "expansion"].iter().all(|s| query.stages.iter().any(|ran| ran == s))
    );
    assert!(!query.stages.iter().any(|ran| ran == "rerank"), "was skipped");

    assert_eq!((&parted.asked.parts, parted.expansion_applied), (&parts, Some(false)));
    assert_eq!((fast.asked.thoroughness, fast.vector_enabled), (Some(Thoroughness::Fast), Some(false)));
    assert_eq!((ask.asked.limit, ask.asked.thoroughness), (Some(5), Some(Thoroughness::Balanced)));
    assert_eq!(ask.retrieved_slugs[0], "backup.md");
    let text = answer.text.trim_end_matches(" [1]");
    assert!(
        !text.is_empty() && !serde_json::to_string(ask).unwrap().contains(text),
        "the answer is not kept"
    );

    // What was asked for, or was not looked at, depends on no setting.
    let left = |row: &Captured| row.fingerprints.settings.keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!((left(search), left(vsearch), left(fast)), Default::default());
    assert_eq!(left(query), "candidates graph rrf_k");
    assert_eq!(left(parted), "candidates fusion graph rerank_depth thoroughness");
    // A passage for every document, or none at all.
    assert!(search.retrieved_chunk_ids.is_empty() && fast.retrieved_chunk_ids.is_empty());
    for row in [vsearch, query, parted, ask] {
        assert_eq!(row.retrieved_chunk_ids, vec![0; row.retrieved_slugs.len()], "{row:?}");
    }

    let now = pipeline.fingerprints().unwrap();
    for row in &rows {
        let Fingerprints { corpus, index, models, code, collections, rules, model_names, settings } =
            &row.fingerprints;
        assert_eq!((corpus, index, code), (&now.corpus, &now.index, &now.code));
        assert_eq!((collections, rules), (&now.collections, &now.rules));
        assert!(models.iter().all(|(stage, model)| now.models.get(stage) == Some(model)), "{models:?}");
        assert!(model_names.keys().eq(models.keys()) && model_names.values().all(|name| name == "hash"));
        assert!(settings.iter().all(|(name, value)| now.settings.get(name) == Some(value)), "{settings:?}");
        assert_eq!(models.contains_key("vector"), row.vector_enabled == Some(true));
        assert!(row.latency_ms.is_some_and(|ms| ms > 0.0) && row.created_at.is_some());
        assert_eq!(row.remote, Some(false));
        assert!(row.extra["tool_version"].as_str().is_some_and(|version| version.starts_with("rankgate ")));
    }
}

#[test]
fn personal_data_is_on_no_disk_unless_it_is_wanted() {
    for (scrub, query) in [(true, "mail [REDACTED] now"), (false, "mail jane@example.com now")] {
        let (dir, path) = folder();
        let recorder = Recorder::start(&path, scrub);
        recorder.record(search("mail jane@example.com now"));
        assert_eq!(recorder.drain(LONG).written, 1);
        assert_eq!(rows(&path)[0].query, query);
        let files = dir.path().read_dir().unwrap().map(|entry| entry.unwrap().path());
        let kept = files.filter(|file| super::holds(file, b"jane@example.com")).count();
        assert_eq!(kept == 0, scrub);
    }
}

#[test]
fn what_the_table_refuses_is_counted_and_the_rest_is_kept() {
    let (_dir, path) = folder();
    let recorder = Recorder::start(&path, true);
    recorder.record(search(&"é".repeat(51_200)));
    recorder.record(search(&"é".repeat(51_201)));
    recorder.record(search(&format!("a\0{}", "é".repeat(51_200)))); // `length` sees one letter
    recorder.record(Captured { created_at: Some("yesterday".into()), ..search("dated by hand") });
    recorder.record(Captured { detail: Some("utmost".into()), ..search("detailed") });
    recorder.record(Captured { latency_ms: Some(-1.0), ..search("back in time") });
    let endless =
        Captured { retrieved_slugs: vec!["x".repeat(1_000); 5_000], ..search("more than a line holds") };
    recorder.record(endless);
    let drained = recorder.drain(LONG);
    assert_eq!((drained.written, drained.unfinished), (1, 0));
    assert_eq!(drained.failed.into_iter().collect::<Vec<_>>(), [(FailureReason::CheckViolation, 6)]);
    let failures = Captures::open(&path).unwrap().failures("2000-01-01T00:00:00.000Z").unwrap();
    assert_eq!(failures.into_iter().collect::<Vec<_>>(), [(FailureReason::CheckViolation, 6)]);

    let raw = Connection::open(&path).unwrap();
    for sql in [
        "insert into eval_candidates (tool_name, query, created_at) values ('grep', 'x', '2026-01-01T00:00:00.000Z')",
        "insert into eval_capture_failures (ts, reason) values ('2026-01-01T00:00:00.000Z', 'weather')",
    ] {
        assert!(raw.execute(sql, []).unwrap_err().to_string().contains("CHECK"), "{sql}");
    }
}

#[test]
fn a_full_queue_and_a_panic_cost_their_own_row_alone() {
    let (_dir, path) = folder();
    let recorder = Recorder::with_queue(&path, true, 1);
    let (entered, inside) = mpsc::channel();
    let (release, gate) = mpsc::channel::<()>();
    recorder.record_with(move || {
        entered.send(()).unwrap();
        gate.recv().unwrap();
        search("slow")
    });
    inside.recv().unwrap(); // the thread is busy now, and the queue empty
    recorder.record(search("waits"));
    recorder.record(search("too much"));
    recorder.record(search("too much as well"));
    assert_eq!(recorder.drain(Duration::ZERO).unfinished, 2);
    release.send(()).unwrap();
    assert_eq!(recorder.drain(LONG).written, 2);
    recorder.record_with(|| panic!("of whoever makes rows"));
    recorder.drain(LONG);
    recorder.record(search("after"));
    let drained = recorder.drain(LONG);
    let expected = [(FailureReason::QueueFull, 2), (FailureReason::Other, 1)];
    assert_eq!((drained.written, drained.failed.into_iter().collect::<Vec<_>>()), (3, expected.to_vec()));
    let failures = Captures::open(&path).unwrap().failures("2000-01-01T00:00:00.000Z").unwrap();
    assert_eq!(failures.into_iter().collect::<Vec<_>>(), expected, "each is noted once");
    assert_eq!(
        rows(&path).iter().map(|row| row.query.as_str()).collect::<Vec<_>>(),
        ["slow", "waits", "after"]
    );
}

#[test]
fn a_drain_ends_in_time_and_a_busy_database_loses_nothing() {
    let (_dir, path) = folder();
    drop(Captures::open(&path).unwrap());
    let other = Connection::open(&path).unwrap();
    other.execute_batch("begin immediate").unwrap();
    let recorder = Recorder::start(&path, true);
    recorder.record(search("while another writes"));
    let drained = recorder.drain(Duration::from_millis(700));
    assert_eq!((drained.written, drained.unfinished), (0, 1));
    other.execute_batch("commit").unwrap();
    let drained = recorder.drain(LONG);
    assert_eq!((drained.written, drained.failed.len(), drained.unfinished), (1, 0, 0));
}

#[test]
fn a_folder_or_file_that_cannot_be_used_fails_no_search_and_is_kept() {
    let (dir, path) = folder();
    std::fs::write(dir.path().join("file"), "in the way").unwrap();
    let newer = dir.path().join("newer.db");
    Connection::open(&newer).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let error = Captures::open(&newer).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Version);
    let before = std::fs::read(&newer).unwrap();
    std::fs::write(&path, "no database ".repeat(500)).unwrap();
    for path in [dir.path().join("file/captures.db"), newer.clone(), path] {
        let recorder = Recorder::start(&path, true);
        recorder.record(search("x"));
        let drained = recorder.drain(LONG);
        assert_eq!(drained.failed.into_iter().collect::<Vec<_>>(), [(FailureReason::Other, 1)], "{path:?}");
    }
    assert_eq!(std::fs::read(&newer).unwrap(), before);
}

#[test]
fn a_full_disk_has_a_reason_of_its_own() {
    let (_dir, path) = folder();
    let mut captures = Captures::open(&path).unwrap();
    captures.insert(&[search("fits")]).unwrap();
    let raw = Connection::open(&path).unwrap();
    // A database that may not grow answers as a full disk does.
    let pages: i64 = raw.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    raw.pragma_update(None, "max_page_count", pages).unwrap();
    let big = "x".repeat(200_000);
    let sql = "insert into eval_candidates (tool_name, query, extra, created_at)
               values ('query', 'q', ?1, '2026-01-01T00:00:00.000Z')";
    let error = raw.execute(sql, [&big]).unwrap_err();
    assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::DiskFull));
    assert_eq!(FailureReason::of(&error), FailureReason::DiskFull);
    assert_eq!(captures.count().unwrap(), 1);
}
