//! Embedding speed: batches of similar length against batches as they come, and this crate against Python's
//! `onnxruntime` with the same model files, the same batches and the same number of threads.
//!
//! `cargo bench --bench embed [-- MODEL]`; with `RANKGATE_BENCH_PYTHON` naming an interpreter that has `onnxruntime`,
//! `tokenizers` and `numpy`, Python runs beside. Only ratios inside one run mean anything.
#![allow(clippy::print_stdout, reason = "a bench reports on stdout")]

use std::error::Error;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Instant;

use rankgate::models::{self, Embedder, TextRole, inventory};
use rankgate::settings::ModelSettings;

const TEXTS: usize = 256;
const ROUNDS: usize = 2;
/// Texts a batch where batches are made without looking at lengths.
const UNSORTED: usize = 16;

fn main() -> Result<(), Box<dyn Error>> {
    let texts = mixed_texts();
    let padded = padded_to_neighbours(&texts);
    println!("{TEXTS} texts of 3 to 220 words, best of {ROUNDS} rounds, seconds");
    println!("{:24} threads  sorted  unsorted  gain   python  python/ours", "model");
    // cargo adds `--bench`.
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let models = ["all-minilm-l6-v2", "multilingual-e5-small"];
    for model in models.into_iter().filter(|model| model.contains(&only)) {
        for threads in [1, 2] {
            let settings = ModelSettings { embedder: model.into(), threads, ..Default::default() };
            let embedder = models::embedder(&settings, None)?;
            embedder.embed(&["warm"], TextRole::Passage)?;
            let mut best = [f64::INFINITY; 3];
            for _ in 0..ROUNDS {
                best[0] = best[0].min(seconds(&*embedder, &texts, TEXTS)?);
                best[1] = best[1].min(seconds(&*embedder, &padded, UNSORTED)?);
                if let Some(python) = python(&settings, &texts)? {
                    best[2] = best[2].min(python);
                }
            }
            let [sorted, unsorted, python] = best;
            println!(
                "{model:24} {threads:7} {sorted:7.2} {unsorted:9.2} {:5.2} {python:8.2} {:12.2}",
                unsorted / sorted,
                python / sorted
            );
        }
    }
    Ok(())
}

/// Time to embed `texts`, `at_once` a call.
fn seconds(embedder: &dyn Embedder, texts: &[String], at_once: usize) -> Result<f64, Box<dyn Error>> {
    let started = Instant::now();
    for texts in texts.chunks(at_once) {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        embedder.embed(&texts, TextRole::Passage)?;
    }
    Ok(started.elapsed().as_secs_f64())
}

/// Texts of 3 to 220 words in no order, the same every time: short ones are many, as in any folder of notes.
fn mixed_texts() -> Vec<String> {
    let words: Vec<&str> =
        "the contract ends thirty days after notice was given by either party in writing and \
        payment remains due for services delivered before that day unless both agree otherwise"
            .split(' ')
            .collect();
    let mut state = 42u64;
    let mut random = move || {
        // Knuth's linear congruential generator; its high bits are good enough to draw lengths.
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as f64 / (1u64 << 31) as f64
    };
    (0..TEXTS)
        .map(|_| {
            let length = 3 + (217.0 * random().powi(2)) as usize;
            (0..length).map(|_| words[(random() * words.len() as f64) as usize]).collect::<Vec<_>>().join(" ")
        })
        .collect()
}

/// What batches of 16 in the given order cost: every text is as long as the longest of its batch.
fn padded_to_neighbours(texts: &[String]) -> Vec<String> {
    let words = |text: &String| text.split(' ').count();
    texts
        .chunks(UNSORTED)
        .flat_map(|batch| {
            let longest = batch.iter().map(words).max().unwrap_or(0);
            batch.iter().map(move |text| text.split(' ').cycle().take(longest).collect::<Vec<_>>().join(" "))
        })
        .collect()
}

/// Seconds that Python's `onnxruntime` takes, tokenising included, loading not.
fn python(settings: &ModelSettings, texts: &[String]) -> Result<Option<f64>, Box<dyn Error>> {
    let Some(interpreter) = std::env::var_os("RANKGATE_BENCH_PYTHON") else { return Ok(None) };
    let here = inventory::list(settings)?;
    let model = here.iter().find(|model| model.name == settings.embedder).ok_or("no such model")?;
    let e5 = model.name.contains("e5");
    let (prefix, length) = if e5 { ("passage: ", "512") } else { ("", "256") };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/embed.py");
    let mut child = Command::new(interpreter)
        .arg(script)
        .arg(&model.folder)
        .args([&settings.threads.to_string(), length])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let texts: Vec<String> = texts.iter().map(|text| format!("{prefix}{text}\n")).collect();
    child.stdin.take().ok_or("no stdin")?.write_all(texts.concat().as_bytes())?;
    let output = child.wait_with_output()?;
    Ok(Some(String::from_utf8(output.stdout)?.trim().parse()?))
}
