//! `rankgate metrics`: what `trec_eval` prints.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::corpus::trec;
use crate::error::{Error, Result};
use crate::metrics::{Measures, Options, evaluate};

/// Measure a run file against judgments, as trec_eval does
///
/// Reads TREC files (`query 0 docid grade` and `query Q0 docid rank score tag`; judgments also as BEIR's TSV)
/// and prints the lines of trec_eval 10, byte for byte. A document that a ranking repeats counts once, where
/// it ranks best.
#[derive(Debug, clap::Args)]
#[command(after_long_help = help())]
pub struct Args {
    /// File of judgments
    #[arg(long, value_name = "FILE")]
    qrels: PathBuf,
    /// File of rankings
    #[arg(long, value_name = "FILE")]
    run: PathBuf,
    /// Measure or set of measures, with parameters behind a dot; may be repeated [default: official]
    #[arg(short, long = "measure", value_name = "MEASURE")]
    measure: Vec<String>,
    /// Print every query before the summary
    #[arg(short = 'q', long)]
    per_query: bool,
    /// Count judged queries that the run lacks as 0 instead of leaving them out
    #[arg(short, long)]
    complete: bool,
    /// Least grade that counts as relevant
    #[arg(short, long, value_name = "GRADE", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(i64).range(0..))]
    level: i64,
    /// Look at the first DEPTH documents of each ranking only
    #[arg(short = 'M', long, value_name = "DEPTH", value_parser = clap::value_parser!(u64).range(1..))]
    depth: Option<u64>,
    /// Print one JSON document with full precision
    #[arg(long)]
    json: bool,
}

fn help() -> String {
    format!(
        "{}\nExamples:\n  \
         rankgate metrics --qrels qrels.txt --run bm25.txt\n  \
         rankgate metrics --qrels qrels.txt --run bm25.txt -m ndcg_cut.10 -m recall.100 -c\n  \
         rankgate metrics --qrels qrels.txt --run bm25.txt -m all_trec -m relstring.20 -q\n  \
         rankgate metrics --qrels qrels.txt --run bm25.txt -m ndcg.1=3,2=9 --json",
        Measures::help()
    )
}

/// Runs it.
pub fn run(args: Args) -> Result<ExitCode> {
    let measures = Measures::parse(&args.measure)?;
    let qrels = trec::read_qrels(&args.qrels)?;
    let run = trec::read_run(&args.run)?;
    let options = Options {
        level: args.level,
        depth: args.depth.map_or(usize::MAX, |depth| usize::try_from(depth).unwrap_or(usize::MAX)),
        complete: args.complete,
    };
    let evaluation = evaluate(&run, &qrels, &measures, options)
        .map_err(|e| e.context(format!("{}, {}", args.run.display(), args.qrels.display())))?;
    if args.json {
        let report = serde_json::to_string_pretty(&evaluation.report(args.per_query))
            .map_err(|e| Error::input("cannot write the result as JSON").with_source(e))?;
        super::print(&(report + "\n"))?;
    } else {
        super::print(&evaluation.text(args.per_query))?;
    }
    // Both files may be large, and the process ends here anyway.
    std::mem::forget((qrels, run));
    Ok(ExitCode::SUCCESS)
}
