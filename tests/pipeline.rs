//! The pipeline over small corpora, with an embedder that knows words alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use rankgate::models::{self, Embedder};
use rankgate::pipeline::index::IndexReader;
use rankgate::pipeline::indexer;
use rankgate::prelude::*;
use rankgate::settings::{Fusion, ModelSettings, SearchSettings};
use rankgate::store::cache::{Cache, CacheMode};
use rankgate::{Document, ErrorKind, Trace};
use tempfile::TempDir;

type Search = fn(&Pipeline, &Request) -> Result<(Ranking, Trace)>;
const WAYS: [(&str, Search); 3] =
    [("search", Pipeline::search), ("vsearch", Pipeline::vsearch), ("query", Pipeline::query)];

fn embedder() -> Arc<dyn Embedder> {
    let settings = ModelSettings { embedder: "hash".into(), ..ModelSettings::default() };
    models::embedder(&settings, None).unwrap()
}

/// Collections of documents (id and text) in a folder that vanishes with it.
struct Bench(TempDir);

impl Bench {
    fn new(collections: &[(&str, &[(&str, &str)])]) -> Self {
        let bench = Self(tempfile::tempdir().unwrap());
        for (collection, documents) in collections {
            bench.index(collection, documents, Some(&*embedder()));
        }
        bench
    }

    fn index(&self, collection: &str, documents: &[(&str, &str)], embedder: Option<&dyn Embedder>) {
        let document = |(id, body): &(&str, &str)| Document {
            id: (*id).into(),
            body: (*body).into(),
            ..Document::default()
        };
        let documents = documents.iter().map(document).map(Ok);
        indexer::build(self.0.path(), collection, documents, embedder, &mut |_| {}).unwrap();
    }

    fn pipeline(&self) -> Pipeline {
        self.with(SearchSettings::default())
    }

    fn with(&self, settings: SearchSettings) -> Pipeline {
        Pipeline::with_models(self.0.path(), &settings, Some(embedder()), None).unwrap()
    }

    fn reader(&self) -> IndexReader {
        IndexReader::open(self.0.path()).unwrap()
    }
}

fn fruit() -> Bench {
    Bench::new(&[(
        "notes",
        &[("a", "apples are red"), ("b", "bears are brown"), ("c", "cherries are small"), ("d", "dates")],
    )])
}

fn ask(parts: &[&str]) -> Request {
    let mut request = Request::parse(parts).unwrap();
    request.rerank = false;
    request
}

fn ids(found: &(Ranking, Trace)) -> Vec<&str> {
    found.0.docids().collect()
}

fn score(found: &(Ranking, Trace), docid: &str) -> f64 {
    found.0.hits.iter().find(|hit| hit.docid == docid).unwrap().score
}

fn field<'a>(found: &'a (Ranking, Trace), stage: &str, name: &str) -> &'a str {
    found.1.stage(stage).unwrap().fields.get(name).and_then(|value| value.as_str()).unwrap_or_default()
}

#[test]
fn structured_parts_reach_their_lane_only() {
    let pipeline = fruit().pipeline();
    let search = |parts: &[&str]| pipeline.search(&ask(parts)).unwrap();
    assert_eq!(ids(&search(&["apples", "intent: cherries", "hyde: dates"])), ["a"]);
    assert_eq!(ids(&search(&["apples", "term: bears"])), ["a", "b"]);

    let vsearch = |parts: &[&str]| pipeline.vsearch(&ask(parts)).unwrap();
    let plain = vsearch(&["apples"]);
    assert_eq!(vsearch(&["apples", "term: bears"]).0, plain.0);
    assert!(score(&vsearch(&["apples", "intent: cherries"]), "c") > score(&plain, "c"));
    assert!(score(&vsearch(&["apples", "hyde: dates"]), "d") > score(&plain, "d"));

    let all = pipeline.query(&ask(&["apples", "term: bears", "intent: cherries", "hyde: dates"])).unwrap();
    assert_eq!(field(&all, "bm25", "terms"), "apples:1 bears:1");
    let embedded = all.1.stages.iter().filter(|stage| stage.name == "embed").count();
    assert_eq!(embedded, 3, "the text, the intent and the hypothetical answer");
    // Parts alone are a query, too.
    assert_eq!(ids(&search(&["term: bears"])), ["b"]);
    assert_eq!(ids(&vsearch(&["intent: cherries"]))[0], "c");
}

#[test]
fn a_collection_is_chosen_before_the_best_are() {
    let many: Vec<(String, String)> = (0..150).map(|n| (format!("m{n}"), "apples apples".into())).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
    let few = [("weak", "much is said here of other things, and once of apples")];
    let bench = Bench::new(&[("many", &many), ("few", &few)]);
    for (name, search) in WAYS {
        let mut request = ask(&["apples"]).limit(1);
        assert!(ids(&search(&bench.pipeline(), &request).unwrap())[0].starts_with('m'), "{name}");
        request.collection = Some("few".into());
        assert_eq!(ids(&search(&bench.pipeline(), &request).unwrap()), ["weak"], "{name}");
        request.collection = Some("none".into());
        let error = search(&bench.pipeline(), &request).unwrap_err().report();
        assert!(error.contains("no collection `none`") && error.contains("few, many"), "{name}: {error}");
    }
}

#[test]
fn an_excluded_word_keeps_its_documents_out_of_every_lane() {
    let texts = [("both", "apples bananas"), ("one", "apples"), ("far", "grapes"), ("also", "bananas")];
    let pipeline = Bench::new(&[("fruit", &texts)]).pipeline();
    for (name, search) in WAYS {
        let answer = search(&pipeline, &ask(&["apples -bananas"])).unwrap();
        let found = ids(&answer);
        assert_eq!(found[0], "one", "{name}");
        assert!(!found.iter().any(|id| *id == "both" || *id == "also"), "{name}: {found:?}");
    }
}

#[test]
fn a_limit_beyond_the_corpus_returns_each_document_once() {
    let pipeline = fruit().pipeline();
    for (name, search) in WAYS {
        let found = search(&pipeline, &ask(&["are"]).limit(1_000_000)).unwrap();
        let mut ids = ids(&found);
        ids.sort_unstable();
        let expected: &[&str] = if name == "search" { &["a", "b", "c"] } else { &["a", "b", "c", "d"] };
        assert_eq!(ids, expected, "{name}");
    }
}

#[test]
fn equal_scores_are_ordered_and_cut_by_docid_whenever_they_were_indexed() {
    let twins = [("c", "twin apples"), ("b", "twin apples"), ("a", "twin apples"), ("d", "twin apples")];
    let bench = Bench::new(&[("notes", &twins[..2]), ("notes", &twins)]);
    for (name, search) in WAYS {
        let found = |limit| search(&bench.pipeline(), &ask(&["apples"]).limit(limit)).unwrap();
        assert_eq!(ids(&found(10)), ["a", "b", "c", "d"], "{name}");
        assert_eq!(ids(&found(2)), ["a", "b"], "{name}");
    }
}

#[test]
fn the_same_request_gives_the_same_ranking_and_every_stage_is_told() {
    let pipeline = fruit().pipeline();
    let query = |text: &str| pipeline.query(&Request::new(text)).unwrap();
    let names =
        |found: &(Ranking, Trace)| found.1.stages.iter().map(|stage| stage.name.clone()).collect::<Vec<_>>();
    let (first, second) = (query("red apples"), query("red apples"));
    assert_eq!(first.0, second.0);
    assert_eq!(names(&first), names(&second));
    // Once fused, the vector is refined and the lists are fused again.
    let stages = ["bm25", "embed", "vector", "fusion", "feedback", "fusion", "graph", "rerank"];
    assert_eq!(names(&first), stages);
    assert_eq!(field(&first, "rerank", "skipped"), "both lanes have the same document first");
    assert_eq!(field(&first, "graph", "skipped"), "graph_disabled");

    let unknown = query("zebras");
    assert_eq!(field(&unknown, "feedback", "skipped"), "no document contains the majority of the query");
    assert!(unknown.1.ran("rerank") && unknown.1.ran("embed_tokens"), "{:?}", names(&unknown));
    assert_eq!(field(&unknown, "rerank", "method"), "late-interaction");
}

#[test]
fn reciprocal_rank_fusion_is_chosen_by_request_and_by_setting() {
    let bench = fruit();
    let rrf = SearchSettings { fusion: Fusion::Rrf, ..SearchSettings::default() };
    let mut request = ask(&["apples"]);
    let by_setting = bench.with(rrf).query(&request).unwrap();
    assert_eq!(field(&bench.pipeline().query(&request).unwrap(), "fusion", "rule"), "adaptive");
    request.fusion = Some(Fusion::Rrf);
    let by_request = bench.pipeline().query(&request).unwrap();
    assert_eq!(field(&by_request, "fusion", "rule"), "rrf");
    assert_eq!(by_request.0, by_setting.0);
    // First in both lanes; then second in one of them.
    let scores: Vec<f64> = by_request.0.hits.iter().take(2).map(|hit| hit.score).collect();
    assert_eq!((ids(&by_request)[0], &scores[..]), ("a", &[2.0 / 61.0, 1.0 / 62.0][..]));
}

#[test]
fn reranking_can_be_left_out() {
    let found = fruit().pipeline().query(&ask(&["zebras"])).unwrap();
    assert_eq!(field(&found, "rerank", "skipped"), "not wanted");
    assert!(!found.1.ran("embed_tokens"));
}

#[test]
fn links_bring_in_a_neighbour_that_no_lane_found() {
    let documents = [
        ("hub.md", "apples, see [the end](far.md)"),
        ("near.md", "apples again"),
        ("far.md", "zebra crossing"),
        ("other.md", "quite unlike"),
    ];
    let bench = Bench::new(&[("notes", &documents)]);
    let few = SearchSettings { candidates: 3, ..SearchSettings::default() };
    let mut request = ask(&["apples", "intent: unlike"]).limit(3);
    let off = bench.with(few.clone()).query(&request).unwrap();
    assert_eq!(ids(&off), ["near.md", "hub.md", "other.md"]);
    assert_eq!(field(&off, "graph", "skipped"), "graph_disabled");

    request.graph = Some(true);
    let on = bench.with(few).query(&request).unwrap();
    assert_eq!(ids(&on), ["near.md", "hub.md", "far.md"]);
    assert!(on.1.ran("graph"));
    assert_eq!(on.0.hits[2].evidence[0].stage, "graph");
}

#[test]
fn an_index_without_vectors_refuses_meaning_and_tells_the_repair() {
    let bench = Bench(tempfile::tempdir().unwrap());
    bench.index("notes", &[("a", "apples")], None);
    let (pipeline, request) = (bench.pipeline(), ask(&["apples"]));
    assert_eq!(ids(&pipeline.search(&request).unwrap()), ["a"]);
    for (name, search) in &WAYS[1..] {
        let error = search(&pipeline, &request).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{name}");
        let said = error.report();
        assert!(said.contains("has no vectors") && said.contains("again without --no-vectors"), "{said}");
    }
    let plain = Pipeline::with_models(bench.0.path(), &SearchSettings::default(), None, None).unwrap();
    assert!(plain.vsearch(&request).unwrap_err().report().contains("open it with one"));
}

#[test]
fn a_request_that_asks_nothing_is_refused() {
    let pipeline = fruit().pipeline();
    for (name, search) in WAYS {
        for text in ["", " \n\t"] {
            let error = search(&pipeline, &Request::new(text)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage, "{name}: {}", error.report());
        }
    }
}

/// One query that judges `names`.
fn judging(names: &[(&str, i64)]) -> Vec<JudgedQuery> {
    let judgments = names.iter().map(|(name, grade)| ((*name).to_string(), *grade)).collect();
    vec![JudgedQuery { query: Query { id: "q7".into(), text: "x".into(), ..Query::default() }, judgments }]
}

#[test]
fn judgments_may_name_a_document_by_its_short_hash() {
    let bench = Bench::new(&[(
        "notes",
        &[("a", "apples"), ("b", "bears"), ("c", "twin"), ("d", "twin"), ("#1", "x")],
    )]);
    let index = bench.reader();
    let hash = |id: &str| index.find(id, None).unwrap().unwrap().short_hash();
    let resolved = index.resolve_hashes(judging(&[(&hash("a"), 3), ("b", 1), ("#1", 2)])).unwrap();
    assert_eq!(resolved, judging(&[("a", 3), ("b", 1), ("#1", 2)]));
    for (names, words) in [
        (vec![("#ffffff", 1)], "query `q7`: names `#ffffff`, and no document has that hash"),
        (vec![("#g7h8i9", 1)], "hexadecimal digits"),
        (vec![(hash("c").as_str(), 1)], "use the id, or more digits"),
        (vec![(hash("a").as_str(), 1), ("a", 2)], "docid `a`, which is judged twice"),
    ] {
        let error = index.resolve_hashes(judging(&names)).unwrap_err().report();
        assert!(error.contains("query `q7`") && error.contains(words), "{error}");
    }
}

// What follows runs the program itself.

fn rankgate(home: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rankgate"));
    command.args(args).current_dir(home).env("RANKGATE_HOME", home).env("RANKGATE_EMBEDDER", "hash");
    command.output().unwrap()
}

fn refused(output: &Output, words: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && words.iter().all(|words| said.contains(words)), "{said}");
}

fn write_corpus(home: &Path) {
    fs::create_dir(home.join("docs")).unwrap();
    for (name, text) in [("a.md", "# Apples\n\nThey are red."), ("b.md", "# Bears\n\nThey are brown.")] {
        fs::write(home.join("docs").join(name), text).unwrap();
    }
}

#[test]
fn score_takes_judgments_by_short_hash() {
    let home = tempfile::tempdir().unwrap();
    write_corpus(home.path());
    rankgate(home.path(), &["index", "docs"]);
    let found = rankgate(home.path(), &["search", "--json", "bears"]);
    let found: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
    let hash = found["hits"][0]["hash"].as_str().unwrap();
    let score = |hash: &str| {
        let queries = format!(r#"[{{"id": "q1", "query": "brown bears", "relevantDocs": ["{hash}"]}}]"#);
        fs::write(home.path().join("queries.json"), queries).unwrap();
        rankgate(home.path(), &["score", "--corpus", "docs", "--queries", "queries.json", "--json"])
    };
    let scored: serde_json::Value = serde_json::from_slice(&score(hash).stdout).unwrap();
    assert_eq!(scored["modes"]["hybrid"]["mrr"], 1.0, "{scored}");
    refused(&score("#000000"), &["query `q1`", "no document has that hash"]);
}

/// What was searched once is scored again under other judgments, without an index or a model.
#[test]
fn a_stored_run_is_scored_like_the_search_that_wrote_it() {
    let home = tempfile::tempdir().unwrap();
    write_corpus(home.path());
    let judge = |docid: &str| {
        let judged = format!(
            r#"[{{"id": "q1", "query": "they are brown", "relevantDocs": ["{docid}"]}},
                {{"id": "q2", "query": "red apples", "relevantDocs": ["a.md"]}}]"#
        );
        fs::write(home.path().join("queries.json"), judged).unwrap();
    };
    let figures = |args: &[&str], mode: &str| -> serde_json::Value {
        let args = [&["score", "--queries", "queries.json", "--json"], args].concat();
        let output = rankgate(home.path(), &args);
        let mut scored: serde_json::Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
        let figures = scored["modes"][mode].as_object_mut().unwrap();
        figures.retain(|name, _| !name.ends_with("_ms"));
        scored["modes"][mode].take()
    };
    judge("b.md");
    let searched = figures(&["--corpus", "docs", "--mode", "bm25", "--run-out", "bm25.run"], "bm25");
    fs::remove_dir_all(home.path().join("docs")).unwrap();
    assert_eq!(figures(&["--from-run", "bm25.run"], "bm25.run"), searched);
    judge("a.md");
    let rejudged = figures(&["--from-run", "bm25.run"], "bm25.run");
    assert_eq!((searched["mrr"].as_f64(), rejudged["mrr"].as_f64()), (Some(1.0), Some(0.75)));

    let score = |args: &[&str]| rankgate(home.path(), &[&["score"], args].concat());
    fs::write(home.path().join("other.run"), "q9 Q0 a.md 1 1.0 t\n").unwrap();
    refused(
        &score(&["--from-run", "other.run", "--queries", "queries.json"]),
        &["ranks none of the judged queries", "`q1`"],
    );
    refused(&score(&["--from-run", "bm25.run"]), &["--queries"]);
    refused(&score(&["--from-run", "absent.run", "--queries", "queries.json"]), &["absent.run"]);
    judge("#a1b2c3");
    refused(
        &score(&["--from-run", "bm25.run", "--queries", "queries.json"]),
        &["by its hash", "write docids"],
    );
}

#[test]
fn missing_queries_and_an_empty_corpus_are_named() {
    let home = tempfile::tempdir().unwrap();
    write_corpus(home.path());
    let score = |corpus: &str, queries: &str| {
        rankgate(home.path(), &["score", "--mode", "bm25", "--corpus", corpus, "--queries", queries])
    };
    refused(&score("docs", "absent.json"), &["absent.json: there is no such folder or file"]);
    let judged = r#"[{"id": "q1", "query": "bears", "relevantDocs": ["b.md"]}]"#;
    fs::write(home.path().join("queries.json"), judged).unwrap();
    fs::create_dir(home.path().join("void")).unwrap();
    refused(
        &score("void", "queries.json"),
        &["the corpus has no documents", "a corpus is a folder with .md"],
    );
    refused(&score("absent", "queries.json"), &["absent"]);
    let nowhere = r#"[{"id": "q1", "query": "bears", "relevantDocs": ["docs/b.md"]}]"#;
    fs::write(home.path().join("queries.json"), nowhere).unwrap();
    refused(
        &score("docs", "queries.json"),
        &["no relevant document is in the corpus", "`docs/b.md`", "--corpus"],
    );
}

/// An index is somebody's: scoring must not put a corpus beside what is in it.
#[test]
fn score_leaves_an_index_of_other_collections_alone() {
    let home = tempfile::tempdir().unwrap();
    write_corpus(home.path());
    let judged = r#"[{"id": "q1", "query": "bears", "relevantDocs": ["b.md"]}]"#;
    fs::write(home.path().join("queries.json"), judged).unwrap();
    assert!(rankgate(home.path(), &["index", "docs", "--index", "mine"]).status.success());
    let args =
        ["score", "--mode", "bm25", "--corpus", "docs", "--queries", "queries.json", "--index", "mine"];
    refused(
        &rankgate(home.path(), &args),
        &["mine: the index holds collection `docs`", "for this corpus alone"],
    );
    let found = rankgate(home.path(), &["search", "bears", "--index", "mine"]);
    assert_eq!(String::from_utf8_lossy(&found.stdout).matches("b.md").count(), 1);
}

/// Two folders of one name are one collection: whoever did not mean that must be told.
#[test]
fn a_collection_that_is_replaced_altogether_is_noted() {
    let home = tempfile::tempdir().unwrap();
    write_corpus(home.path());
    fs::create_dir_all(home.path().join("other/docs")).unwrap();
    fs::write(home.path().join("other/docs/c.md"), "Cats.").unwrap();
    let note = |path: &str| {
        let output = rankgate(home.path(), &["index", path]);
        String::from_utf8_lossy(&output.stderr).contains("collection `docs` held other documents before")
    };
    assert_eq!(["docs", "docs", "other/docs"].map(note), [false, false, true]);
}

/// A folder in which nobody may write: one of `dir`, or for a user who may write everywhere one of the kernel's.
fn unwritable(dir: &Path) -> Option<PathBuf> {
    let folder = dir.join("locked");
    fs::create_dir(&folder).unwrap();
    let mut permissions = fs::metadata(&folder).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&folder, permissions).unwrap();
    let kernel = PathBuf::from("/sys");
    let found = [folder, kernel].into_iter().find(|folder| {
        folder.is_dir() && fs::create_dir(folder.join("try")).is_err_and(|e| e.raw_os_error() != Some(2))
    });
    if found.is_none() {
        eprintln!("skipped: this user may write everywhere");
    }
    found
}

#[test]
fn a_folder_that_cannot_be_written_costs_the_cache_and_is_named_by_the_index() {
    let home = tempfile::tempdir().unwrap();
    let Some(locked) = unwritable(home.path()) else { return };
    write_corpus(home.path());
    let cache = Cache::with_mode(&locked.join("rankgate/cache.db"), CacheMode::On);
    let settings = ModelSettings { embedder: "hash".into(), ..ModelSettings::default() };
    let embedder = models::embedder(&settings, Some(Arc::new(cache))).unwrap();
    let bench = fruit();
    let pipeline = Pipeline::with_models(bench.0.path(), &SearchSettings::default(), Some(embedder), None);
    let request = Request::new("brown bears");
    assert_eq!(pipeline.unwrap().query(&request).unwrap().0, bench.pipeline().query(&request).unwrap().0);

    let mut index = Command::new(env!("CARGO_BIN_EXE_rankgate"));
    index.args(["index", "docs"]).current_dir(home.path()).env("RANKGATE_EMBEDDER", "hash");
    let output = index.env("RANKGATE_HOME", locked.join("rankgate")).output().unwrap();
    refused(&output, &[locked.to_str().unwrap(), "choose another folder with RANKGATE_HOME"]);
}
