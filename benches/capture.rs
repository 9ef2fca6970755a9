//! What capture costs a search: the same searches with and without a recorder, in one run.
//!
//! `cargo bench --bench capture`, or with the profile of tests `cargo test --bench capture`. The target is that a
//! recorded search takes at most 1.1 times as long; the ratio is what a change must hold.
#![expect(clippy::print_stdout, reason = "a bench prints its result")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use rankgate::models::{Embedder, HashEmbedder};
use rankgate::pipeline::{Pipeline, Request, indexer};
use rankgate::settings::SearchSettings;
use rankgate::store::captures::{DB_FILE, Recorder};
use rankgate::{Document, Result};

const DOCUMENTS: usize = 2_000;
const SEARCHES: usize = 200;
const ROUNDS: usize = 5;

fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let embedder: Arc<dyn Embedder> = Arc::new(HashEmbedder::default());
    let document = |n: usize| Document {
        id: format!("{n}.md"),
        body: (0..200).map(|word| format!("word{} ", (n * 31 + word * 17) % 5_000)).collect(),
        ..Document::default()
    };
    let documents = (0..DOCUMENTS).map(|n| Ok(document(n)));
    indexer::build(dir.path(), "bench", documents, Some(&*embedder), &mut |_| {})?;
    let open = || Pipeline::with_models(dir.path(), &SearchSettings::default(), Some(embedder.clone()), None);
    let recorder = Arc::new(Recorder::start(&dir.path().join(DB_FILE), true));
    let (plain, recorded) = (open()?, open()?.with_recorder(recorder.clone()));
    for (name, hybrid) in [("search", false), ("query", true)] {
        let (mut without, mut with) = (Duration::MAX, Duration::MAX);
        for _ in 0..ROUNDS {
            without = without.min(took(&plain, hybrid)?);
            with = with.min(took(&recorded, hybrid)?);
            recorder.drain(Recorder::GRACE);
        }
        let each = |took: Duration| took.as_secs_f64() * 1e6 / SEARCHES as f64;
        let ratio = with.as_secs_f64() / without.as_secs_f64();
        println!("{name:6}  {:7.1} µs  recorded {:7.1} µs  {ratio:.3} times", each(without), each(with));
    }
    let drained = recorder.drain(Recorder::GRACE);
    println!(
        "{} rows written, failed {:?}, unfinished {}",
        drained.written, drained.failed, drained.unfinished
    );
    Ok(())
}

fn took(pipeline: &Pipeline, hybrid: bool) -> Result<Duration> {
    let started = Instant::now();
    for n in 0..SEARCHES {
        let request = Request::new(format!("word{} word{} word{}", n % 5_000, n * 7 % 5_000, n * 13 % 5_000));
        if hybrid {
            pipeline.query(&request)?
        } else {
            pipeline.search(&request)?
        };
    }
    Ok(started.elapsed())
}
