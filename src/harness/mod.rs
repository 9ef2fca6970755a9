//! The harness: evals become cargo tests.
//!
//! An eval is data, a closure, scorers and thresholds. Each of its cases is a trial, `vsearch::q1`; one more,
//! `vsearch::gate`, decides the thresholds over all cases. The trials run under `cargo test` and nextest alike,
//! with any filter and any number of threads.
//!
//! ```
//! use rankgate::prelude::*;
//!
//! pub fn register(suite: &mut Suite) {
//!     suite
//!         .eval("vsearch")
//!         .describe("the engine finds the judged documents")
//!         .cases(|| vec![Example::new("q1", "roll back").expecting(Judgments::from([("a.md".into(), 1)]))])
//!         .subject(|case, _| my_engine(case.input))
//!         .score(recall_at(5))
//!         .score(ndcg_at(10))
//!         .threshold(0.7)
//!         .columns(|case, out| [("query", case.input.to_string()), ("top 3", out.top(3))]);
//! }
//!
//! fn my_engine(query: &str) -> Result<Ranking> {
//!     Ok(Ranking::from_docids(["a.md", "b.md"]))
//! }
//! # register(&mut Suite::default());
//! ```
//!
//! The test target needs `harness = false` and two lines, `rankgate::evals!();` in `evals/main.rs` and the
//! build script that finds `evals/**/*.eval.rs` (see [`evals!`](crate::evals)).
//!
//! Limits: what a subject prints to stdout is not captured, and would stand between the lines of
//! `--format json`: print to stderr. A subject that never returns keeps its thread until the process ends.

mod answers;
mod body;
mod case;
mod expansions;
mod judge;
mod libtest;
mod ordering;
mod plan;
mod report;
mod run;
mod scorer;
mod session;
mod snapshot;
mod suite;
mod verdict;
mod worker;

use std::process::ExitCode;

pub use answers::{
    Answered, Asks, abstention, citations_present, citations_valid, grounded, not_echo, topic_coverage,
};
pub use case::{BoxError, Case, Context, Example, IntoCases, Judged, Output, Ranked};
pub use expansions::{
    Expanded, added_relevant_at, expansion_valid, has_lexical_variants, has_vector_variants, varied,
};
pub use judge::{Agreement, Judge, Label, Labelled};
pub use scorer::{
    Observed, Scored, Scorer, average_precision, latency, ndcg_at, precision_at, recall_at, reciprocal_rank,
    schema_valid, scorer,
};
pub use session::Project;
pub use snapshot::ranking_lines;
pub use suite::{Eval, Registered, Start, Suite, WithCases};

#[doc(hidden)]
pub use insta;

/// Runs a suite as a test program: what `evals/main.rs` returns. [`evals!`](crate::evals) writes the call.
///
/// The exit code is libtest's: 0 when all selected trials passed, 101 when one failed, 2 for a wrong argument;
/// also 101 when `CI` is set and nothing was selected, and when `RANKGATE_OUTPUT` could not be written. Call it
/// first in `main`, before any other thread is started.
pub fn main(project: Project, register: impl FnOnce(&mut Suite)) -> ExitCode {
    let defaults = [
        // Without it insta asks cargo for the workspace, once a process.
        ("INSTA_WORKSPACE_ROOT", project.root().as_os_str().to_owned()),
        // insta would print to stdout, which belongs to libtest; the trial's message shows the difference.
        ("INSTA_OUTPUT", "none".into()),
    ];
    for (name, value) in defaults {
        if std::env::var_os(name).is_none() {
            // SAFETY: the caller has started no other thread, so nobody reads the environment meanwhile.
            unsafe { std::env::set_var(name, value) };
        }
    }
    libtest::run(project, register)
}

/// The whole of `evals/main.rs`: takes in every `evals/**/*.eval.rs` and runs them.
///
/// Each such file has `pub fn register(suite: &mut Suite)`, which may also return a `Result`. The build script
/// finds the files, so a new one needs no second edit. Copy `build.rs` of this crate, or write the list and
/// `main` by hand with [`project!`](crate::project):
///
/// ```no_run
/// # mod search { pub fn register(_: &mut rankgate::harness::Suite) {} }
/// fn main() -> std::process::ExitCode {
///     rankgate::harness::main(rankgate::project!(), |suite| {
///         suite.file("evals/search.eval.rs", search::register);
///     })
/// }
/// ```
#[macro_export]
macro_rules! evals {
    () => {
        include!(concat!(env!("OUT_DIR"), "/evals.rs"));

        fn main() -> ::std::process::ExitCode {
            $crate::harness::main($crate::project!(), register_all)
        }
    };
}

/// The [`Project`](crate::harness::Project) of the package in which it is written.
#[macro_export]
macro_rules! project {
    () => {
        $crate::harness::Project::new(
            env!("CARGO_PKG_NAME"),
            env!("CARGO_PKG_VERSION"),
            env!("CARGO_MANIFEST_DIR"),
            |name, text| $crate::harness::insta::assert_snapshot!(name, text),
        )
    };
}
