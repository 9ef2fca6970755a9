//! Expansion and thoroughness: guardrails, the stage in the trace, and what a failing expander does to a search.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use rankgate::corpus::Expansion;
use rankgate::models::{self, Embedder, Prompt, ScriptedGenerator};
use rankgate::pipeline::expansion::{Expander, ExpansionRequest, LexicalExpander, MOST, guard, schema};
use rankgate::pipeline::{Expand, indexer};
use rankgate::prelude::*;
use rankgate::settings::{ModelSettings, SearchSettings, Thoroughness};
use rankgate::trace::{Stage, Trace};
use rankgate::{Document, ErrorKind};
use serde_json::{Value, json};
use tempfile::TempDir;

fn embedder() -> Arc<dyn Embedder> {
    let settings = ModelSettings { embedder: "hash".into(), ..ModelSettings::default() };
    models::embedder(&settings, None).unwrap()
}

const DOCUMENTS: [(&str, &str); 5] = [
    ("pool", "How traffic goes back to the former pool after a failed release. The switch takes a minute."),
    ("queue", "A queue grows when consumers are slow. The backlog is seen on the dashboard."),
    ("rpo", "The Recovery Point Objective (RPO) says how much data may be lost."),
    ("drain", "A node is drained before maintenance, so that no traffic reaches it."),
    ("fuel", "The tank of the generator holds fuel for two days."),
];

/// An index of [`DOCUMENTS`] in a folder that vanishes with it.
fn index() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let document = |(id, body): &(&str, &str)| {
        Ok(Document { id: (*id).into(), body: (*body).into(), ..Document::default() })
    };
    indexer::build(dir.path(), "notes", DOCUMENTS.iter().map(document), Some(&*embedder()), &mut |_| {})
        .unwrap();
    dir
}

fn pipeline(dir: &TempDir) -> Pipeline {
    Pipeline::with_models(dir.path(), &SearchSettings::default(), Some(embedder()), None).unwrap()
}

/// A pipeline whose generator answers by `script`.
fn scripted(dir: &TempDir, script: impl Fn(&Prompt) -> Result<String> + Send + Sync + 'static) -> Pipeline {
    pipeline(dir).with_generator(Arc::new(ScriptedGenerator::new("scripted", script)))
}

fn thorough(text: &str) -> Request {
    Request::new(text).thoroughness(Thoroughness::Thorough)
}

fn stage<'a>(trace: &'a Trace, name: &str) -> &'a Stage {
    trace.stage(name).unwrap_or_else(|| panic!("no stage `{name}` in {trace:?}"))
}

fn field<'a>(trace: &'a Trace, name: &str, field: &str) -> &'a str {
    stage(trace, name).fields.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn names(trace: &Trace) -> Vec<&str> {
    let mut names: Vec<&str> = trace.stages.iter().map(|stage| stage.name.as_str()).collect();
    names.dedup();
    names
}

#[test]
fn three_levels_are_three_pipelines() {
    let dir = index();
    let pipeline = pipeline(&dir);
    let run = |level| {
        pipeline.query(&Request::new("what about the backlog of traffic").thoroughness(level)).unwrap()
    };
    let (fast, balanced, full) =
        (run(Thoroughness::Fast), run(Thoroughness::Balanced), run(Thoroughness::Thorough));
    assert_eq!(names(&fast.1), ["bm25"]);
    assert!(
        !names(&balanced.1).contains(&"expansion") && balanced.1.ran("fusion"),
        "{:?}",
        names(&balanced.1)
    );
    assert!(
        full.1.ran("expansion") && full.1.ran("variants") && full.1.ran("fusion"),
        "{:?}",
        names(&full.1)
    );
    assert_eq!(field(&full.1, "expansion", "expander"), "lexical");
    // The setting decides where the request says nothing.
    let settings = SearchSettings { thoroughness: Thoroughness::Fast, ..SearchSettings::default() };
    let by_setting = Pipeline::with_models(dir.path(), &settings, None, None).unwrap();
    assert_eq!(by_setting.query(&Request::new("what about the backlog of traffic")).unwrap().0, fast.0);
}

#[test]
fn a_thorough_search_reranks_more() {
    let dir = tempfile::tempdir().unwrap();
    let document = |n: usize| {
        Ok(Document { id: format!("d{n}"), body: format!("word{n} apples"), ..Document::default() })
    };
    indexer::build(dir.path(), "notes", (0..60).map(document), Some(&*embedder()), &mut |_| {}).unwrap();
    let pipeline = pipeline(&dir);
    let reranked = |level| {
        let found = pipeline.query(&Request::new("zebras in the street").thoroughness(level)).unwrap();
        stage(&found.1, "rerank").fields["documents"].as_u64().unwrap()
    };
    assert_eq!((reranked(Thoroughness::Balanced), reranked(Thoroughness::Thorough)), (20, 40));
}

#[test]
fn a_model_expands_under_a_schema_and_its_variants_are_in_the_trace() {
    let dir = index();
    let pipeline = scripted(&dir, |prompt| {
        assert!(prompt.schema.is_some() && prompt.system.contains("lexicalQueries"), "{prompt:?}");
        Ok(json!({
            "lexicalQueries": ["slow consumers queue", "banana bread"],
            "vectorQueries": ["why does the queue grow", "how is cake baked"],
            "hyde": "A queue grows when consumers are slow.",
        })
        .to_string())
    });
    let (_, trace) = pipeline.query(&thorough("why is the queue of messages long")).unwrap();
    assert_eq!(field(&trace, "expansion", "expander"), "model");
    assert_eq!(field(&trace, "expansion", "model"), "scripted");
    assert_eq!(field(&trace, "expansion", "lexical"), "slow consumers queue");
    assert_eq!(field(&trace, "expansion", "vector"), "why does the queue grow");
    assert_eq!(field(&trace, "expansion", "hyde"), "A queue grows when consumers are slow.");
    assert_eq!(field(&trace, "expansion", "key").len(), 64);
}

#[test]
fn a_failing_or_late_model_leaves_the_plain_query_and_says_so() {
    let dir = index();
    let text = "why is the queue of messages long";
    let never = Request { expand: Some(Expand::Never), ..thorough(text) };
    let plain = pipeline(&dir).query(&never).unwrap();
    type Fails = fn() -> Result<String>;
    let failures: [(&str, Fails); 4] = [
        ("no answer within", || Err(Error::new(ErrorKind::Timeout, "no answer within 10 s"))),
        ("connection refused", || Err(Error::new(ErrorKind::Network, "connection refused"))),
        ("not JSON", || Ok("{\"lexicalQueries\": [\"a".into())),
        ("expansion@1.0", || Ok(json!({"lexicalQueries": "a", "vectorQueries": []}).to_string())),
    ];
    for (words, fails) in failures {
        let found = scripted(&dir, move |_| fails()).query(&thorough(text)).unwrap();
        assert_eq!(found.0, plain.0, "{words}");
        assert!(field(&found.1, "expansion", "error").contains(words), "{:?}", found.1);
        assert!(!found.1.sound("expansion") && found.1.stage("variants").is_none(), "{words}");
    }
}

#[test]
fn what_the_plain_search_is_sure_of_is_not_expanded_and_is_no_fault() {
    let dir = index();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let pipeline = scripted(&dir, move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        Ok(json!({"lexicalQueries": ["fuel"], "vectorQueries": ["fuel"]}).to_string())
    });
    let sure = pipeline.query(&thorough("tank of the generator")).unwrap();
    assert_eq!(sure.0.docids().next(), Some("fuel"));
    assert!(field(&sure.1, "expansion", "skipped").contains("sure"), "{:?}", sure.1);
    assert!(!sure.1.ran("expansion") && sure.1.sound("expansion"));
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    pipeline.query(&thorough("zebras")).unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[test]
fn parts_of_the_request_take_the_place_of_a_model() {
    let dir = index();
    let pipeline = scripted(&dir, |_| panic!("must not be asked"));
    let mut request =
        Request::parse(["tank of the generator", "term: fuel", "intent: how long it lasts"]).unwrap();
    request.thoroughness = Some(Thoroughness::Thorough);
    let (_, trace) = pipeline.query(&request).unwrap();
    assert!(trace.ran("expansion"));
    assert_eq!(field(&trace, "expansion", "expander"), "request");
    assert_eq!(field(&trace, "expansion", "lexical"), "fuel");
    assert_eq!(field(&trace, "expansion", "vector"), "how long it lasts");
}

#[test]
fn the_request_chooses_the_expander() {
    let dir = index();
    let with_model = scripted(&dir, |_| Ok(json!({"lexicalQueries": [], "vectorQueries": []}).to_string()));
    let expander = |pipeline: &Pipeline, expand| {
        let request = Request { expand, ..Request::new("zebras and queues") };
        pipeline
            .query(&request)
            .map(|(_, trace)| trace.stage("expansion").map(|s| s.fields["expander"].clone()))
    };
    assert_eq!(expander(&with_model, Some(Expand::Lexical)).unwrap(), Some(json!("lexical")));
    assert_eq!(expander(&with_model, Some(Expand::Model)).unwrap(), Some(json!("model")));
    assert_eq!(expander(&with_model, None).unwrap(), None, "balanced does not expand by itself");
    let error = expander(&pipeline(&dir), Some(Expand::Model)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
}

#[test]
fn trials_draw_their_own_answers() {
    let dir = index();
    let pipeline = scripted(&dir, |prompt| {
        assert_eq!((prompt.temperature, prompt.seed), (0.7, 9));
        let text = format!("queue number{}", prompt.trial);
        Ok(json!({"lexicalQueries": [text], "vectorQueries": []}).to_string())
    });
    let lexical = |trial| {
        let mut request = thorough("why is the queue of messages long");
        request.sampling = rankgate::pipeline::Sampling { temperature: 0.7, seed: 9, trial };
        let (_, trace) = pipeline.query(&request).unwrap();
        (field(&trace, "expansion", "lexical").to_string(), field(&trace, "expansion", "key").to_string())
    };
    let (first, second) = (lexical(0), lexical(1));
    assert_eq!((first.0.as_str(), second.0.as_str()), ("queue number0", "queue number1"));
    assert_eq!(first.1, second.1, "the key names the expansion, not the draw");
}

#[test]
fn variants_bring_no_excluded_document_into_any_lane() {
    let dir = index();
    let pipeline = scripted(&dir, |_| {
        Ok(json!({
            "lexicalQueries": ["traffic pool", "traffic node drained"],
            "vectorQueries": ["how does traffic go back to the former pool after a failed release"],
            "hyde": "Traffic goes back to the pool.",
        })
        .to_string())
    });
    let (hits, trace) = pipeline.query(&thorough("where goes traffic -pool")).unwrap();
    assert!(trace.ran("variants"), "{trace:?}");
    assert!(hits.docids().all(|docid| docid != "pool"), "{hits:?}");
    assert_eq!(field(&trace, "expansion", "lexical"), "traffic node drained");
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    let word = prop_oneof![
        Just("drain"),
        Just("node"),
        Just("-node"),
        Just("\"traffic"),
        Just("pool\""),
        Just("GPT-4"),
        Just("the"),
        Just("数据库"),
        Just("Kündigung"),
        Just("-"),
        Just("\u{202e}x"),
        Just("c++"),
        Just("127.0.0.1:5432"),
    ];
    let text =
        prop_oneof![prop::collection::vec(word, 0..8).prop_map(|words| words.join(" ")), any::<String>()];
    prop::collection::vec(text, 0..9)
}

proptest! {
    #[test]
    fn guardrails_hold_whatever_is_proposed(
        query in prop_oneof![
            Just("drain a node -pool".to_string()), Just("GPT-4 \"traffic pool\" -\"the node\"".to_string()),
            Just("数据库 -drain".to_string()), any::<String>(),
        ],
        lexical in texts(),
        vector in texts(),
        hyde in prop::option::of(any::<String>()),
        near in any::<bool>(),
    ) {
        let proposed = Expansion { lexical_queries: lexical, vector_queries: vector, hyde, notes: None };
        let found = guard(&query, None, proposed, |_| Ok(near)).unwrap();
        let parsed = rankgate::text::parse(&query);
        prop_assert!(jsonschema::is_valid(schema().as_value(), &serde_json::to_value(&found).unwrap()), "{found:?}");
        prop_assert!(found.lexical_queries.len() <= MOST && found.vector_queries.len() <= MOST);
        prop_assert_eq!(found.lexical_queries.is_empty(), parsed.is_empty() && found.lexical_queries.is_empty());
        let words = |text: &str| -> Vec<String> {
            rankgate::text::tokens(text).into_iter().map(|token| rankgate::text::fold(&token.text)).collect()
        };
        let excluded: Vec<Vec<String>> = parsed.excluded.iter().map(|text| words(text)).collect();
        // The query may contradict itself: what it asks for and excludes at once is its own affair.
        let own = words(&[parsed.terms.clone(), parsed.phrases.clone()].concat().join(" "));
        for text in found.lexical_queries.iter().chain(&found.vector_queries).chain(&found.hyde) {
            let asked = rankgate::text::parse(text);
            let theirs = words(&[asked.terms, asked.phrases].concat().join(" "));
            for excluded in excluded.iter().filter(|words| !words.is_empty()) {
                let back = excluded.iter().all(|word| theirs.contains(word));
                prop_assert!(!back || excluded.iter().all(|word| own.contains(word)), "{text:?} of {query:?}");
            }
        }
    }

    #[test]
    fn rules_take_any_query_and_any_passage(query in any::<String>(), passages in texts()) {
        let request = ExpansionRequest { feedback: &passages, ..ExpansionRequest::new(&query) };
        let found = LexicalExpander.expand(&request).unwrap();
        let found = guard(&query, None, found, |_| Ok(false)).unwrap();
        prop_assert!(found.lexical_queries.len() <= MOST);
        prop_assert!(!found.lexical_queries.is_empty() || rankgate::text::parse(&query).is_empty());
    }
}

// What follows runs the program itself.

fn rankgate(home: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rankgate"));
    command.args(args).current_dir(home).env("RANKGATE_HOME", home).env("RANKGATE_EMBEDDER", "hash");
    command.env("RANKGATE_OFFLINE", "1").output().unwrap()
}

fn indexed() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("docs")).unwrap();
    for (name, text) in DOCUMENTS {
        fs::write(home.path().join(format!("docs/{name}.md")), format!("# About {name}\n\n{text}")).unwrap();
    }
    assert!(rankgate(home.path(), &["index", "docs"]).status.success());
    home
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn flags_choose_level_and_expander() {
    let home = indexed();
    let query =
        |flags: &[&str]| rankgate(home.path(), &[&["query", "--json", "zebras and queues"], flags].concat());
    let trace = |flags: &[&str]| -> Trace {
        let found: Value = serde_json::from_str(&text(&query(flags))).unwrap();
        serde_json::from_value(found["trace"].clone()).unwrap()
    };
    assert_eq!(names(&trace(&["--fast"])), ["bm25"]);
    assert!(trace(&[]).stage("expansion").is_none());
    assert_eq!(field(&trace(&["--thorough", "--expander", "lexical"]), "expansion", "expander"), "lexical");
    assert!(trace(&["--thorough", "--no-expand"]).stage("expansion").is_none());
    for flags in [
        &["--fast", "--thorough"][..],
        &["--fast", "--graph"],
        &["--fast", "--expander", "lexical"],
        &["--no-expand", "--expander", "model"],
    ] {
        let refused = query(flags);
        assert_eq!(refused.status.code(), Some(2), "{flags:?}");
    }
}

#[test]
fn a_fast_query_needs_no_embedder() {
    let home = indexed();
    let mut command = Command::new(env!("CARGO_BIN_EXE_rankgate"));
    command.args(["query", "--fast", "tank"]).current_dir(home.path()).env("RANKGATE_HOME", home.path());
    let found =
        command.env("RANKGATE_EMBEDDER", "there-is-none").env("RANKGATE_OFFLINE", "1").output().unwrap();
    assert!(text(&found).contains("fuel.md"));
}

#[test]
fn explain_shows_what_was_searched_beside_the_query() {
    let home = indexed();
    let explained = |text: &str| {
        let args = ["query", "--thorough", "--expander", "lexical", "--explain", text];
        self::text(&rankgate(home.path(), &args))
    };
    let shown = explained("what about RPO and zebras");
    assert!(shown.contains("searched beside the query (expander: lexical)"), "{shown}");
    assert!(shown.contains("words    RPO") && shown.contains("Recovery Point Objective"), "{shown}");
    let sure = explained("tank of the generator");
    assert!(sure.contains("nothing  words and meaning are sure"), "{sure}");
}

#[test]
fn score_knows_the_three_levels() {
    let home = indexed();
    let judged = r#"[{"id": "q1", "query": "tank of the generator", "relevantDocs": ["fuel.md"]}]"#;
    fs::write(home.path().join("queries.json"), judged).unwrap();
    let args =
        ["--corpus", "docs", "--queries", "queries.json", "--json", "--mode", "fast", "--mode", "balanced"];
    let output = rankgate(home.path(), &[&["score"], &args[..], &["--mode", "thorough"]].concat());
    let scored: Value = serde_json::from_str(&text(&output)).unwrap();
    for mode in ["fast", "balanced", "thorough"] {
        assert_eq!(scored["modes"][mode]["mrr"], 1.0, "{scored}");
    }
    assert_eq!(scored["modes"]["thorough"]["failed_expansions"], 0);
}

#[test]
fn thorough_figures_of_plain_queries_are_refused() {
    let home = indexed();
    let judged = r#"[{"id": "q1", "query": "what about RPO and zebras", "relevantDocs": ["fuel.md"]}]"#;
    fs::write(home.path().join("queries.json"), judged).unwrap();
    let nobody = "[models]\npreset = \"gone\"\n[models.presets.gone]\nmodel = \"m\"\nretries = 0\n\
                  base_url = \"http://127.0.0.1:1/v1\"\n";
    fs::write(home.path().join("config.toml"), nobody).unwrap();
    let args = ["score", "--corpus", "docs", "--queries", "queries.json", "--mode", "thorough"];
    let refused = rankgate(home.path(), &args);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("1 of 1 expansions failed") && said.contains("models list"), "{said}");
    assert!(refused.stdout.is_empty());
}
