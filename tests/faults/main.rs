//! The project's own evals over its own fixtures, with one fault planted: `FAULT` says which. `tests/faults.rs`
//! runs it as a program of its own and reads what it says.

#[path = "../../evals/ask.eval.rs"]
mod ask;
#[path = "../../evals/expansion.eval.rs"]
mod expansion;
#[path = "../../evals/multilingual.eval.rs"]
mod multilingual;
#[path = "../../evals/vsearch.eval.rs"]
mod vsearch;
// The eval files' `crate::fixtures` is the faulty one beside this file; this is theirs.
#[path = "../../evals/fixtures.rs"]
mod sound;

mod conventions;
mod fixtures;

fn main() -> std::process::ExitCode {
    rankgate::harness::main(rankgate::project!(), |suite| {
        suite.file("evals/vsearch.eval.rs", vsearch::register);
        suite.file("evals/multilingual.eval.rs", multilingual::register);
        suite.file("tests/faults/conventions.rs", conventions::register);
        if fixtures::of_generation() {
            suite.file("evals/expansion.eval.rs", expansion::register);
            suite.file("evals/ask.eval.rs", ask::register);
        }
    })
}
