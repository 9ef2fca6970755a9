//! Replay of 1,000 searches by words and 200 by words and meaning, over 2,000 documents, on one thread.
//!
//! `cargo bench --bench replay`, or with the profile of tests `cargo test --bench replay`. It prints queries per
//! second, and how much of a row's time is not the search itself: that ratio is what a change must hold. The embedder
//! knows words alone, so the figures are those of the machinery; `RANKGATE_BENCH_EMBEDDER=NAME` takes a real one, with a
//! cache as a replay has it, over 100 documents, and compares its queries one by one with batches.
#![expect(clippy::print_stdout, reason = "a bench prints its result")]

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use rankgate::Document;
use rankgate::models::{self, Embedder, HashEmbedder, TextRole};
use rankgate::pipeline::indexer;
use rankgate::prelude::*;
use rankgate::record::{Captured, ReplayTally, Tool};
use rankgate::replay::{Options, replay};
use rankgate::settings::{ModelSettings, SearchSettings};
use rankgate::store::cache::Cache;

const DOCUMENTS: usize = 2_000;
const WORDS: usize = 120;
const VOCABULARY: f64 = 5_000.0;

fn main() -> Result<()> {
    let dir = tempfile::tempdir().map_err(|e| Error::io("make", Path::new("a folder"), e))?;
    let index = dir.path().join("index");
    let named = std::env::var("RANKGATE_BENCH_EMBEDDER").ok();
    let real = |name: &String, cache| {
        models::embedder(&ModelSettings { embedder: name.clone(), ..ModelSettings::default() }, cache)
    };
    let embedder: Arc<dyn Embedder> = match &named {
        Some(name) => real(name, Some(Arc::new(Cache::open(&dir.path().join("cache.db"))?)))?,
        None => Arc::new(HashEmbedder::default()),
    };
    // A real model takes a minute for every few hundred documents.
    let documents = if named.is_some() { DOCUMENTS / 20 } else { DOCUMENTS };
    let mut text = Text(1);
    let corpus = (0..documents)
        .map(|id| Ok(Document { id: format!("d{id}"), body: text.words(WORDS), ..Document::default() }));
    indexer::build(&index, "bench", corpus, Some(&*embedder), &mut |_| {})?;
    let pipeline = Pipeline::with_models(&index, &SearchSettings::default(), Some(embedder.clone()), None)?;

    let queries: Vec<String> = (0..1_000).map(|_| text.words(4)).collect();
    measure(&pipeline, Tool::Search, &queries)?;
    measure(&pipeline, Tool::Query, &queries[..200])?;
    if let Some(name) = &named {
        batches(&*real(name, None)?, &queries[200..328])?;
    }
    Ok(())
}

/// Captures the queries, replays them, prints both.
fn measure(pipeline: &Pipeline, tool: Tool, queries: &[String]) -> Result<()> {
    let search = |query: &String| {
        let request = Request::new(query);
        if tool == Tool::Search { pipeline.search(&request) } else { pipeline.query(&request) }
    };
    search(&queries[0])?;
    let started = Instant::now();
    let mut rows = Vec::with_capacity(queries.len());
    for query in queries {
        let (ranking, _) = search(query)?;
        let mut row = Captured::new(tool, query, ranking.docids().map(str::to_string).collect());
        row.asked.limit = Some(10);
        rows.push(row);
    }
    let plain = started.elapsed().as_secs_f64();
    let started = Instant::now();
    let tally: ReplayTally = replay(pipeline, &rows, Options::default()).iter().collect();
    let took = started.elapsed().as_secs_f64();
    let summary = tally.summary();
    assert_eq!((summary.rows_replayed, summary.mean_jaccard), (rows.len(), Some(1.0)));
    println!(
        "{:<6} {:>5} rows  {:>8.1} queries/s   {:.2} times the plain searches",
        tool.name(),
        rows.len(),
        rows.len() as f64 / took,
        took / plain
    );
    Ok(())
}

/// Whether it would pay to embed queries in batches.
fn batches(embedder: &dyn Embedder, queries: &[String]) -> Result<()> {
    let texts: Vec<&str> = queries.iter().map(String::as_str).collect();
    let time = |size: usize| -> Result<f64> {
        let started = Instant::now();
        for batch in texts.chunks(size) {
            embedder.embed(batch, TextRole::Query)?;
        }
        Ok(texts.len() as f64 / started.elapsed().as_secs_f64())
    };
    let one = time(1)?;
    for size in [8, 32] {
        println!("queries embedded {size} at a time: {:.2} times as fast as one by one", time(size)? / one);
    }
    Ok(())
}

/// Pseudo-random words, few of them frequent.
struct Text(u64);

impl Text {
    fn words(&mut self, count: usize) -> String {
        let word = |_| {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            let uniform = (self.0 >> 11) as f64 / (1u64 << 53) as f64;
            format!("w{}", VOCABULARY.powf(uniform) as u64)
        };
        (0..count).map(word).collect::<Vec<_>>().join(" ")
    }
}
