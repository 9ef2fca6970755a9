//! The program `rankgate`: everything around the evals that is not a test.

use std::process::ExitCode;

fn main() -> ExitCode {
    rankgate::cli::main()
}
