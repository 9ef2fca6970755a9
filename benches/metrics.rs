//! Speed of `rankgate metrics` on 1,000 queries × 1,000 documents, as a ratio to `trec_eval` in the same run.
//!
//! The reference is built with `-O3` from the source folder that `TREC_EVAL_SRC` names (`CC` names the
//! compiler), or is the ready program that `TREC_EVAL` names; with neither, our times stand alone. Rounds
//! alternate between the programs, so that a busy machine slows both.
#![expect(clippy::print_stdout, reason = "a benchmark reports on stdout")]

use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rankgate::corpus::trec::{read_qrels, read_run};
use rankgate::metrics::{Measures, Options, evaluate};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    // Under `cargo test` only a small input, to see that it works.
    let full = std::env::args().any(|argument| argument == "--bench");
    let (size, rounds) = if full { (1000, 9) } else { (20, 1) };
    let folder = tempfile::tempdir()?;
    let (qrels, run) = write_input(folder.path(), size)?;
    let reference = reference(folder.path())?;
    if reference.is_none() {
        println!(
            "not compared: set TREC_EVAL_SRC to a source folder of trec_eval, or TREC_EVAL to the program"
        );
    }
    for set in ["official", "all_trec"] {
        let (mut library, mut ours, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            library.push(in_process(set, &qrels, &run)?);
            let mut program = Command::new(env!("CARGO_BIN_EXE_rankgate"));
            program.args(["metrics", "-m", set, "--qrels"]).arg(&qrels).arg("--run").arg(&run);
            let (took, output) = timed(&mut program)?;
            ours.push(took);
            if let Some(reference) = &reference {
                let (took, expected) =
                    timed(Command::new(reference).args(["-m", set]).arg(&qrels).arg(&run))?;
                theirs.push(took);
                if theirs.len() == 1 {
                    println!("{set}: {}", agreement(&output, &expected));
                }
            }
        }
        print!("{set}: in-process {:.1} ms, program {:.1} ms", median(&mut library), median(&mut ours));
        if !theirs.is_empty() {
            let theirs = median(&mut theirs);
            print!(", trec_eval {theirs:.1} ms, ratio {:.3}", median(&mut ours) / theirs);
        }
        println!(" (medians of {rounds})");
    }
    Ok(())
}

/// A run of `size` × `size` and judgments of about a tenth of it, two fifths of which the run does not have.
fn write_input(folder: &Path, size: usize) -> Outcome<(PathBuf, PathBuf)> {
    let (mut run, mut qrels) = (String::new(), String::new());
    let mut state = 7u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let docid = |number: usize| format!("FT9{:02}-{number:07}", number % 100);
    for query in 0..size {
        let mut score = 30.0;
        // Steps of a prime: distinct documents without a table of those that were drawn.
        let (start, step) = (random(1_000_003), 1 + random(1_000_002));
        for rank in 1..=size {
            score -= random(30_000) as f64 / 1e6;
            writeln!(run, "q{query} Q0 {} {rank} {score:.6} bm25", docid((start + rank * step) % 1_000_003))?;
        }
        for judged in 0..size / 10 {
            let rank = 1 + judged * 10 + random(10) + if judged % 5 < 2 { size } else { 0 };
            writeln!(
                qrels,
                "q{query} 0 {} {}",
                docid((start + rank * step) % 1_000_003),
                [0, 0, 0, 1, 1, 2][random(6)]
            )?;
        }
    }
    let (qrels_file, run_file) = (folder.join("qrels.txt"), folder.join("run.txt"));
    std::fs::write(&qrels_file, qrels)?;
    std::fs::write(&run_file, run)?;
    Ok((qrels_file, run_file))
}

fn in_process(set: &str, qrels: &Path, run: &Path) -> Outcome<Duration> {
    let started = Instant::now();
    let (qrels, run) = (read_qrels(qrels)?, read_run(run)?);
    let text = evaluate(&run, &qrels, &Measures::parse(&[set])?, Options::default())?.text(false);
    std::hint::black_box(text);
    Ok(started.elapsed())
}

fn timed(program: &mut Command) -> Outcome<(Duration, String)> {
    let started = Instant::now();
    let output = program.output()?;
    let took = started.elapsed();
    if !output.status.success() {
        return Err(format!("{program:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok((took, String::from_utf8(output.stdout)?))
}

/// The reference program, built if need be.
fn reference(folder: &Path) -> Outcome<Option<PathBuf>> {
    if let Some(program) = std::env::var_os("TREC_EVAL") {
        return Ok(Some(program.into()));
    }
    let Some(source) = std::env::var_os("TREC_EVAL_SRC").map(PathBuf::from) else { return Ok(None) };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&source)? {
        files.push(entry?.path());
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "c"));
    let program = folder.join("trec_eval");
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut build = Command::new(compiler);
    build.args(["-O3", "-w", "-DVERSIONID=\"bench\"", "-I"]).arg(&source).args(&files);
    timed(build.arg("-o").arg(&program).arg("-lm"))?;
    Ok(Some(program))
}

/// How many of our lines the reference prints too.
fn agreement(ours: &str, theirs: &str) -> String {
    let same = ours.lines().filter(|line| theirs.lines().any(|other| other == *line)).count();
    format!("{same} of {} lines are those of trec_eval", ours.lines().count())
}

/// In milliseconds.
fn median(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e3
}
