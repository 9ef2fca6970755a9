//! What the harness costs: whole runs of trivial cases, as processes, and the listing of their trials.
//!
//! `cargo bench --bench harness`, or with the profile of tests `cargo test --bench harness`. The targets are
//! under 0.1 ms a case at every size (so it grows linearly), and under 50 ms for a list.

use std::io::Write;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rankgate::prelude::*;

const CASES: &str = "RANKGATE_BENCH_CASES";
const REPETITIONS: usize = 5;

fn main() -> ExitCode {
    if let Some(n) = std::env::var(CASES).ok().and_then(|n| n.parse().ok()) {
        return rankgate::harness::main(rankgate::project!(), move |suite| register(suite, n));
    }
    for threads in ["1", "2"] {
        let arguments = ["--quiet", "--test-threads", threads];
        let one = best(1, &arguments).as_secs_f64();
        report(&format!("{threads} thread(s): a run of 1 case takes {:.1} ms", one * 1e3));
        for n in [100, 1_000, 5_000] {
            let each = (best(n, &arguments).as_secs_f64() - one) / f64::from(n) * 1e6;
            report(&format!("  {n:>5} cases: {each:>6.1} µs each beyond that"));
        }
    }
    report(&format!("a list of 5,000 cases: {:.1} ms", best(5_000, &["--list"]).as_secs_f64() * 1e3));
    ExitCode::SUCCESS
}

/// Trivial cases, with all that a real eval has: scorers, a threshold, columns, a trace.
fn register(suite: &mut Suite, n: u32) {
    let case = |i: u32| Example::new(format!("q{i}"), i).expecting(Judgments::from([("a".into(), 1)]));
    suite
        .eval("trivial")
        .cases(move || (0..n).map(case).collect::<Vec<_>>())
        .subject(|_, _| {
            let _stage = tracing::info_span!("search", hits = 2).entered();
            Ok::<_, Error>(Ranking::from_docids(["b", "a"]))
        })
        .score(recall_at(5))
        .score(recall_at(10))
        .score(ndcg_at(10))
        .threshold(0.5)
        .columns(|case, out| [("query", case.input.to_string()), ("top 3", out.top(3))]);
}

/// The fastest of several runs.
fn best(n: u32, arguments: &[&str]) -> Duration {
    let run = || {
        let data = tempfile::tempdir().expect("a temporary folder");
        let mut program = Command::new(std::env::current_exe().expect("this program"));
        program.args(arguments).env(CASES, n.to_string()).env("RANKGATE_DATA", data.path());
        program.stdout(Stdio::null()).stderr(Stdio::null());
        let started = Instant::now();
        assert!(program.status().expect("starts").success());
        started.elapsed()
    };
    (0..REPETITIONS).map(|_| run()).min().unwrap_or_default()
}

fn report(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
