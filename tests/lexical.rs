//! What may be typed and what it must find, through a real index on disk.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use rankgate::pipeline::bm25::{Level, Lexical, LexicalDoc, LexicalField, LexicalResult, LexicalWriter};
use rankgate::text::{LexicalQuery, parse, tokens};
use tempfile::TempDir;

mod collections;

/// An index in a temporary folder; documents are known by their place in the list.
struct Fixture {
    dir: TempDir,
    lexical: Lexical,
    ids: Vec<String>,
}

impl Fixture {
    fn new(docs: &[LexicalDoc<'_>]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = LexicalWriter::open(dir.path()).unwrap();
        for (key, doc) in docs.iter().enumerate() {
            writer.put(key as u64, *doc).unwrap();
        }
        writer.commit(1).unwrap();
        let lexical = Lexical::open(dir.path()).unwrap();
        Self { dir, lexical, ids: docs.iter().map(|doc| doc.id.to_owned()).collect() }
    }

    /// Documents of bodies only, called by their first word.
    fn bodies(bodies: &[&'static str]) -> Self {
        let id = |body: &'static str| body.split_whitespace().next().unwrap();
        Self::new(&bodies.iter().map(|body| LexicalDoc { id: id(body), body, ..doc() }).collect::<Vec<_>>())
    }

    fn search(&self, query: &str) -> LexicalResult {
        self.lexical.search(&parse(query), None, 10).unwrap()
    }

    fn found(&self, query: &str) -> Vec<&str> {
        self.search(query).hits.iter().map(|hit| self.ids[hit.key as usize].as_str()).collect()
    }

    fn first(&self, query: &str) -> &str {
        self.found(query).first().copied().unwrap_or("(nothing)")
    }
}

fn doc() -> LexicalDoc<'static> {
    LexicalDoc { collection: "notes", ..LexicalDoc::default() }
}

fn compounds() -> Fixture {
    Fixture::bodies(&[
        "rt A real-time dashboard shows the lag of each queue",
        "estate Real estate and time zones",
        "realtime Our realtime feed is push based",
        "spaced In real time the clock ticks",
        "dec54 We follow DEC-0054 for storage",
        "dec55 We follow DEC-0055 for storage since December 0054",
        "snake Use snake_case for names",
        "zoo A snake in a case of glass",
        "agent A multi-agent planner",
        "agents Multiagent planning",
        "gpt4 The GPT4 release notes",
        "gpt-4 The gpt-4 model card",
        "gpt3 The gpt-3 model has 4 sizes",
        "name Call getUserName() before login",
        "cpp Written in C++ with templates",
        "csharp Written in C# with templates",
        "version Upgrade to v1.2.3 first",
        "mail Write to jo.doe@example.com today",
        "url See https://docs.example.org/api/v2/tokens?x=1#top for it",
        "file Edit config/nginx.conf and reload",
        "address Listens on 127.0.0.1:5432 by default",
    ])
}

#[test]
fn hyphen_compounds_find_every_spelling_and_the_parts_last() {
    let index = compounds();
    let found = index.found("real-time");
    assert_eq!((found[0], found[3]), ("rt", "estate"));
    assert!(found[1..3].contains(&"realtime") && found[1..3].contains(&"spaced"));
    assert_eq!(index.found("realtime").len(), 2);
    assert_eq!(index.found("multi-agent"), ["agent", "agents"]);
    assert_eq!(index.found("multiagent"), index.found("multi-agent").into_iter().rev().collect::<Vec<_>>());
}

#[test]
fn identifiers_are_found_whole_or_not_at_all() {
    let index = compounds();
    assert_eq!(index.found("DEC-0054"), ["dec54"]);
    assert_eq!(index.found("dec_0054"), ["dec54"]);
    assert_eq!(index.found("snake_case"), ["snake"]);
    assert_eq!(index.found("gpt-4"), ["gpt-4", "gpt4"]);
    assert_eq!(index.found("C++"), ["cpp"]);
    assert_eq!(index.found("c#"), ["csharp"]);
    assert_eq!(index.found("v1.2.3"), ["version"]);
}

#[test]
fn an_unknown_identifier_falls_back_to_its_parts() {
    let index = compounds();
    assert_eq!(index.first("storage-0055"), "dec55");
    assert_eq!(index.first("nginx.yaml"), "file");
}

#[test]
fn camel_case_is_found_whole_and_by_its_parts() {
    let index = compounds();
    for query in ["getUserName", "getusername", "user name", "get_user_name"] {
        assert_eq!(index.first(query), "name", "{query}");
    }
}

#[test]
fn parts_of_addresses_and_files_are_found() {
    let index = compounds();
    for query in ["example.com", "jo.doe@example.com", "doe"] {
        assert_eq!(index.found(query), ["mail"], "{query}");
    }
    for query in ["docs.example.org", "api/v2", "https://docs.example.org/api/v2/tokens?x=1#top"] {
        assert_eq!(index.first(query), "url", "{query}");
    }
    assert_eq!(index.found("nginx.conf"), ["file"]);
    assert_eq!(index.found("127.0.0.1:5432"), ["address"]);
}

#[test]
fn a_title_beats_a_longer_mention_in_a_body() {
    let long = "Some text about a token that is rotated. The jwt library has a token type, and rotation of logs \
                is another matter, as are many more words that say nothing of it at all.";
    let index = Fixture::new(&[
        LexicalDoc { id: "body", title: "Notes", body: long, ..doc() },
        LexicalDoc { id: "title", title: "JWT token rotation", body: "How we do it.", ..doc() },
        LexicalDoc { id: "other", title: "Cooking", body: "Pasta with oil.", ..doc() },
    ]);
    assert_eq!(index.found("jwt token rotation"), ["title", "body"]);
}

#[test]
fn a_path_beats_a_mention_in_a_body() {
    let index = Fixture::new(&[
        LexicalDoc { id: "docs/setup.md", body: "The auth module is part of the flow of a login.", ..doc() },
        LexicalDoc { id: "docs/auth-flow.md", body: "Reference doc.", ..doc() },
    ]);
    assert_eq!(index.found("auth flow"), ["docs/auth-flow.md", "docs/setup.md"]);
    assert_eq!(index.found("auth-flow.md"), ["docs/auth-flow.md"]);
}

#[test]
fn an_id_that_is_no_path_is_not_searched() {
    let index = Fixture::new(&[
        LexicalDoc { id: "2015", body: "Something else.", ..doc() },
        LexicalDoc { id: "7", body: "The broncos won in 2015.", ..doc() },
    ]);
    assert_eq!(index.found("2015"), ["7"]);
}

#[test]
fn a_title_repeated_by_its_body_counts_once() {
    let index = Fixture::new(&[
        LexicalDoc { id: "a", title: "Flow of heat", body: "Flow of heat . In a plate.", ..doc() },
        LexicalDoc { id: "b", title: "Flow of heat", body: "In a plate.", ..doc() },
    ]);
    let hits = index.search("heat").hits;
    assert_eq!(hits[0].score, hits[1].score);
    assert_eq!(hits[0].key, 0);
}

#[test]
fn quoted_words_must_stand_side_by_side() {
    let index = Fixture::bodies(&[
        "yes A zero downtime deploy of the api",
        "no Deploy with zero errors and no downtime",
    ]);
    assert_eq!(index.found("\"zero downtime deploy\""), ["yes"]);
    assert_eq!(index.found("\"zero downtime deploy"), ["yes"]);
    assert_eq!(index.found("api \"no downtime\""), ["no"]);
    // No document has the phrase: its words still count.
    assert_eq!(index.found("\"downtime zero\"").len(), 2);
}

#[test]
fn exclusion_reaches_title_path_and_body() {
    let index = Fixture::new(&[
        LexicalDoc { id: "plain.md", body: "The dashboard", ..doc() },
        LexicalDoc { id: "body.md", body: "The dashboard shows lag", ..doc() },
        LexicalDoc { id: "title.md", title: "Lag", body: "The dashboard", ..doc() },
        LexicalDoc { id: "lag.md", body: "The dashboard", ..doc() },
        LexicalDoc { id: "status.md", body: "The dashboard is a status page", ..doc() },
    ]);
    assert_eq!(index.found("dashboard -lag"), ["plain.md", "status.md"]);
    assert_eq!(index.found("dashboard -lag -\"status page\""), ["plain.md"]);
    assert_eq!(index.found("dashboard -\"page status\"").len(), 5);
    assert!(index.found("-lag").is_empty());
}

#[test]
fn a_collection_is_searched_as_if_it_were_alone() {
    let both = Fixture::new(&[
        LexicalDoc { id: "a", collection: "notes", body: "real-time notes and more", ..doc() },
        LexicalDoc { id: "b", collection: "mail", body: "real-time mail", ..doc() },
        LexicalDoc { id: "c", collection: "mail", body: "more mail of mine", ..doc() },
    ]);
    let alone = Fixture::new(&[
        LexicalDoc { id: "b", collection: "mail", body: "real-time mail", ..doc() },
        LexicalDoc { id: "c", collection: "mail", body: "more mail of mine", ..doc() },
    ]);
    assert_eq!(both.found("real-time").len(), 2);
    let filtered = both.lexical.search(&parse("real-time mail"), Some("mail"), 10).unwrap();
    let expected = alone.search("real-time mail");
    assert_eq!(filtered.terms, expected.terms);
    let scores = |result: &LexicalResult| result.hits.iter().map(|hit| hit.score).collect::<Vec<_>>();
    assert_eq!(scores(&filtered), scores(&expected));
    assert!(both.lexical.search(&parse("mail"), Some("absent"), 10).unwrap().hits.is_empty());
}

#[test]
fn a_question_finds_what_has_some_of_its_words() {
    let index = Fixture::bodies(&[
        "backup Backups run nightly and are kept for thirty days",
        "deploy Deploys happen on Tuesdays",
    ]);
    let result = index.search("how long do you keep my backups around, please?");
    assert_eq!((result.level, result.hits.len()), (Level::AnyTerm, 1));
    assert_eq!(index.found("how long do you keep a backup"), ["backup"]);
    assert_eq!(index.search("backups nightly").level, Level::AllTerms);
    assert_eq!(index.search("unrelated").level, Level::Nothing);
}

#[test]
fn a_document_with_every_word_precedes_one_that_repeats_a_few() {
    let index = Fixture::bodies(&[
        "repeats token token token token token token token token",
        "complete a token is rotated every night by a job that nobody has looked at for years",
        "third something about a job",
    ]);
    assert_eq!(index.first("token job"), "complete");
}

#[test]
fn inflected_and_accented_words_meet() {
    let index = Fixture::new(&[
        LexicalDoc { id: "en", body: "Rotating tokens in Zürich", ..doc() },
        LexicalDoc { id: "de", body: "Die Häuser der Stadt", lang: Some("de"), ..doc() },
    ]);
    assert_eq!(index.found("token rotation zurich"), ["en"]);
    assert_eq!(index.found("Haus"), ["de"]);
    assert_eq!(index.found("STADT"), ["de"]);
}

#[test]
fn a_misspelt_word_finds_its_neighbours_but_counts_as_unknown() {
    let index = Fixture::bodies(&["authentication Authentication of users", "other Something else"]);
    for query in ["authentcation", "autentication", "Authentikation"] {
        let result = index.search(query);
        assert_eq!((result.hits.len(), result.coverage, result.terms[0].df), (1, 0.0, 0), "{query}");
    }
    assert!(index.found("authx99").is_empty());
}

#[test]
fn runs_without_spaces_are_found_in_every_normal_form() {
    let index = Fixture::bodies(&[
        "zh 数据库连接超时的处理方法",
        "ja データベースの接続がタイムアウトした人々",
        "ko 데이터베이스 연결 시간이 초과되었습니다",
        "cat 昨日、子猫を見た",
        "th การเชื่อมต่อฐานข้อมูล",
        "mixed 使用 GPT-4模型 生成文本",
    ]);
    assert_eq!(index.first("数据库超时"), "zh");
    assert_eq!(index.first("ﾃﾞｰﾀﾍﾞｰｽ 接続"), "ja");
    assert_eq!(index.first("人々"), "ja");
    assert_eq!(index.first("\u{1103}\u{1166}\u{110b}\u{1175}\u{1110}\u{1165}베이스"), "ko");
    assert_eq!(index.first("ＧＰＴ－４ 模型"), "mixed");
    assert_eq!(index.first("ฐานข้อมูล"), "th");
    assert_eq!(index.found("猫"), ["cat"]);
    assert_eq!(index.found("型"), ["mixed"]);
    assert_eq!(index.found("\"连接超时\""), ["zh"]);
    assert_eq!(index.found("数据库 -超时"), Vec::<&str>::new());
}

#[test]
fn neighbouring_pairs_prefer_the_unbroken_word() {
    // Of the same length, so that only the neighbourhood tells them apart; keys would put the first before.
    let index =
        Fixture::bodies(&["apart 这里谈人工和工智以及智能的事情", "whole 这里谈人工智能的历史和别的事情"]);
    assert_eq!(index.first("人工智能"), "whole");
}

#[test]
fn statistics_tell_what_the_collection_knows_of_the_query() {
    let index = Fixture::bodies(&["a alpha beta", "b alpha", "c gamma"]);
    let result = index.search("alpha beta zzz");
    let df: Vec<_> = result.terms.iter().map(|t| (t.term.as_str(), t.df)).collect();
    assert_eq!(df, [("alpha", 2), ("beta", 1), ("zzz", 0)]);
    assert_eq!(result.documents, 3);
    let idf: Vec<f32> = result.terms.iter().map(|t| t.idf).collect();
    assert!((idf[0] - (1.0f32 + 1.5 / 2.5).ln()).abs() < 1e-6);
    let mass: f32 = idf.iter().sum();
    assert!((result.coverage - (idf[0] + idf[1]) / mass).abs() < 1e-6);
    let squares: Vec<f32> = idf.iter().map(|idf| idf * idf).collect();
    let mass: f32 = squares.iter().sum();
    assert!((result.hits[0].matched - (squares[0] + squares[1]) / mass).abs() < 1e-6);
    assert!((result.hits[1].matched - squares[0] / mass).abs() < 1e-6);
}

#[test]
fn an_explanation_adds_up_to_the_score() {
    let index = compounds();
    for query in ["real-time dashboard", "the storage", "authentcation of realtime feeds"] {
        for hit in index.search(query).hits {
            let parts = index.lexical.explain(&parse(query), None, hit.key).unwrap();
            let sum: f32 = parts.iter().map(|part| part.score).sum();
            assert!((sum - hit.score).abs() < 1e-4, "{query}: {sum} {}", hit.score);
            assert!(parts.iter().all(|part| part.field == LexicalField::Body));
        }
    }
    assert!(index.lexical.explain(&parse("time"), None, 999).unwrap().is_empty());
}

#[test]
fn the_same_documents_score_the_same_whatever_their_history() {
    let texts: Vec<String> =
        (0..300).map(|i| format!("word{} common text {}", i % 7, "x ".repeat(i % 50))).collect();
    let scores = |dir: &Path| {
        let lexical = Lexical::open(dir).unwrap();
        lexical.search(&parse("word3 common x"), None, 1000).unwrap()
    };
    let straight = tempfile::tempdir().unwrap();
    let mut writer = LexicalWriter::open(straight.path()).unwrap();
    for (key, body) in texts.iter().enumerate() {
        writer.put(key as u64, LexicalDoc { body, ..doc() }).unwrap();
    }
    writer.commit(1).unwrap();

    let winding = tempfile::tempdir().unwrap();
    let mut writer = LexicalWriter::open(winding.path()).unwrap();
    for (round, keys) in [(0..300), (100..200), (150..160)].into_iter().enumerate() {
        for key in keys.rev() {
            let other = LexicalDoc { body: "common common old text", ..doc() };
            writer
                .put(key as u64, if round == 0 { other } else { LexicalDoc { body: &texts[key], ..doc() } })
                .unwrap();
        }
        writer.commit(round as u64).unwrap();
    }
    for (key, body) in texts.iter().enumerate() {
        writer.put(key as u64, LexicalDoc { body, ..doc() }).unwrap();
    }
    writer.put(1000, LexicalDoc { body: "common", ..doc() }).unwrap();
    writer.commit(8).unwrap();
    writer.delete(1000);
    writer.commit(9).unwrap();
    assert_eq!(scores(straight.path()), scores(winding.path()));
}

#[test]
fn nothing_is_seen_before_its_commit_and_a_second_writer_is_refused() {
    let index = Fixture::bodies(&["a alpha"]);
    let mut writer = LexicalWriter::open(index.dir.path()).unwrap();
    assert_eq!(writer.generation(), 1);
    let error = LexicalWriter::open(index.dir.path()).err().unwrap();
    assert!(error.report().contains("another process is indexing"), "{}", error.report());
    writer.clear().unwrap();
    writer.put(7, LexicalDoc { body: "beta", ..doc() }).unwrap();
    assert_eq!(Lexical::open(index.dir.path()).unwrap().generation(), 1);
    writer.commit(2).unwrap();
    assert_eq!(index.found("alpha"), ["a"], "an open index keeps its commit");
    let fresh = Lexical::open(index.dir.path()).unwrap();
    assert_eq!(fresh.generation(), 2);
    assert!(fresh.search(&parse("alpha"), None, 10).unwrap().hits.is_empty());
    assert_eq!(fresh.search(&parse("beta"), None, 10).unwrap().hits[0].key, 7);
}

#[test]
fn a_missing_or_damaged_index_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let error = Lexical::open(&dir.path().join("absent")).err().unwrap();
    assert!(error.report().contains("there is no index"), "{}", error.report());
    LexicalWriter::open(dir.path()).unwrap().commit(1).unwrap();
    fs::write(dir.path().join("meta.json"), "{ \"truncated").unwrap();
    for error in [Lexical::open(dir.path()).err().unwrap(), LexicalWriter::open(dir.path()).err().unwrap()] {
        assert!(error.report().contains("index again"), "{}", error.report());
    }
}

#[test]
fn an_index_of_another_version_is_refused_by_readers_and_emptied_by_writers() {
    let index = Fixture::bodies(&["a alpha"]);
    let meta = index.dir.path().join("meta.json");
    let old = fs::read_to_string(&meta).unwrap().replace(index.lexical.version(), "lexical-0");
    fs::write(&meta, old).unwrap();
    let error = Lexical::open(index.dir.path()).err().unwrap();
    assert!(error.report().contains("index the documents again"), "{}", error.report());
    let mut writer = LexicalWriter::open(index.dir.path()).unwrap();
    assert_eq!(writer.generation(), 0);
    writer.put(1, LexicalDoc { body: "beta", ..doc() }).unwrap();
    writer.commit(1).unwrap();
    let lexical = Lexical::open(index.dir.path()).unwrap();
    assert_eq!(lexical.search(&parse("alpha beta"), None, 10).unwrap().hits.len(), 1);
}

#[test]
fn an_empty_index_answers_everything_with_nothing() {
    let index = Fixture::new(&[]);
    for query in ["a", "\"a b\"", "-a b", "猫", ""] {
        let result = index.search(query);
        assert!(result.hits.is_empty() && result.level == Level::Nothing && result.documents == 0);
    }
    assert!(compounds().lexical.search(&parse("real"), None, 0).unwrap().hits.is_empty());
}

#[test]
fn what_is_malformed_is_still_a_query() {
    let index = compounds();
    for query in [
        "\"unterminated real-time",
        "real-time AND dashboard (",
        "foo: real-time",
        "[1 TO real-time",
        "real-time*",
        "- real-time",
    ] {
        assert_eq!(index.first(query), "rt", "{query}");
    }
    for query in ["", "-", "\"", "🧊", "-\"\"", "\n\t", "\u{0}"] {
        assert!(index.found(query).is_empty(), "{query:?}");
    }
}

proptest! {
    // Every case of the second property makes an index on disk, hence so few.
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_query_fails_and_no_word_is_lost(query in r#"(\PC|["\-_. “„«»']|[a-z]{1,4}| [-"]|real-time|猫){0,24}"#) {
        thread_local!(static INDEX: Fixture = compounds());
        let parsed = parse(&query);
        let kept: Vec<_> = [&parsed.terms, &parsed.phrases, &parsed.excluded].into_iter().flatten().collect();
        for word in query.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            prop_assert!(kept.iter().any(|text| text.contains(word)), "{word:?} of {query:?} is lost: {parsed:?}");
        }
        INDEX.with(|index| index.search(&query));
    }

    #[test]
    fn every_word_of_a_document_finds_it(body in r"(\PC|[a-zA-Z0-9'. -]|[가-힣]|[ぁ-ん]|ｶﾞ){0,40}") {
        let index = Fixture::new(&[LexicalDoc { id: "it", body: &body, ..doc() }]);
        for word in body.split_whitespace().filter(|word| !tokens(word).is_empty()) {
            let query = LexicalQuery { terms: vec![word.into()], ..LexicalQuery::default() };
            let hits = index.lexical.search(&query, None, 10).unwrap().hits;
            prop_assert_eq!(hits.len(), 1, "{:?} of {:?}", word, body);
        }
    }
}
