//! What the default tokenizer costs: index size, build time and query p95, as ratios to the plain one of the same run.
//!
//! `cargo bench --bench tokenizer`, or with the profile of tests `cargo test --bench tokenizer`. The indexes are built
//! and searched in turn, so that a busy machine slows both; the targets are those of the promotion gates: 1.75 times
//! the bytes, twice the time to build, three times the p95.
#![expect(clippy::print_stdout, reason = "a bench prints its result")]

use std::path::Path;
use std::time::Instant;

use rankgate::corpus::{JudgedQuery, folder, queries};
use rankgate::metrics::stats::percentile;
use rankgate::pipeline::bm25::{Lexical, LexicalDoc, LexicalWriter};
use rankgate::text::{Tokenizer, parse};
use rankgate::{Document, Error, Result};

const TOKENIZERS: [Tokenizer; 2] = [Tokenizer::Words, Tokenizer::DEFAULT];

fn main() -> Result<()> {
    // Under `cargo test` only a small input, to see that it works.
    let full = std::env::args().any(|argument| argument == "--bench");
    let (copies, rounds, passes) = if full { (50, 7, 50) } else { (1, 1, 2) };
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let cjk = ["zh", "ja", "ko"];
    let spaced = |language: &str| !cjk.contains(&language);
    let of = |path: &Path, wanted: &dyn Fn(&str) -> bool| -> Result<Vec<Document>> {
        let language = |id: &str| id.split('/').next().map(str::to_owned).unwrap_or_default();
        folder::documents(path)?.filter(|d| d.as_ref().map_or(true, |d| wanted(&language(&d.id)))).collect()
    };
    let asked =
        |cases: Vec<JudgedQuery>| -> Vec<String> { cases.into_iter().map(|case| case.query.text).collect() };

    let mut latin = queries::read(&fixtures.join("queries.json"))?;
    latin.retain(|case| case.query.lang.as_deref().is_some_and(spaced));
    compare("latin", &of(&fixtures.join("corpus"), &spaced)?, &asked(latin), copies, rounds, passes)?;

    let fixture = rankgate::benchmarks::cjk_lexical::fixture::Fixture::read(&fixtures.join("cjk-lexical"))?;
    let queries = asked(fixture.queries.iter().map(JudgedQuery::from).collect());
    compare("cjk", &fixture.documents, &queries, copies, rounds, passes)
}

/// Prints figures and ratios for `documents`, each indexed `copies` times.
fn compare(
    name: &str,
    documents: &[Document],
    queries: &[String],
    copies: usize,
    rounds: usize,
    passes: usize,
) -> Result<()> {
    let mut builds = [Vec::new(), Vec::new()];
    let mut made = Vec::new();
    for _ in 0..rounds {
        made.clear();
        for (tokenizer, took) in TOKENIZERS.into_iter().zip(&mut builds) {
            let dir =
                tempfile::tempdir().map_err(|e| Error::io("make a folder in", &std::env::temp_dir(), e))?;
            let start = Instant::now();
            build(dir.path(), tokenizer, documents, copies)?;
            took.push(start.elapsed().as_secs_f64() * 1e3);
            made.push((Lexical::open(dir.path())?, dir));
        }
    }
    let mut p95 = [Vec::new(), Vec::new()];
    for _ in 0..passes {
        for ((lexical, _), p95) in made.iter().zip(&mut p95) {
            let mut took = Vec::with_capacity(queries.len());
            for query in queries {
                let start = Instant::now();
                std::hint::black_box(lexical.search(&parse(query), None, 10)?);
                took.push(start.elapsed().as_secs_f64() * 1e3);
            }
            p95.extend(percentile(&took, 95.0));
        }
    }
    let mut figures = Vec::new();
    for (number, (_, dir)) in made.iter().enumerate() {
        let median = |values: &[f64]| percentile(values, 50.0).unwrap_or(f64::NAN);
        figures.push([bytes(dir.path())? as f64 / 1024.0, median(&builds[number]), median(&p95[number])]);
    }
    println!("{name}: {} documents, {} queries", documents.len() * copies, queries.len());
    for (number, (what, unit)) in
        [("index", "KiB"), ("build", "ms"), ("query p95", "ms")].into_iter().enumerate()
    {
        let (words, default) = (figures[0][number], figures[1][number]);
        println!(
            "  {what:<9}  words {words:>9.3} {unit}, default {default:>9.3} {unit}, ratio {:.2}",
            default / words
        );
    }
    Ok(())
}

fn build(dir: &Path, tokenizer: Tokenizer, documents: &[Document], copies: usize) -> Result<()> {
    let mut writer = LexicalWriter::open_with(dir, tokenizer)?;
    let mut key = 0;
    for _ in 0..copies {
        for Document { id, title, body, lang } in documents {
            writer.put(key, LexicalDoc { collection: "", id, title, body, lang: lang.as_deref() })?;
            key += 1;
        }
    }
    writer.commit(1)
}

fn bytes(dir: &Path) -> Result<u64> {
    let failed = |e| Error::io("read the folder", dir, e);
    let each = dir
        .read_dir()
        .map_err(failed)?
        .map(|entry| Ok(entry.and_then(|e| e.metadata()).map_err(failed)?.len()));
    each.sum()
}
