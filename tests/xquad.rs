//! What language models and answerers do on real collections, printed: too slow for every change.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rankgate::Document;
use rankgate::corpus::{self, Answer};
use rankgate::metrics::significance::paired_randomisation;
use rankgate::metrics::{ndcg_at, stats};
use rankgate::pipeline::{Answerer, AskRequest, Expand, Pipeline, Request, indexer};
use rankgate::settings::Settings;
use rankgate::store::cache::Cache;
use serde_json::Value;

/// Share of answers whose cited passage holds the gold answer, and of questions without one that are refused.
#[derive(Default)]
struct Tally {
    answerable: usize,
    answered: usize,
    gold_cited: usize,
    gold_in_text: usize,
    unanswerable: usize,
    refused: usize,
    invalid: usize,
    seconds: f64,
}

impl Tally {
    fn add(&mut self, answer: &Answer, gold: Option<&str>) {
        let answered = answer.abstained.is_none();
        self.invalid += answer.invalid_citations;
        match gold {
            None => {
                self.unanswerable += 1;
                self.refused += usize::from(!answered);
            }
            Some(gold) => {
                self.answerable += 1;
                self.answered += usize::from(answered);
                let holds = |n: &usize| answer.passages[n - 1].text.contains(gold);
                self.gold_cited += usize::from(answered && answer.citations.iter().any(holds));
                self.gold_in_text += usize::from(answered && answer.text.contains(gold));
            }
        }
    }

    fn print(&self, name: &str) {
        let abstained = self.refused + self.answerable - self.answered;
        eprintln!(
            "{name}: answered {}/{}; cited passage holds the gold answer {}/{}, text has it {}; abstention precision \
             {}/{abstained}, recall {}/{}; invalid citations {}; {:.2} s a question",
            self.answered,
            self.answerable,
            self.gold_cited,
            self.answered,
            self.gold_in_text,
            self.refused,
            self.refused,
            self.unanswerable,
            self.invalid,
            self.seconds / (self.answerable + self.unanswerable).max(1) as f64,
        );
    }
}

/// Questions of every second article of XQuAD en, none of which the evidence rule was fitted on: 50 whose paragraph
/// is in the index, and 50 whose paragraph is not while others of the same article are.
#[test]
#[ignore = "takes minutes: `cargo test --test integration xquad::ask -- --ignored --nocapture`"]
fn ask() {
    let Some(folder) = crate::common::shared_data("xquad") else { return };
    let text = fs::read_to_string(folder.join("xquad.en.json")).unwrap();
    let data: Value = serde_json::from_str(&text).unwrap();
    let (mut documents, mut known, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    for (a, article) in data["data"].as_array().unwrap().iter().enumerate() {
        for (p, paragraph) in article["paragraphs"].as_array().unwrap().iter().enumerate() {
            let questions = paragraph["qas"].as_array().unwrap().iter().take(2);
            let asked = questions.map(|qa| {
                let text = |value: &Value| value.as_str().unwrap().to_string();
                (text(&qa["question"]), text(&qa["answers"][0]["text"]))
            });
            if p % 2 == 0 {
                let body = paragraph["context"].as_str().unwrap().into();
                documents.push(Document { id: format!("a{a:02}p{p}"), body, ..Document::default() });
            }
            if a % 2 == 1 {
                if p % 2 == 0 { known.push(asked.collect::<Vec<_>>()) } else { unknown.push(asked.collect()) }
            }
        }
    }
    // The first question of each paragraph, then the second.
    let spread = |asked: Vec<Vec<(String, String)>>| -> Vec<(String, String)> {
        let second = asked.iter().filter_map(|two| two.get(1).cloned()).collect::<Vec<_>>();
        asked.iter().filter_map(|two| two.first().cloned()).chain(second).collect()
    };
    let (known, unknown) = (spread(known), spread(unknown));
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let cache = Arc::new(Cache::open(&target.join("ask-cache.db")).unwrap());
    let settings = Settings::default();
    let embedder = rankgate::models::embedder(&settings.models, Some(cache.clone())).unwrap();
    let dir = target.join("ask-xquad");
    indexer::build(&dir, "xquad", documents.into_iter().map(Ok), Some(&*embedder), &mut |_| {}).unwrap();
    let pipeline = Pipeline::with_models(&dir, &settings.search, Some(embedder), None).unwrap();
    let generator = rankgate::models::generator(&settings.models, Some(cache)).unwrap();
    let pipeline = pipeline.with_generator(generator);
    let generated = std::env::var("ASK_GENERATED").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    let runs = [
        ("extractive", false, true, 50),
        ("nano", true, true, generated),
        ("nano alone", true, false, generated),
    ];
    for (name, by_model, evidence, count) in runs.into_iter().filter(|run| run.3 > 0) {
        for verified in [false, true] {
            let mut tally = Tally::default();
            let started = std::time::Instant::now();
            let asked = known.iter().take(count).map(|(q, gold)| (q, Some(gold.as_str())));
            for (question, gold) in asked.chain(unknown.iter().take(count).map(|(q, _)| (q, None))) {
                let mut ask = AskRequest::new(Request::new(question));
                (ask.evidence, ask.verified) = (evidence, verified);
                if by_model {
                    (ask.answerer, ask.passages) = (Answerer::Generated, 2);
                    ask.timeout = Duration::from_secs(900); // the machine may be busy
                }
                let (answer, trace) = pipeline.ask(&ask).unwrap();
                if !verified && by_model {
                    eprintln!("{gold:?} {question}\n  {:?} {:?}", answer.text, answer.abstained);
                }
                assert!(trace.ran("evidence"));
                tally.add(&answer, gold);
            }
            tally.seconds = started.elapsed().as_secs_f64();
            tally.print(&format!("{name}{}", if verified { ", verified" } else { "" }));
        }
    }
}

/// Expansion by rules and by the local model, against none: never significantly worse. `EXPAND_QUERIES` says how many
/// queries of a collection are asked, by default 300.
#[test]
#[ignore = "takes minutes: `cargo test --test integration xquad::expansion -- --ignored --nocapture`"]
fn expansion() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    compare("fixtures", &fixtures.join("corpus"), &fixtures.join("queries.json"));
    if let Some(folder) = crate::common::shared_data("xquad/de-en") {
        compare("de-en", &folder, &folder);
    }
}

fn compare(name: &str, corpus: &Path, queries: &Path) {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let cache = Some(Arc::new(Cache::open(&target.join("ask-cache.db")).unwrap()));
    let index: PathBuf = target.join(format!("expansion-{name}"));
    let pipeline = Pipeline::over(corpus, &index, &Settings::default(), cache, true).unwrap();
    let mut cases = pipeline.index().resolve_hashes(corpus::judged_queries(queries).unwrap()).unwrap();
    cases.truncate(std::env::var("EXPAND_QUERIES").ok().and_then(|n| n.parse().ok()).unwrap_or(300));
    let scores = |expand| -> Vec<f64> {
        let mut failed = 0;
        let each = cases.iter().filter_map(|case| {
            let request = Request {
                expand: Some(expand),
                expand_within: Some(Duration::from_secs(900)), // the machine may be busy
                ..Request::from(&case.query).limit(10)
            };
            let (ranking, trace) = pipeline.query(&request).unwrap();
            failed +=
                usize::from(trace.stage("expansion").is_some_and(|stage| stage.fields.contains_key("error")));
            ndcg_at(10, ranking.docids(), &case.judgments)
        });
        let each = each.collect();
        assert_eq!(failed, 0, "failed expansions");
        each
    };
    let plain = scores(Expand::Never);
    for (expander, expand) in [("rules", Expand::Lexical), ("nano", Expand::Model)] {
        let expanded = scores(expand);
        let gains: Vec<f64> = plain.iter().zip(&expanded).map(|(before, after)| after - before).collect();
        let changed = gains.iter().filter(|gain| **gain != 0.0).count();
        let mean = stats::mean(&gains).unwrap();
        let interval = stats::bootstrap_mean_ci(&gains, 0.95, 2000, 42).unwrap();
        let worse = paired_randomisation(&gains, 10_000, 42).unwrap().lower;
        eprintln!(
            "{name}, {expander}: {} queries, nDCG@10 {:.4} to {:.4}, {mean:+.4} [{:+.4}, {:+.4}], {changed} changed, \
             p of a loss {worse:.3}",
            plain.len(),
            stats::mean(&plain).unwrap(),
            stats::mean(&expanded).unwrap(),
            interval.low,
            interval.high,
        );
        assert!(worse > 0.05, "{name}: expansion by {expander} makes the rankings worse");
    }
}
