//! Replay: captured searches are run as they were, or named; and each lost document leads to its stage.

use std::sync::Arc;

use rankgate::corpus::{Expansion, Mode, QueryMode};
use rankgate::models::{Embedder, HashEmbedder, Reranker, ScriptedGenerator};
use rankgate::pipeline::{Expand, indexer};
use rankgate::prelude::*;
use rankgate::record::diff::{Lost, Place, RankedDiff};
use rankgate::record::{Captured, ReplayTally, Tool};
use rankgate::replay::{Options, Replayer, by_meaning, replay};
use rankgate::settings::{Fusion, SearchSettings, Thoroughness};
use rankgate::{Document, Error};
use tempfile::TempDir;

mod program;

/// Kiwi three times, twice, once; each document a word longer than the one before, so that BM25 ranks a, b, c.
pub const FRUIT: &[(&str, &str)] = &[
    ("a", "kiwi kiwi kiwi"),
    ("b", "kiwi kiwi grape lemon"),
    ("c", "kiwi grape lemon melon quince"),
    ("d", "plum"),
];

pub fn put(
    dir: &std::path::Path,
    collection: &str,
    documents: &[(&str, &str)],
    embedder: Option<&dyn Embedder>,
) {
    let document = |(id, body): &(&str, &str)| Document {
        id: (*id).into(),
        body: (*body).into(),
        ..Document::default()
    };
    indexer::build(dir, collection, documents.iter().map(document).map(Ok), embedder, &mut |_| {}).unwrap();
}

/// An index of `documents` with vectors, in a folder that vanishes with it.
fn index(documents: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "notes", documents, Some(&HashEmbedder::default()));
    dir
}

fn open(dir: &TempDir, settings: &SearchSettings, reranker: Option<Arc<dyn Reranker>>) -> Pipeline {
    Pipeline::with_models(dir.path(), settings, Some(Arc::new(HashEmbedder::default())), reranker).unwrap()
}

fn row(tool: Tool, query: &str, slugs: &[&str]) -> Captured {
    Captured::new(tool, query, slugs.iter().map(|slug| slug.to_string()).collect())
}

fn limited(mut row: Captured, limit: usize) -> Captured {
    row.asked.limit = Some(limit);
    row
}

fn docids(found: Result<(Ranking, rankgate::Trace)>) -> Vec<String> {
    found.unwrap().0.docids().map(str::to_string).collect()
}

#[test]
fn ten_rows_by_hand() {
    let dir = index(FRUIT);
    let pipeline = open(&dir, &SearchSettings::default(), None);
    assert_eq!(docids(pipeline.search(&Request::new("kiwi"))), ["a", "b", "c"]);
    let by_words = |query: &str, slugs: &[&str]| row(Tool::Search, query, slugs);
    // Jaccard, first document stable.
    let rows = [
        limited(by_words("kiwi", &["a", "b", "c"]), 3), // 1, yes
        limited(by_words("kiwi", &["a", "b", "x"]), 3), // {a b} of {a b c x}: 1/2, yes
        limited(by_words("kiwi", &["b", "a", "c"]), 3), // 1, no
        by_words("kiwi", &["x", "y", "z"]),             // 0, no
        by_words("zucchini", &[]),                      // nothing before, nothing now: 1, yes
        limited(by_words("kiwi", &[]), 10),             // 0, no
        by_words("zucchini", &["a"]),                   // 0, no
        by_words("plum", &["d"]),                       // 1, yes
        by_words("kiwi", &["a", "a", "b"]),             // two documents, compared with a, b: 1, yes
        by_words(" \n", &["a"]),                        // left out
    ];
    // One id for all: rows speak for themselves. The first took ages, the eighth no time at all.
    let latencies = [Some(1e9), None, None, Some(0.0), None, None, None, Some(1e-6), None, None];
    let rows =
        rows.into_iter().zip(latencies).map(|(row, latency_ms)| Captured { id: Some(7), latency_ms, ..row });
    let rows: Vec<Captured> = rows.collect();

    let results = replay(&pipeline, &rows, Options::default());
    let jaccard: Vec<_> = results.iter().filter_map(|row| row.jaccard()).collect();
    assert_eq!(jaccard, [1.0, 0.5, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0]);
    assert_eq!(results[9].skip_reason.as_deref(), Some("empty query"));
    assert_eq!(results[8].current_slugs, ["a", "b"]);
    let summary = results.iter().collect::<ReplayTally>().summary();
    let counts = (summary.rows_total, summary.rows_replayed, summary.rows_skipped, summary.rows_errored);
    assert_eq!(counts, (10, 9, 1, 0));
    assert_eq!((summary.mean_jaccard, summary.top1_stability_rate), (Some(5.5 / 9.0), Some(5.0 / 9.0)));
    // Two rows state a latency; ratio of the means, so next to nothing.
    assert_eq!(summary.rows_over_2x_latency, 1);
    assert!(summary.latency_ratio.unwrap() < 0.01 && summary.mean_latency_delta_ms.unwrap() < -4e8);
}

/// Documents on which the ways to search disagree. The last three have nothing to do with kiwis.
const DISAGREED: &[(&str, &str)] = &[
    ("far", "kiwi harvest report with many other words about soil rain wind sun and the long road to market"),
    ("near", "harvest kiwi"),
    ("half", "kiwi pruning harvest basket"),
    ("other", "apple harvest harvest harvest"),
    ("yield", "orchard yield figures"),
    ("tools", "ladders ropes gloves"),
    ("post", "letters parcels stamps"),
];

/// The row of what `found` says was found, at a limit that takes everything.
fn captured(tool: Tool, query: &str, found: Result<(Ranking, rankgate::Trace)>) -> Captured {
    let slugs = docids(found);
    limited(row(tool, query, &slugs.iter().map(String::as_str).collect::<Vec<_>>()), 20)
}

#[test]
fn each_row_is_searched_as_it_was() {
    let dir = index(DISAGREED);
    put(dir.path(), "archive", &[("old", "kiwi harvest of old")], Some(&HashEmbedder::default()));
    let refuses = ScriptedGenerator::new("refuses", |_| panic!("no model has a part in a replay"));
    let fond = Some(Arc::new(Fond("soil")) as Arc<dyn Reranker>);
    let pipeline = open(&dir, &SearchSettings::default(), fond).with_generator(Arc::new(refuses));
    let asked = "kiwi harvest";
    let request = || Request::new(asked).limit(20);
    let plain = || Request { rerank: false, ..request() };
    let unexpanded = docids(pipeline.query(&plain()));
    // What the plain search puts last is searched for as well.
    let last = DISAGREED.iter().find(|(id, _)| *id == unexpanded[unexpanded.len() - 1]).unwrap().1;
    let expansion = Expansion { lexical_queries: vec![last.into()], ..Expansion::default() };
    let term = QueryMode { mode: Mode::Term, text: last.into() };
    let in_archive = Request { collection: Some("archive".into()), ..request() };
    let expanded = Request { expansion: Some(expansion.clone()), ..plain() };
    let with_parts = Request { modes: vec![term.clone()], ..plain() };

    let mut rows = vec![
        captured(Tool::Search, asked, pipeline.search(&request())),
        captured(Tool::Vsearch, asked, pipeline.vsearch(&request())),
        captured(Tool::Query, asked, pipeline.query(&request())),
        captured(Tool::Query, asked, pipeline.query(&request().thoroughness(Thoroughness::Fast))),
        captured(Tool::Query, asked, pipeline.query(&plain())),
        captured(Tool::Search, asked, pipeline.search(&in_archive)),
        captured(Tool::Query, asked, pipeline.query(&expanded)),
        captured(Tool::Query, asked, pipeline.query(&with_parts)),
        captured(Tool::Ask, asked, pipeline.query(&request())),
        captured(Tool::Ask, asked, pipeline.search(&request())),
        captured(Tool::Query, asked, pipeline.query(&Request { expand: Some(Expand::Never), ..request() })),
    ];
    rows[3].asked.thoroughness = Some(Thoroughness::Fast);
    for index in [4, 6, 7] {
        rows[index].asked.rerank = Some(false);
    }
    rows[5].asked.collection = Some("archive".into());
    (rows[6].expand_enabled, rows[6].expansion_applied) = (Some(true), Some(true));
    rows[6].expansion = Some(expansion);
    (rows[7].asked.parts, rows[7].expansion_applied) = (vec![term], Some(true));
    rows[9].vector_enabled = Some(false);
    // It might have been expanded, and was not.
    rows[10].asked.thoroughness = Some(Thoroughness::Balanced);
    (rows[10].expand_enabled, rows[10].expansion_applied) = (Some(true), Some(false));
    for (index, result) in replay(&pipeline, &rows, Options::default()).iter().enumerate() {
        assert!(result.replayed(), "{index}: {result:?}");
        assert_eq!(result.current_slugs, result.captured_slugs, "{index}");
    }
    // Searched in another way, rows would differ: the check above can fail.
    let slugs = |index: usize| &rows[index].retrieved_slugs;
    for (one, other) in [(0, 1), (0, 2), (0, 5), (2, 4), (6, 4), (7, 4)] {
        assert_ne!(slugs(one), slugs(other), "{one} {other}");
    }
    assert_eq!(slugs(0), slugs(3));
}

#[test]
fn the_rule_of_fusion_is_that_of_the_row() {
    let dir = index(DISAGREED);
    let pipeline = open(&dir, &SearchSettings::default(), None);
    let fused = |query: &str, fusion| {
        let request = Request { fusion: Some(fusion), rerank: false, ..Request::new(query).limit(20) };
        let mut row = captured(Tool::Query, query, pipeline.query(&request));
        (row.asked.fusion, row.asked.rerank) = (Some(fusion), Some(false));
        row
    };
    let queries =
        ["kiwi harvest", "kiwi", "apple kiwi market", "harvest basket road", "yield of kiwi letters"];
    let pair = |query| [Fusion::Adaptive, Fusion::Rrf].map(|fusion| fused(query, fusion));
    let pairs = queries.map(pair);
    assert!(pairs.iter().any(|[one, other]| one.retrieved_slugs != other.retrieved_slugs));
    for result in replay(&pipeline, pairs.iter().flatten(), Options::default()) {
        assert_eq!(result.current_slugs, result.captured_slugs);
    }
}

#[test]
fn a_setting_of_today_does_not_turn_a_search_by_meaning_into_one_by_words() {
    let dir = index(DISAGREED);
    let fast = SearchSettings { thoroughness: Thoroughness::Fast, ..SearchSettings::default() };
    let both = docids(open(&dir, &SearchSettings::default(), None).query(&Request::new("kiwi harvest")));
    let slugs: Vec<&str> = both.iter().map(String::as_str).collect();
    let captured =
        Captured { vector_enabled: Some(true), ..limited(row(Tool::Query, "kiwi harvest", &slugs), 10) };
    let pipeline = open(&dir, &fast, None);
    assert_eq!(replay(&pipeline, [&captured], Options::default())[0].current_slugs, both);
    assert!(by_meaning(&captured, Thoroughness::Fast));
    let silent = row(Tool::Query, "kiwi", &[]);
    assert!(!by_meaning(&silent, Thoroughness::Fast) && by_meaning(&silent, Thoroughness::Balanced));
}

#[test]
fn what_cannot_be_searched_as_it_was_is_named() {
    let dir = index(FRUIT);
    let full = open(&dir, &SearchSettings::default(), None);
    let words = Pipeline::with_models(dir.path(), &SearchSettings::default(), None, None).unwrap();
    let other = Arc::new(HashEmbedder::new(8));
    let other = Pipeline::with_models(dir.path(), &SearchSettings::default(), Some(other), None).unwrap();
    let bare = tempfile::tempdir().unwrap();
    put(bare.path(), "notes", FRUIT, None);
    let bare = open(&bare, &SearchSettings::default(), None);
    let query = || row(Tool::Query, "kiwi", &["a"]);
    let mut nowhere = query();
    nowhere.asked.collection = Some("attic".into());
    let mut scrubbed = query();
    scrubbed.asked.parts = vec![QueryMode { mode: Mode::Term, text: "[REDACTED]".into() }];
    for (pipeline, captured, words) in [
        (&full, nowhere, "no collection `attic`"),
        (&full, row(Tool::Search, "mail from [REDACTED]", &["a"]), "personal data was taken out"),
        (&full, scrubbed, "personal data was taken out"),
        (&full, Captured { expansion_applied: Some(true), ..query() }, "does not say to what"),
        (&full, Captured { expand_enabled: Some(true), ..query() }, "does not say whether there was one"),
        (&full, limited(query(), 0), "its limit is 0"),
        (&full, limited(query(), usize::MAX), "not from 1 to 100000"),
        (&full, Captured { detail: Some("high".into()), ..query() }, "detail `high`"),
        (
            &full,
            Captured { vector_enabled: Some(true), ..row(Tool::Search, "kiwi", &["a"]) },
            "`search` was by words and meaning",
        ),
        (
            &full,
            Captured { vector_enabled: Some(false), ..row(Tool::Vsearch, "kiwi", &["a"]) },
            "not by meaning",
        ),
        (&words, query(), "there is no embedder"),
        (&bare, query(), "the index has no vectors"),
        (&other, query(), "are by `hash`, not by `hash`"),
    ] {
        let result = &replay(pipeline, [&captured], Options::default())[0];
        assert!(
            result.skip_reason.as_ref().is_some_and(|reason| reason.contains(words)),
            "{words}: {result:?}"
        );
        assert!(result.jaccard().is_none() && result.current_slugs.is_empty());
        assert!(Replayer::new(pipeline, Options::default()).diff(&captured).is_err());
    }
    // What needs no meaning is searched without it all the same.
    assert!(replay(&words, [&row(Tool::Search, "kiwi", &["a"])], Options::default())[0].replayed());
}

#[test]
fn a_search_that_fails_is_kept_with_its_error_and_stops_nothing() {
    let dir = index(FRUIT);
    let pipeline = open(&dir, &SearchSettings::default(), None);
    let mut two_answers = row(Tool::Query, "kiwi", &["a"]);
    let hyde = |text: &str| QueryMode { mode: Mode::Hyde, text: text.into() };
    two_answers.asked.parts = vec![hyde("one"), hyde("two")];
    let rows = [two_answers, row(Tool::Search, "plum", &["d"])];
    let results = replay(&pipeline, &rows, Options::default());
    assert!(results[0].error_message.as_ref().unwrap().contains("two `hyde:` parts"));
    assert_eq!(results[1].jaccard(), Some(1.0));
    let summary = results.iter().collect::<ReplayTally>().summary();
    assert_eq!((summary.rows_errored, summary.mean_jaccard), (1, Some(1.0)));
}

/// Puts documents with one word on top.
struct Fond(&'static str);

impl Reranker for Fond {
    fn name(&self) -> &str {
        "fond"
    }
    fn fingerprint(&self) -> &str {
        "fond"
    }
    fn score(&self, _: &str, passages: &[&str]) -> Result<Vec<f32>> {
        Ok(passages.iter().map(|passage| if passage.contains(self.0) { 1.0 } else { 0.0 }).collect())
    }
}

fn diff(pipeline: &Pipeline, captured: &Captured) -> RankedDiff {
    Replayer::new(pipeline, Options::default()).diff(captured).unwrap()
}

fn lost(pipeline: &Pipeline, captured: &Captured) -> Vec<Lost> {
    diff(pipeline, captured).left.into_iter().map(|left| left.lost.unwrap()).collect()
}

fn place(stage: &str, rank: usize) -> Place {
    Place { stage: stage.into(), rank }
}

#[test]
fn a_lost_document_leads_to_the_stage_that_lost_it() {
    let dir = index(FRUIT);
    let pipeline = open(&dir, &SearchSettings::default(), None);
    let by_words = |slugs: &[&str], limit| limited(row(Tool::Search, "kiwi", slugs), limit);
    // Gone from the index; in it, without the word; what was below the limit is not compared.
    let captured = by_words(&["gone", "d", "c"], 2);
    assert_eq!(lost(&pipeline, &captured), [Lost::Index, Lost::Lanes { looked: 4 }]);
    // Outranked.
    let captured = by_words(&["c"], 2);
    assert_eq!(lost(&pipeline, &captured), [Lost::Fusion { rank: 3, lanes: vec![place("bm25", 3)] }]);
    let found = diff(&pipeline, &captured);
    assert_eq!(found.entered.len(), 2);
    assert!(found.to_string().contains("left     c  was 1: now 3 of lane bm25"), "{found}");

    // The same document where lanes end after two.
    let short = SearchSettings { candidates: 2, ..SearchSettings::default() };
    let cut = Lost::Cut { lanes: vec![place("bm25", 3)], cut: 2 };
    assert_eq!(lost(&open(&dir, &short, None), &by_words(&["c"], 1)), [cut]);

    // Fusion prefers a: c is third of both lanes.
    let unranked = |slugs: &[&str]| {
        let mut captured = limited(row(Tool::Query, "kiwi", slugs), 1);
        captured.asked.rerank = Some(false);
        captured
    };
    let third = Lost::Fusion { rank: 3, lanes: vec![place("bm25", 3), place("vector", 3)] };
    assert_eq!(lost(&pipeline, &unranked(&["c"])), [third]);

    // The reranker puts b above a, which was first before it.
    let reranked = open(&dir, &SearchSettings::default(), Some(Arc::new(Fond("grape lemon"))));
    let captured = limited(row(Tool::Query, "kiwi", &["a"]), 1);
    let [Lost::Rerank { before: 1, after }] = lost(&reranked, &captured)[..] else { panic!("{captured:?}") };
    assert!(after > 1);

    // In another collection than the one that is searched.
    put(dir.path(), "archive", &[("e", "kiwi")], Some(&HashEmbedder::default()));
    let mut elsewhere = by_words(&["e"], 1);
    elsewhere.asked.collection = Some("notes".into());
    assert_eq!(lost(&open(&dir, &SearchSettings::default(), None), &elsewhere), [Lost::Index]);
}

#[test]
fn an_id_in_two_collections_is_one_document_and_no_error() {
    let dir = index(FRUIT);
    put(dir.path(), "copy", FRUIT, Some(&HashEmbedder::default()));
    let pipeline = open(&dir, &SearchSettings::default(), None);
    let captured = row(Tool::Search, "kiwi", &["a", "d"]);
    assert_eq!(replay(&pipeline, [&captured], Options::default())[0].current_slugs, ["a", "b"]);
    assert_eq!(lost(&pipeline, &captured), [Lost::Lanes { looked: 8 }]);
    let _: Error =
        Replayer::new(&pipeline, Options::default()).diff(&row(Tool::Search, "", &[])).unwrap_err();
}
