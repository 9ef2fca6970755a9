//! Exact search over 100,000 vectors of 384 components, against the plain loop, in one run on one core.
//!
//! `cargo bench --bench vectors` prints milliseconds and the ratio; the ratio is what a change must hold.
#![expect(clippy::print_stdout, reason = "a bench prints its result")]

use std::hint::black_box;
use std::time::Instant;

use rankgate::pipeline::vector::Vectors;

const DIMS: usize = 384;
const ROWS: usize = 100_000;
const RUNS: usize = 21;

fn main() {
    let mut state = 1u64;
    let mut number = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / 8_388_608.0 - 1.0
    };
    let mut plain: Vec<f32> = (0..ROWS * DIMS).map(|_| number()).collect();
    let mut vectors = Vectors::new(DIMS);
    for (key, row) in plain.chunks_exact_mut(DIMS).enumerate() {
        let norm = row.iter().map(|x| x * x).sum::<f32>().sqrt();
        row.iter_mut().for_each(|x| *x /= norm);
        vectors.push("bench", key as u64, 0, row.iter().copied()).expect("has the right length");
    }
    let query = plain[..DIMS].to_vec();

    let naive = median(|| {
        let score = |row: &[f32]| row.iter().zip(&query).map(|(a, b)| a * b).sum::<f32>();
        let mut best: Vec<(f32, usize)> = plain.chunks_exact(DIMS).map(score).zip(0..).collect();
        best.select_nth_unstable_by(10, |a, b| b.0.total_cmp(&a.0));
        best.truncate(10);
        best
    });
    let exact = median(|| vectors.search(&query, 10, None).expect("searches"));
    println!("plain loop     {naive:6.1} ms");
    println!("Vectors        {exact:6.1} ms   {:.2} times as fast", naive / exact);
}

/// Milliseconds of the middle run.
fn median<T>(mut work: impl FnMut() -> T) -> f64 {
    black_box(work());
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let started = Instant::now();
            black_box(work());
            started.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[RUNS / 2]
}
