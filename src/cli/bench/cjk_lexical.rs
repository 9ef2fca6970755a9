//! `rankgate bench cjk-lexical`: the default tokenizer against a plain one, and whether it may stay the default.

use std::path::PathBuf;
use std::process::ExitCode;

use schemars::JsonSchema;
use serde::Serialize;

use crate::benchmarks::cjk_lexical::collection::{Compared, compare};
use crate::benchmarks::cjk_lexical::fixture::{CjkQuery, Fixture};
use crate::benchmarks::cjk_lexical::gates::{Decision, Outcome, promotion};
use crate::benchmarks::cjk_lexical::measure::{CoRun, co_run};
use crate::benchmarks::cjk_lexical::{decision, page};
use crate::cli::{json, print};
use crate::error::{Error, Result, exit};

/// Compare tokenizers on Chinese, Japanese and Korean
///
/// Searches a fixture of judged queries by words, with a tokenizer for spaced scripts and with the default, and judges
/// the default by the promotion gates of the fixture. The exit code is 0 when all passed, 1 when one failed. With a
/// selection of queries figures are reported and nothing is decided.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rankgate bench cjk-lexical
  rankgate bench cjk-lexical --language ja
  rankgate bench cjk-lexical --collection my-zh-collection --collection my-ja-collection
  rankgate bench cjk-lexical --write")]
pub struct Args {
    /// The folder of the fixture.
    #[arg(long, value_name = "DIR", default_value = "fixtures/cjk-lexical")]
    fixture: PathBuf,
    /// Keep the decision as an artefact; without gates, freeze the baseline and derive them first.
    #[arg(long, conflicts_with_all = ["language", "query"])]
    write: bool,
    /// Only queries of this language; repeat it for several.
    #[arg(long, value_name = "LANG")]
    language: Vec<String>,
    /// Only this query; repeat it for several.
    #[arg(long, value_name = "ID")]
    query: Vec<String>,
    /// Compare the tokenizers on this collection too (a BEIR folder); repeat it for several.
    #[arg(long, value_name = "DIR")]
    collection: Vec<PathBuf>,
    /// How often all queries are timed.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    passes: u32,
    /// Print one JSON document (schemas/bench-cjk-lexical.schema.json).
    #[arg(long)]
    json: bool,
}

/// What `cjk-lexical` prints with `--json`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "rankgate bench cjk-lexical")]
pub(in crate::cli) struct Output {
    /// Version of this format.
    version: u32,
    /// The fixture as it was named.
    fixture: String,
    /// How many of its queries were asked.
    queries: usize,
    /// Whether that is only a part of them, of which nothing is decided.
    selection: bool,
    /// The figures.
    run: CoRun,
    /// The gates and the outcome; absent for a selection, and where there are no gates.
    decision: Option<Decision>,
    /// Both tokenizers on other collections.
    collections: Vec<Compared>,
    /// Files that were written.
    written: Vec<String>,
}

/// Runs it.
pub fn run(args: Args) -> Result<ExitCode> {
    let fixture = Fixture::read(&args.fixture)?;
    let queries = selected(&args, &fixture)?;
    let selection = queries.len() < fixture.queries.len();
    let mut gates = decision::gates(&fixture)?;
    let comparison = decision::comparison(&fixture, gates.as_ref())?;
    let run = co_run(&fixture, &queries, comparison.as_ref(), args.passes as usize)?;
    let collections = args.collection.iter().map(|dir| compare(dir)).collect::<Result<Vec<_>>>()?;
    let mut written = Vec::new();
    if args.write && gates.is_none() {
        let (frozen, files) = decision::freeze(&fixture, &run)?;
        gates = Some(frozen);
        written = files;
    }
    let mut decided = None;
    if let Some(gates) = gates.as_ref().filter(|_| !selection) {
        decision::check(&fixture, gates, &run)?;
        let decision = promotion(gates, &run.baseline, &run.candidate);
        if args.write {
            written.push(decision::keep(&fixture, gates, &run, &decision)?);
        }
        decided = Some(decision);
    }
    let outcome = decided.as_ref().map(|decision| decision.outcome);
    let output = Output {
        version: 1,
        fixture: args.fixture.display().to_string(),
        queries: queries.len(),
        selection,
        run,
        decision: decided,
        collections,
        written: written.iter().map(|path| path.display().to_string()).collect(),
    };
    print(&if args.json { json(&output) } else { text(&output, fixture.queries.len()) })?;
    Ok(ExitCode::from(if outcome == Some(Outcome::NoShip) { exit::GATE_FAILED } else { exit::PASS }))
}

/// The queries that were asked for; all without a selection.
fn selected<'a>(args: &Args, fixture: &'a Fixture) -> Result<Vec<&'a CjkQuery>> {
    let known = |what: &str, name: &str, is: &dyn Fn(&CjkQuery) -> bool| match fixture.queries.iter().any(is)
    {
        true => Ok(()),
        false => Err(Error::usage(format!(
            "{}: there is no {what} `{name}`",
            args.fixture.join("queries.json").display()
        ))
        .with_hint("see the file for those that there are")),
    };
    for language in &args.language {
        known("query of language", language, &|query| &query.language == language)?;
    }
    for id in &args.query {
        known("query", id, &|query| &query.id == id)?;
    }
    let wanted = |query: &&CjkQuery| {
        (args.language.is_empty() || args.language.contains(&query.language))
            && (args.query.is_empty() || args.query.contains(&query.id))
    };
    let queries: Vec<_> = fixture.queries.iter().filter(wanted).collect();
    match queries.is_empty() {
        true => Err(Error::usage("no query is left by --language and --query together")
            .with_hint("name queries of these languages, or leave one of the two out")),
        false => Ok(queries),
    }
}

fn text(output: &Output, all: usize) -> String {
    let mut text = format!("{}: {} of {all} queries\n\n", output.fixture, output.queries);
    text += &page::report(&output.run, output.decision.as_ref(), &output.collections);
    if output.selection {
        text += "A part of the queries: nothing is decided.\n";
    } else if output.decision.is_none() {
        text += "There are no promotion gates: nothing is decided. Freeze a baseline with --write.\n";
    }
    for path in &output.written {
        text += &format!("wrote {path}\n");
    }
    text
}
