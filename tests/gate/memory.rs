//! A gate does not keep what it replays.

use std::fs;
use std::process::Command;

use super::{Bench, row};

/// Peak memory of a gate over `rows` rows, in kB.
fn peak(bench: &Bench, rows: usize) -> u64 {
    let fingerprints = bench.fingerprints();
    let rows = (0..rows).map(|n| {
        // A filler that no document has makes every query another one.
        let mut row = row(&format!("word{} x{n}", 1 + n % 10), "a1 b1 c1 d1 e1 f1 g1 h1 i1 j1");
        row.fingerprints = fingerprints.clone();
        row
    });
    bench.baseline("many.ndjson", rows);
    let mut child = Command::new(env!("CARGO_BIN_EXE_rankgate"))
        .args(["eval", "gate", "--index", "index", "--baseline", "many.ndjson", "--json"])
        .current_dir(bench.0.path())
        .env("RANKGATE_HOME", bench.path("home"))
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        peak = peak.max(kilobytes.unwrap_or(0));
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    peak
}

#[test]
#[ignore = "takes a minute; prints peak memory at 1,000 and 100,000 rows"]
fn memory_is_flat_in_the_rows() {
    let bench = Bench::new();
    let (few, many) = (peak(&bench, 1_000), peak(&bench, 100_000));
    eprintln!("peak memory: {few} kB at 1,000 rows, {many} kB at 100,000");
    // Figures of a row take 48 bytes, its hash 8: with room for growing lists, 16 MB.
    assert!(many < few + 16_384, "{few} kB, then {many} kB");
}
