//! The harness as its users meet it: test programs run as processes, under cargo and nextest.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use rankgate::record::{Order, RunRecord, Verdict};
use rankgate::store::history::History;
use serde_json::Value;
use tempfile::TempDir;

/// A command without what the surrounding test run has set.
pub fn clean(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if ["NEXTEST", "RANKGATE_", "INSTA_", "RUST_TEST_"].iter().any(|prefix| name.starts_with(prefix)) {
            command.env_remove(&*name);
        }
    }
    command.env_remove("CI");
    command
}

fn cargo() -> Command {
    let mut command = clean(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        // Some dependencies are compiled anew where these differ: here, and again in the next `cargo test`.
        if ["CARGO_PKG_", "CARGO_MANIFEST_", "OUT_DIR"].iter().any(|prefix| name.starts_with(prefix)) {
            command.env_remove(&*name);
        }
    }
    command
}

/// The test program `name`, brought up to date.
pub fn program(name: &str) -> PathBuf {
    let mut build = cargo();
    build.current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = build.args(["test", "--no-run", "--test", name, "--message-format=json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let messages = String::from_utf8(output.stdout).unwrap();
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == name)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .unwrap()
}

/// The program of `tests/trouble`, built once.
fn trouble() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| program("trouble"))
}

/// One folder of data and the runs that share it.
struct Bench(TempDir);

/// What a test program said.
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn new(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Trial → `ok`, `FAILED`, `ignored`.
    pub fn trials(&self) -> BTreeMap<&str, &str> {
        let lines = self.stdout.lines().filter_map(|line| line.strip_prefix("test ")?.split_once(" ... "));
        lines.map(|(name, outcome)| (name.trim_end(), outcome.split(' ').next().unwrap())).collect()
    }

    /// What a failed trial says, one line.
    pub fn message(&self, trial: &str) -> &str {
        let head = format!("---- {trial} ----\n");
        let start = self.stdout.find(&head).unwrap_or_else(|| panic!("no {trial} in {}", self.stdout));
        self.stdout[start + head.len()..].lines().next().unwrap()
    }
}

impl Bench {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self) -> Command {
        let mut command = clean(trouble());
        command.current_dir(env!("CARGO_MANIFEST_DIR")).env("RANKGATE_DATA", self.0.path());
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::new(self.command().args(arguments).output().unwrap())
    }

    /// Runs with variables set, and reads the report.
    fn report(&self, arguments: &[&str], variables: &[(&str, &str)]) -> RunRecord {
        let file = self.path("report.json");
        let mut command = self.command();
        command.args(arguments).envs(variables.iter().copied()).env("RANKGATE_OUTPUT", &file);
        let output = command.output().unwrap();
        let text = fs::read_to_string(&file).unwrap_or_else(|_| panic!("{output:?}"));
        RunRecord::from_json(&text).unwrap()
    }

    /// How often each case of `counted` was executed.
    fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for line in fs::read_to_string(self.path("count")).unwrap_or_default().lines() {
            *counts.entry(line.to_string()).or_default() += 1;
        }
        counts
    }
}

#[test]
fn verdicts_are_the_same_with_one_thread_and_with_many() {
    let bench = Bench::new();
    let expected = [
        ("fine::gate", "ok"),
        ("low::gate", "FAILED"),
        ("low::0.9 z", "ok"),
        ("floor::0.5 x", "ok"),
        ("floor::gate", "ok"),
        ("unsure::gate", "FAILED"),
        ("misses::0.1 known", "ok"),
        ("misses::1 stale", "FAILED"),
        ("misses::gate", "ok"),
        ("empty::gate", "FAILED"),
        ("unjudged::a", "ignored"),
        ("unjudged::gate", "ignored"),
        ("half::b", "ignored"),
        ("half::gate", "ok"),
        ("whole::gate", "ignored"),
        ("变体::查询 一", "ok"),
        ("panics::a", "ok"),
        ("panics::bad", "FAILED"),
        ("panics::gate", "FAILED"),
        ("same::a", "ok"),
        ("same::load", "FAILED"),
        ("variants[good]::gate", "ok"),
        ("variants[bad]::gate", "FAILED"),
        ("spread::gate", "ok"),
        ("retried::once", "ok"),
        ("retried::twice", "FAILED"),
        ("narrow::gate", "ok"),
        ("unready::a", "FAILED"),
        ("slow start::a", "ok"),
        ("slow start::b", "ok"),
        ("in order::order", "ok"),
        ("out of order::order", "FAILED"),
        ("out of order[fast]::gate", "ok"),
        ("not to compare::order", "ignored"),
        ("half broken::order", "FAILED"),
        ("informed::a", "ok"),
        ("informed::gate", "ok"),
    ];
    let mut seen = Vec::new();
    for threads in ["1", "8"] {
        let ran = bench.run(&["--test-threads", threads]);
        assert_eq!(ran.code, 101);
        let trials: BTreeMap<String, String> =
            ran.trials().into_iter().map(|(name, outcome)| (name.into(), outcome.into())).collect();
        for (trial, outcome) in expected {
            assert_eq!(trials.get(trial).map(String::as_str), Some(outcome), "{trial}, {threads} threads");
        }
        seen.push(trials);
    }
    assert_eq!(seen[0], seen[1]);
}

#[test]
fn failures_name_their_subject_and_leave_the_others_standing() {
    let ran = Bench::new().run(&[]);
    for (trial, words) in [
        ("low::0.1 x", "below threshold: 0.100 < 0.700"),
        ("low::gate", "by id 0.400 ["),
        ("low::gate", "over 3 cases, needs 0.700; worst 0.1 x 0.100, 0.2 y 0.200"),
        ("unsure::gate", "inconclusive: "),
        ("misses::1 stale", "regressed: a known miss (was hard once)"),
        ("panics::bad", "tests/trouble/main.rs"),
        ("panics::bad", "the subject is bad"),
        ("panics::gate", "error: 1 of 3 cases were not measured: bad"),
        ("unready::b", "setup: no index"),
        ("hangs::subject", "timed out after 300ms"),
        ("hangs::scorer", "scorer `slow`: timed out"),
        ("scorers::nan", "scorer `odd`: returned NaN"),
        ("scorers::three", "scorer `odd`: returned 3"),
        ("scorers::panic", "scorer `odd`: panicked"),
        ("scorers::error", "scorer `odd`: judge is down"),
        ("scorers::column", "columns: panicked"),
        ("stages::skipped", "stage `rerank` is required and did not run: skipped: no reranker"),
        ("stages::missing", "stages that ran: bm25"),
        ("twice::load", "two cases have the id `a`"),
        ("broken::gate", "queries.json: not JSON"),
        ("typo::load", "did you mean `alpha`?"),
        ("unnamed::load", "control character"),
        ("same::load", "is defined twice"),
        ("refused::load", "trouble/refused.eval.rs: no fixture"),
        (
            "out of order::order",
            "below threshold: told: thorough is worse than fast by 0.281 (difference -0.281 [",
        ),
        ("out of order::order", "p 0.0078) over 8 cases; lost most: g -0.500, a -0.250, b -0.250"),
        ("half broken::order", "error: server was not measured in every case; c: no route to host"),
        (
            "unknown variant::load",
            "names variant `thorogh`, and there is no such variant (did you mean `thorough`?)",
        ),
        ("one variant::load", "name two or more"),
        ("same variant::load", "names variant `fast` twice"),
        ("nothing to order::load", "no scorer counts for the verdict of a case"),
    ] {
        assert!(ran.message(trial).contains(words), "{trial}: {}", ran.message(trial));
    }
    assert!(
        !ran.stderr.contains("stack backtrace")
            && !ran.stderr.contains("panicked at tests/trouble/main.rs:1:")
    );
}

#[test]
fn a_filter_changes_what_runs_and_not_what_is_found() {
    let bench = Bench::new();
    let names = |arguments: &[&str]| {
        let ran = bench.run(arguments);
        (ran.code, ran.trials().into_keys().map(String::from).collect::<Vec<_>>())
    };
    assert_eq!(names(&["low::gate"]), (101, vec!["low::gate".into()]), "a gate alone runs all its cases");
    assert_eq!(names(&["--exact", "low::0.9 z"]), (0, vec!["low::0.9 z".into()]));
    assert_eq!(names(&["--exact", "low"]), (0, vec![]));
    assert_eq!(names(&["fine", "--skip", "gate"]).1, ["fine::0.9 c", "fine::a", "fine::b"]);
    assert_eq!(names(&["fine::a", "told::b"]), (0, vec!["fine::a".into(), "told::b".into()]), "two filters");
    assert_eq!(names(&["variants[good]"]).0, 0);
    assert_eq!(
        names(&["out of order::order"]),
        (101, vec!["out of order::order".into()]),
        "it runs all cases"
    );

    let partial = bench.report(&["low::0.9"], &[]);
    assert_eq!(
        (partial.evals[0].cases.len(), partial.evals[0].total, partial.evals[0].complete),
        (1, 3, false)
    );
}

#[test]
fn nothing_selected_fails_where_ci_is_set() {
    let bench = Bench::new();
    assert_eq!(bench.run(&["no such eval"]).code, 0);
    let output = bench.command().arg("no such eval").env("CI", "true").output().unwrap();
    let ran = Ran::new(output);
    assert_eq!(ran.code, 101);
    assert!(ran.stderr.contains("nothing was measured"), "{}", ran.stderr);
}

#[test]
fn only_is_for_working_on_a_case_and_not_for_ci() {
    let bench = Bench::new();
    let with =
        |ci: &str| Ran::new(bench.command().arg("alone").env("ALONE", "1").env("CI", ci).output().unwrap());
    let local = with("");
    assert_eq!(local.trials().into_iter().collect::<Vec<_>>(), [("alone::b", "ok"), ("alone::gate", "ok")]);
    let ci = with("1");
    assert_eq!(ci.code, 101);
    assert!(ci.message("alone::gate").contains("`.only` is set"));
}

#[test]
fn listing_prints_names_alone_and_writes_nothing() {
    let bench = Bench::new();
    let ran = bench.run(&["--list", "--format", "terse"]);
    assert_eq!(ran.code, 0);
    assert!(ran.stdout.lines().all(|line| line.ends_with(": test")), "{}", ran.stdout);
    assert!(ran.stdout.contains("twice::load: test\n") && ran.stdout.contains("变体::查询 一: test\n"));
    assert!(ran.stderr.is_empty(), "{}", ran.stderr);
    assert_eq!(fs::read_dir(bench.0.path()).unwrap().count(), 0);
}

#[test]
fn every_line_of_the_json_format_parses() {
    let ran = Bench::new().run(&["--format", "json"]);
    let events: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let failed = events.iter().find(|event| event["name"] == "panics::bad" && event["event"] == "failed");
    assert!(failed.unwrap()["stdout"].as_str().unwrap().contains("the subject is bad"));
    assert_eq!(events.last().unwrap()["type"], "suite");
}

#[test]
fn a_case_is_executed_once_whoever_asks() {
    let bench = Bench::new();
    for threads in ["1", "8"] {
        let _ = fs::remove_file(bench.path("count"));
        let mut command = bench.command();
        let ran = command.args(["counted", "--test-threads", threads]).env("COUNT_FILE", bench.path("count"));
        assert!(ran.output().unwrap().status.success());
        assert_eq!(bench.counts().into_values().collect::<Vec<_>>(), [1; 4], "{threads} threads");
        // Cases, gates and the order ask for the same ones.
        let _ = fs::remove_file(bench.path("count"));
        let mut command = bench.command();
        command.args(["out of order", "--test-threads", threads]).env("COUNT_FILE", bench.path("count"));
        assert_eq!(command.output().unwrap().status.code(), Some(101));
        assert_eq!(bench.counts().into_values().collect::<Vec<_>>(), [1; 8], "{threads} threads");
    }
}

#[test]
fn the_report_is_valid_under_the_published_schema() {
    let bench = Bench::new();
    let run = bench.report(&[], &[]);
    let schema = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/run-record.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&serde_json::from_slice(&schema).unwrap()).unwrap();
    let report: Value = serde_json::from_slice(&fs::read(bench.path("report.json")).unwrap()).unwrap();
    let errors: Vec<String> = validator.iter_errors(&report).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    assert!(!validator.is_valid(&serde_json::json!({"version": 1})));

    let eval = |name: &str| run.evals.iter().find(|eval| eval.eval == name).unwrap();
    assert_eq!(eval("unsure").verdict, Verdict::Inconclusive);
    assert_eq!(eval("scorers").verdict, Verdict::Error);
    assert_eq!(eval("panics").means[0].cases, 3, "an error stays in the denominator");
    assert!((eval("panics").means[0].mean - 2.0 / 3.0).abs() < 1e-9);
    let spread = &eval("spread").cases[0];
    assert_eq!((spread.mean, spread.scores[0].spread, spread.trials.len()), (Some(0.5), Some(1.0), 3));
    let once = eval("retried").cases.iter().find(|case| case.case == "once").unwrap();
    assert_eq!(once.trials[0].retried, ["connection reset"]);
    let hung = eval("hangs").cases.iter().find(|case| case.case == "scorer").unwrap();
    assert_eq!(hung.scores[1].value, Some(1.0), "the scorer after the one that hangs");
    let told = &eval("spread").means[0].trials.as_ref().unwrap();
    assert_eq!(
        (told.deviation, told.widest.as_str(), told.widest_mean, told.widest_deviation),
        (0.5, "a", 0.5, 0.5)
    );
    let informed = eval("informed");
    assert_eq!(
        (informed.cases[0].mean, informed.means[1].mean, informed.means[1].threshold),
        (Some(1.0), 0.1, None)
    );
    assert_eq!(informed.means[1].informs.as_deref(), Some("kappa 0.12 < 0.60"));
    let order = |name: &str| eval(name).order.iter().map(|order| order.order).collect::<Vec<_>>();
    assert_eq!(order("in order"), [Order::Tie, Order::Better], "latency has no order");
    assert_eq!(order("out of order"), [Order::Worse]);
    assert_eq!(order("not to compare"), [Order::NotCompared]);
    let stages = eval("stages").cases.iter().find(|case| case.case == "ran").unwrap();
    assert!(stages.trials[0].trace.ran("rerank"));
}

#[test]
fn history_tells_the_change_against_the_last_complete_run() {
    let bench = Bench::new();
    let change = |run: &RunRecord| run.evals[0].means[0].change;
    assert_eq!(change(&bench.report(&["told"], &[("SCORE", "0.5")])), None);
    assert_eq!(change(&bench.report(&["told::a"], &[("SCORE", "0.1")])), None, "a part is not compared");
    let second = bench.report(&["told"], &[("SCORE", "0.75")]);
    assert_eq!(change(&second), Some(0.25), "nor is it compared with");

    let history = History::open(bench.0.path()).unwrap();
    let runs = history.runs(&second.run.project, 10).unwrap();
    assert_eq!(runs.len(), 3);
    assert_eq!(runs[0], second.run);
    assert_eq!(history.run(&second.run.id).unwrap().evals, second.evals);
}

#[test]
fn two_runs_at_once_are_both_kept() {
    let bench = Bench::new();
    let quiet = std::process::Stdio::null;
    let start = || bench.command().arg("told").stdout(quiet()).stderr(quiet()).spawn().unwrap();
    let mut runs: Vec<_> = (0..4).map(|_| start()).collect();
    assert!(runs.iter_mut().all(|run| run.wait().unwrap().success()));
    let history = History::open(bench.0.path()).unwrap();
    assert_eq!(history.runs("rankgate", 10).unwrap().len(), 4);
}

#[test]
fn a_history_that_cannot_be_kept_is_said_once_and_fails_nothing() {
    let bench = Bench::new();
    fs::write(bench.path("history.db"), "x".repeat(5000)).unwrap();
    let ran = bench.run(&["fine"]);
    assert_eq!(ran.code, 0);
    assert_eq!(ran.stderr.matches("not kept in the history").count(), 1, "{}", ran.stderr);
    assert_eq!(fs::read(bench.path("history.db")).unwrap().len(), 5000);
}

#[test]
fn a_report_that_cannot_be_written_fails_the_run() {
    let bench = Bench::new();
    fs::write(bench.path("file"), "").unwrap();
    let mut command = bench.command();
    let ran = Ran::new(
        command.arg("fine").env("RANKGATE_OUTPUT", bench.path("file/report.json")).output().unwrap(),
    );
    assert_eq!(ran.code, 101);
    assert!(ran.stderr.contains("RANKGATE_OUTPUT"), "{}", ran.stderr);
}

fn has_nextest() -> bool {
    let found = cargo().args(["nextest", "--version"]).output().is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("skipped: cargo-nextest is not installed");
    }
    found
}

#[test]
fn under_nextest_processes_share_results() {
    if !has_nextest() {
        return;
    }
    let bench = Bench::new();
    let mut command = cargo();
    command.current_dir(env!("CARGO_MANIFEST_DIR")).env("RANKGATE_DATA", bench.0.path());
    command.env("COUNT_FILE", bench.path("count")).env("RANKGATE_OUTPUT", bench.path("report.json"));
    command.args([
        "nextest",
        "run",
        "--no-fail-fast",
        "--test",
        "trouble",
        "-E",
        "test(/^(counted|low|half)::|^out of order/)",
    ]);
    let ran = Ran::new(command.output().unwrap());
    assert_eq!(ran.code, 100, "{}", ran.stderr);
    for line in ["26 passed", "4 failed"] {
        assert!(ran.stderr.contains(line), "{line}: {}", ran.stderr);
    }
    // A gate and a case may meet at the same case, so a case runs twice at worst.
    assert!(bench.counts().values().all(|n| (1..=2).contains(n)), "{:?}", bench.counts());
    let run = RunRecord::from_json(&fs::read_to_string(bench.path("report.json")).unwrap()).unwrap();
    assert_eq!(run.run.runner, "nextest");
    let evals: Vec<(&str, usize)> =
        run.evals.iter().map(|eval| (eval.eval.as_str(), eval.cases.len())).collect();
    let ordered = [("out of order", 0), ("out of order[fast]", 8), ("out of order[thorough]", 8)];
    assert_eq!(evals, [&[("counted", 4), ("half", 2), ("low", 3)][..], &ordered].concat());
    assert_eq!(run.evals[3].order[0].order, Order::Worse);
    assert!(run.evals.iter().all(|eval| eval.complete));
}

#[test]
fn the_crate_outside_has_the_build_script_that_is_there_to_be_copied() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |file: &str| fs::read_to_string(root.join(file)).unwrap();
    assert!(read("build.rs") == read("tests/external/build.rs"), "copy build.rs to tests/external/build.rs");
}

/// The crate of `tests/external`, copied to where its snapshots may be written.
#[test]
fn a_crate_outside_evaluates_its_own_engine() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_path_buf();
    let copy = Bench::new();
    for file in ["Cargo.toml", "build.rs", "src/lib.rs", "evals/main.rs", "evals/search.eval.rs"] {
        let to = copy.path(file);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        let text = fs::read_to_string(root.join("tests/external").join(file)).unwrap();
        fs::write(to, text.replace("../..", root.to_str().unwrap())).unwrap();
    }
    fs::copy(root.join("Cargo.lock"), copy.path("Cargo.lock")).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = cargo();
        command.current_dir(copy.0.path()).env("RANKGATE_DATA", copy.path("data"));
        command.env("CARGO_TARGET_DIR", &target).args(arguments);
        Ran::new(command.output().unwrap())
    };

    let first = run(&["test", "--test", "evals"]);
    assert_eq!(first.trials().get("search::gate"), Some(&"ok"), "{}{}", first.stdout, first.stderr);
    assert!(first.message("search::slow").contains("is new, accept it with `cargo insta review`"));
    // What `cargo insta accept` does.
    for case in ["slow", "rollback"] {
        let pending = copy.path(&format!("snapshots/search__{case}.snap.new"));
        assert!(fs::read_to_string(&pending).unwrap().contains("source: evals/main.rs"));
        fs::rename(&pending, pending.with_extension("")).unwrap();
    }
    let second = run(&["test", "--test", "evals"]);
    assert_eq!(second.code, 0, "{}{}", second.stdout, second.stderr);
    if has_nextest() {
        let nextest = run(&["nextest", "run", "--test", "evals"]);
        assert_eq!(nextest.code, 0, "{}", nextest.stderr);
    }

    // A new eval file needs no second edit; a changed ranking shows what changed.
    let eval = fs::read_to_string(copy.path("evals/search.eval.rs")).unwrap();
    fs::create_dir(copy.path("evals/more")).unwrap();
    fs::write(copy.path("evals/more/2nd-look.eval.rs"), eval.replace("\"search\"", "\"second\"")).unwrap();
    fs::write(copy.path("evals/search.eval.rs"), eval.replace("\"slow queries\"", "\"slow roll queries\""))
        .unwrap();
    let third = run(&["test", "--test", "evals"]);
    assert_eq!(third.trials().get("second::gate"), Some(&"ok"), "{}{}", third.stdout, third.stderr);
    assert!(third.stdout.contains("snapshot `search__slow` differs"), "{}", third.stdout);
    assert!(third.stdout.contains("  + 1 2.000 deploy.md"), "{}", third.stdout);
}
