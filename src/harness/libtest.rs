//! The adapter to libtest: evals become trials that cargo and nextest know how to run.

use std::collections::HashMap;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use libtest_mimic::{Arguments, Completion, Failed, Trial};

use crate::record::{CaseRecord, Verdict};

use super::ordering::Ordering;
use super::report;
use super::run::{EvalRun, Permits};
use super::session::{Project, Session};
use super::suite::{Definition, Suite};

/// libtest's command line. libtest-mimic takes one filter, libtest many.
#[derive(Parser)]
#[command(disable_version_flag = true)]
struct Args {
    #[command(flatten)]
    libtest: Arguments,
    /// Further filters: a trial runs when it matches one of them.
    #[arg(value_name = "FILTER")]
    more: Vec<String>,
    #[arg(long, hide = true)]
    no_capture: bool,
}

/// What a failed trial exits with, as libtest does.
const FAILED: u8 = 101;

/// Runs the evals that `register` adds, as the command line says, and prints the table.
pub fn run(project: Project, register: impl FnOnce(&mut Suite)) -> ExitCode {
    let Args { mut libtest, more, .. } = Args::parse();
    let mut filters: Vec<String> = libtest.filter.iter().cloned().chain(more).collect();
    if libtest.test_threads.is_none() {
        libtest.test_threads = std::env::var("RUST_TEST_THREADS").ok().and_then(|n| n.parse().ok());
    }
    if libtest.test_threads == Some(0) {
        libtest.test_threads = None;
    }
    let session = Arc::new(Session::new(project, describe(&filters, &libtest)));
    let mut suite = Suite::default();
    register(&mut suite);

    let (mut trials, runs, orderings) = expand(suite, &session, &libtest);
    if filters.len() > 1 {
        libtest.filter = None;
        let wanted =
            |name: &str, filter: &String| if libtest.exact { name == filter } else { name.contains(filter) };
        trials.retain(|trial| filters.iter().any(|filter| wanted(trial.name(), filter)));
    } else {
        filters.clear();
    }
    let selected = trials.iter().filter(|trial| !libtest.is_filtered_out(trial)).count();
    if !libtest.list && !session.is_nextest() && selected > 0 {
        // Asking git takes as long as many cases; it is done by the time the first ones are.
        let session = Arc::clone(&session);
        std::thread::spawn(move || session.head().id.len());
    }
    let conclusion = libtest_mimic::run(&libtest, trials);
    if libtest.list {
        return ExitCode::SUCCESS;
    }
    let complete = finish(&session, &runs, &orderings);
    if selected == 0 && session.is_ci() {
        say(
            "error: no eval matches the filter, and CI is set: nothing was measured (check the filter and evals/)",
        );
        return ExitCode::from(FAILED);
    }
    if conclusion.has_failed() || !complete { ExitCode::from(FAILED) } else { ExitCode::SUCCESS }
}

/// Saves, exports and reports. False when an export that was asked for failed.
fn finish(session: &Session, runs: &[Arc<EvalRun>], orderings: &[Arc<Ordering>]) -> bool {
    let joined = session.is_nextest() && session.exports();
    let known = |run: &Arc<EvalRun>| if joined { run.known_to_all() } else { run.known() };
    let mut evals: Vec<_> = if session.is_nextest() && !joined {
        // Only a gate has something to add to what its cases have saved.
        runs.iter().filter_map(|run| run.gated()).collect()
    } else {
        runs.iter().filter_map(known).collect()
    };
    evals.extend(orderings.iter().filter_map(|ordering| ordering.judged()));
    session.save_evals(&evals);
    if !session.is_nextest() && !evals.is_empty() {
        let _ = std::io::stderr().write_all(report::table(&evals).as_bytes());
    }
    let report = !session.is_nextest() && !evals.is_empty();
    match session.export(evals) {
        Ok(exported) => {
            if report {
                say(&report::places(session, exported));
            }
            true
        }
        Err(error) => {
            say(&format!("error: {}", error.report()));
            false
        }
    }
}

fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// What was typed to choose the trials.
fn describe(filters: &[String], args: &Arguments) -> String {
    let exact = args.exact.then(|| "--exact".to_string());
    let skips = args.skip.iter().map(|skip| format!("--skip {skip}"));
    filters.iter().cloned().chain(exact).chain(skips).collect::<Vec<_>>().join(" ")
}

/// What there is to run.
type Expanded = (Vec<Trial>, Vec<Arc<EvalRun>>, Vec<Arc<Ordering>>);

/// Every case, every gate and every order as a trial, in the order in which they were registered.
fn expand(suite: Suite, session: &Arc<Session>, args: &Arguments) -> Expanded {
    let (mut trials, mut runs, mut orderings) = (Vec::new(), Vec::new(), Vec::new());
    for (name, failure) in suite.failures {
        trials.push(failing(format!("{name}::load"), failure));
    }
    let mut files: HashMap<String, String> = HashMap::new();
    for eval in suite.evals {
        let (name, file) = (eval.plan().name.clone(), eval.plan().file.clone());
        if let Some(first) = files.insert(name.clone(), file.clone()) {
            let where_ =
                if first == file { format!("twice in {file}") } else { format!("in {first} and in {file}") };
            trials.push(failing(format!("{name}::load"), format!("eval `{name}` is defined {where_}")));
            continue;
        }
        if asks_for_another(&name, session, args) {
            continue;
        }
        match load(eval, session) {
            Ok(loaded) => {
                orderings.extend(loaded.first().and_then(|run| Ordering::new(&run.plan, &loaded)));
                runs.extend(loaded);
            }
            Err(Left::Out(reason)) => {
                let ignored = move || Ok(Completion::ignored_with(reason));
                let trial = Trial::ignorable_test(format!("{name}::gate"), ignored);
                trials.push(trial.with_ignored_flag(session.is_nextest()));
            }
            Err(Left::Broken(error)) => {
                let name = if unlistable(&name) { "unnamed".into() } else { name };
                let message = if file.is_empty() { error } else { format!("{file}: {error}") };
                trials.push(failing(format!("{name}::load"), message.clone()));
                trials.push(failing(format!("{name}::gate"), message));
            }
        }
    }
    for run in &runs {
        trials.extend(trials_of(run, session));
    }
    for ordering in &orderings {
        let ordering = Arc::clone(ordering);
        trials.push(Trial::ignorable_test(ordering.title(), move || {
            let record = ordering.judge();
            outcome(record.verdict, &record.reason, String::new)
        }));
    }
    (trials, runs, orderings)
}

/// Under nextest a process runs one trial: the cases of other evals need not be read to find it.
fn asks_for_another(eval: &str, session: &Session, args: &Arguments) -> bool {
    let Some(wanted) = args.filter.as_ref().filter(|_| args.exact && session.is_nextest() && !args.list)
    else {
        return false;
    };
    let rest = wanted.strip_prefix(eval);
    !rest.is_some_and(|rest| rest.starts_with("::") || rest.starts_with('['))
}

fn unlistable(name: &str) -> bool {
    super::plan::unusable(name).is_some()
}

/// Why an eval has no trials of its own.
enum Left {
    Out(String),
    Broken(String),
}

fn load(eval: Box<dyn Definition>, session: &Arc<Session>) -> Result<Vec<Arc<EvalRun>>, Left> {
    let plan = Arc::new(eval.plan().clone());
    if let Some(reason) = &plan.skip {
        return Err(Left::Out(reason.clone()));
    }
    if session.is_ci() && !plan.only.is_empty() {
        return Err(Left::Broken(
            "`.only` is set, and CI is: other cases would go unmeasured (remove it)".into(),
        ));
    }
    let permits = Arc::new(Permits::new(plan.concurrency));
    let loaded = eval.load().map_err(Left::Broken)?;
    let run = |loaded: super::suite::Loaded| {
        let (plan, permits) = (Arc::clone(&plan), Arc::clone(&permits));
        Arc::new(EvalRun::new(loaded.title, plan, loaded.body, permits, Arc::clone(session)))
    };
    Ok(loaded.into_iter().map(run).collect())
}

fn failing(name: String, message: String) -> Trial {
    Trial::test(name, move || Err(Failed::from(message)))
}

fn trials_of(run: &Arc<EvalRun>, session: &Session) -> Vec<Trial> {
    let case = |index: usize| {
        let name = format!("{}::{}", run.title, run.ids[index]);
        let skipped = run.plan.skip_cases.contains_key(&run.ids[index]);
        let run = Arc::clone(run);
        let trial = Trial::ignorable_test(name, move || {
            let record = run.case(index);
            outcome(record.verdict, &record.reason, || columns(&record))
        });
        // nextest learns of a skip only from the list; libtest can tell the reason at run time.
        trial.with_ignored_flag(skipped && session.is_nextest())
    };
    let mut trials: Vec<Trial> = (0..run.ids.len()).map(case).collect();
    let gate = Arc::clone(run);
    trials.push(Trial::ignorable_test(format!("{}::gate", run.title), move || {
        let record = gate.gate();
        outcome(record.verdict, &record.reason, String::new)
    }));
    trials
}

fn outcome(verdict: Verdict, reason: &str, more: impl FnOnce() -> String) -> Result<Completion, Failed> {
    match verdict {
        Verdict::Skipped => Ok(Completion::ignored_with(reason)),
        verdict if verdict.is_success() => Ok(Completion::Completed),
        verdict => Err(Failed::from(format!("{}: {reason}{}", verdict.words(), more()))),
    }
}

fn columns(record: &CaseRecord) -> String {
    record.columns.iter().map(|column| format!("\n  {}: {}", column.label, column.text)).collect()
}
