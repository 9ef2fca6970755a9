//! Several processes at once, and processes that are killed.

use std::collections::{BTreeMap, HashSet};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rankgate::record::captured;
use rankgate::record::{Captured, Tool};
use rankgate::store::captures::{Captures, DB_FILE, Recorder, Wanted};
use rankgate::store::integrity;

use super::{Home, days, row};

/// The database that [`a_process_that_captures`] writes to, and the name that it gives its rows.
const DATABASE: &str = "RANKGATE_TEST_CAPTURES";
const NAME: &str = "RANKGATE_TEST_CAPTURES_NAME";
const ROWS: usize = 200;
const KILLS: u32 = 50;

/// Not a test by itself: it captures, as the others start it, and says what is safe.
#[test]
fn a_process_that_captures() {
    let (Some(path), Ok(name)) = (std::env::var_os(DATABASE), std::env::var(NAME)) else { return };
    let recorder = Recorder::start(Path::new(&path), true);
    for n in 0..ROWS {
        recorder.record(Captured::new(Tool::Search, format!("{name}-{n}"), Vec::new()));
        let drained = recorder.drain(Duration::from_secs(60));
        assert_eq!((drained.written, drained.failed, drained.unfinished), (n as u64 + 1, BTreeMap::new(), 0));
        eprintln!("kept {name}-{n}.");
    }
}

fn capturing(path: &Path, name: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "capture::crash::a_process_that_captures", "--nocapture"]);
    command.env(DATABASE, path).env(NAME, name).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// The rows that a process said were safe.
fn kept(child: &mut Child) -> Vec<String> {
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix("kept ")?.strip_suffix('.'));
    lines.map(String::from).collect()
}

fn queries(path: &Path) -> Vec<String> {
    let rows = Captures::open(path).unwrap().rows(&Wanted::default()).unwrap();
    rows.into_iter().map(|row| row.query).collect()
}

/// Shares of a whole, spread by the golden ratio.
fn share(moment: u32) -> f64 {
    f64::from(moment) * 0.618_034 % 1.0
}

#[test]
fn two_processes_at_once_lose_no_row() {
    let home = Home::new();
    let path = home.path(DB_FILE); // neither finds a database
    let mut children = [capturing(&path, "a"), capturing(&path, "b")];
    let said: Vec<usize> = children.iter_mut().map(|child| kept(child).len()).collect();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(said, [ROWS, ROWS]);
    let found = queries(&path);
    assert_eq!((found.len(), found.iter().collect::<HashSet<_>>().len()), (2 * ROWS, 2 * ROWS));
}

#[cfg(unix)]
#[test]
fn a_kill_while_capturing_loses_nothing_that_was_kept() {
    let home = Home::new();
    let started = Instant::now();
    assert_eq!(kept(&mut capturing(&home.path("whole.db"), "whole")).len(), ROWS);
    let whole_run = started.elapsed();
    let path = home.path(DB_FILE);
    let (mut said, mut halves) = (HashSet::new(), 0);
    for moment in 0..KILLS {
        let mut child = capturing(&path, &moment.to_string());
        std::thread::sleep(whole_run.mul_f64(share(moment)));
        child.kill().unwrap();
        let kept = kept(&mut child);
        child.wait().unwrap();
        halves += usize::from(!kept.is_empty() && kept.len() < ROWS);
        said.extend(kept);
    }
    let found = queries(&path);
    let there: HashSet<_> = found.iter().cloned().collect();
    assert!(said.is_subset(&there), "{:?}", said.difference(&there).collect::<Vec<_>>());
    assert_eq!(found.len(), there.len(), "no row twice");
    assert!(there.len() <= said.len() + KILLS as usize, "one a kill may be written and not yet said");
    assert_eq!(integrity(&path).unwrap(), [""; 0]);
    assert!(halves > 0, "no kill came half-way");
}

#[cfg(unix)]
#[test]
fn a_kill_never_leaves_half_an_export() {
    let home = Home::new();
    let rows: Vec<_> = (0..2_000).map(|n| row(Tool::Query, &format!("query {n}"), days(1))).collect();
    assert_eq!(home.captures().insert(&rows).unwrap(), []);
    let args = ["eval", "export", "--limit", "100000", "--to", "out.ndjson"];
    let started = Instant::now();
    assert_eq!(home.run(&args).0, Some(0));
    let whole_run = started.elapsed();
    let target = home.path("out.ndjson");
    let old = std::fs::read_to_string(&target).unwrap().lines().next().unwrap().to_owned() + "\n";
    let mut stayed = 0;
    for moment in 0..KILLS {
        home.write("out.ndjson", &old);
        let mut child = home.command(&args).spawn().unwrap();
        std::thread::sleep(whole_run.mul_f64(share(moment)));
        child.kill().unwrap();
        child.wait().unwrap();
        if std::fs::read(&target).unwrap() == old.as_bytes() {
            stayed += 1;
        } else {
            assert_eq!(captured::read(&target).unwrap().filter(|row| row.is_ok()).count(), rows.len());
        }
    }
    assert!(stayed > 0, "no kill came before the end");
    assert_eq!(home.captures().count().unwrap(), 2_000);
}

#[cfg(unix)]
#[test]
fn a_kill_while_pruning_removes_all_or_nothing() {
    let home = Home::new();
    let path = home.path(DB_FILE);
    let old: Vec<_> = (0..1_000).map(|n| row(Tool::Query, &format!("old {n}"), days(9))).collect();
    let new: Vec<_> = (0..1_000).map(|n| row(Tool::Query, &format!("new {n}"), days(1))).collect();
    home.captures().insert(&new).unwrap();
    home.captures().insert(&old).unwrap();
    let args = ["eval", "prune", "--older-than", "5d"];
    let started = Instant::now();
    assert!(home.run(&args).1.starts_with("removed 1000 "));
    let whole_run = started.elapsed();
    let mut stayed = 0;
    for moment in 0..KILLS {
        let count = home.captures().count().unwrap();
        if count == 1_000 {
            home.captures().insert(&old).unwrap();
        }
        let mut child = home.command(&args).spawn().unwrap();
        std::thread::sleep(whole_run.mul_f64(share(moment)));
        child.kill().unwrap();
        child.wait().unwrap();
        let count = home.captures().count().unwrap();
        assert!(count == 1_000 || count == 2_000, "{count}");
        stayed += usize::from(count == 2_000);
        assert_eq!(integrity(&path).unwrap(), [""; 0]);
    }
    assert!(stayed > 0, "no kill came before the end");
    assert_eq!(queries(&path).iter().filter(|query| query.starts_with("new")).count(), 1_000);
}
