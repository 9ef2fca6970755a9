//! `rankgate ask`: one question, one answer with its passages.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use crate::corpus::Answer;
use crate::error::Result;
use crate::models;
use crate::pipeline::{Answerer, AskRequest, Pipeline, Request};
use crate::settings::{self, Preset, Settings, Thoroughness};
use crate::store::cache::Cache;
use crate::text::{citations, parse, sentences, snippet, uncited, unwrapped};
use crate::trace::Trace;

/// Characters of a passage that are shown.
const SNIPPET: usize = 160;

/// Passages that are named where there is no answer.
const NEAREST: usize = 3;

/// Answer a question from the indexed documents, with citations
///
/// The answer cites its passages as [n]; they are listed below it. When the passages do not hold the answer, it says
/// "no answer" and why. That is an answer too: the exit code is 0.
///
/// The extractive answerer quotes sentences and needs no language model. The generated answer is written by the model
/// of the preset, which sees the passages as quoted data: what they say is never an order. The local model is small and often
/// wrong. --verified notices inventions; swapped facts of the same sentence can pass.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rankgate ask \"how long are daily backups kept?\"
  rankgate ask --answerer generated --verified \"how long are daily backups kept?\"
  rankgate ask --preset quality --thorough \"who approves a restore?\"")]
pub struct Args {
    /// The question. A text that begins with a hyphen goes behind `--`.
    #[arg(required = true)]
    text: Vec<String>,
    /// Who answers. Default: extractive for the local preset, generated for one on a server.
    #[arg(long, value_enum)]
    answerer: Option<AnswererArg>,
    /// The language model: nano, slim, balanced, quality or one of the settings. Default: the setting.
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    /// No answer unless every sentence is close to a passage that it cites, with its numbers and negations.
    #[arg(long)]
    verified: bool,
    /// How many passages the answer may rest on.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=20))]
    passages: u32,
    /// Find and weigh passages by words only; no embedder is loaded.
    #[arg(long, conflicts_with = "thorough")]
    fast: bool,
    /// Expand the question before passages are looked for, and rerank more of them.
    #[arg(long)]
    thorough: bool,
    /// Only documents of this collection.
    #[arg(long, value_name = "NAME")]
    collection: Option<String>,
    /// The index folder. Default: the one in RANKGATE_HOME.
    #[arg(long, value_name = "DIR")]
    index: Option<PathBuf>,
    /// Show what each stage did.
    #[arg(long)]
    explain: bool,
    /// Print one JSON document (schemas/ask.schema.json).
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum AnswererArg {
    /// Quotes one to three sentences.
    Extractive,
    /// The language model of the preset writes.
    Generated,
}

/// What `ask` prints with `--json`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// Version of this format.
    version: u32,
    /// The question as typed.
    question: String,
    /// The answer, or why there is none.
    answer: Answer,
    /// What ran, in order.
    trace: Trace,
}

/// Runs it.
pub fn run(args: Args) -> Result<ExitCode> {
    let mut settings = Settings::load(&super::working_folder()?)?;
    if let Some(preset) = &args.preset {
        settings.models.preset.clone_from(preset);
    }
    let preset = settings.models.find_preset(&settings.models.preset)?;
    let request = request(&args, &settings, &preset)?;
    let cache = Arc::new(Cache::open(&settings::home()?.join("cache.db"))?);
    let dir = super::index_folder(args.index.as_deref())?;
    let mut pipeline = if request.request.thoroughness == Some(Thoroughness::Fast) {
        Pipeline::with_models(&dir, &settings.search, None, None)? // nothing but words is looked at
    } else {
        Pipeline::open(&dir, &settings, Some(cache.clone()))?
    };
    if request.answerer == Answerer::Generated {
        pipeline = pipeline.with_generator(models::generator(&settings.models, Some(cache))?);
    }
    let (answer, trace) = super::capture::attach(pipeline, &settings)?.ask(&request)?;
    let output = Output { version: 1, question: args.text.join(" "), answer, trace };
    super::print(&if args.json { super::json(&output) } else { page(&output, args.explain) })?;
    Ok(ExitCode::SUCCESS)
}

fn request(args: &Args, settings: &Settings, preset: &Preset) -> Result<AskRequest> {
    let mut request = Request::parse(&args.text)?;
    request.collection.clone_from(&args.collection);
    let level = match (args.fast, args.thorough) {
        (true, _) => Thoroughness::Fast,
        (_, true) => Thoroughness::Thorough,
        _ => settings.search.thoroughness,
    };
    let answerer = match (args.answerer, preset) {
        (Some(AnswererArg::Extractive), _) | (None, Preset::Local) => Answerer::Extractive,
        (Some(AnswererArg::Generated), _) | (None, Preset::Server(_)) => Answerer::Generated,
    };
    let mut ask = AskRequest::new(request.thoroughness(level)).answerer(answerer);
    ask.verified = args.verified;
    ask.passages = args.passages as usize;
    Ok(ask)
}

fn page(output: &Output, explain: bool) -> String {
    let answer = &output.answer;
    let mut text = match &answer.abstained {
        Some(reason) => format!("no answer: {reason}\n"),
        None => format!("{}\n", answer.text),
    };
    let question = parse(&output.question);
    let asked: Vec<&String> = question.terms.iter().chain(&question.phrases).collect();
    // Writing to a String cannot fail.
    for &n in &answer.citations {
        let Some(passage) = n.checked_sub(1).and_then(|n| answer.passages.get(n)) else { continue };
        let _ = writeln!(text, "\n[{n}] {}  {}", super::line(&passage.docid), super::line(&passage.title));
        let cites = |sentence: &&str| citations(sentence).contains(&n);
        let said: Vec<String> = sentences(&answer.text).into_iter().filter(cites).map(uncited).collect();
        // Around what was quoted, else around what was asked.
        let lines = unwrapped(&passage.text);
        let quoted = |said: &&String| lines.iter().any(|line| line.text.contains(said.as_str()));
        let shown = match said.iter().find(quoted) {
            Some(quote) => snippet(&passage.text, &[quote], SNIPPET),
            None => snippet(&passage.text, &asked, SNIPPET),
        };
        let _ = writeln!(text, "    {shown}");
    }
    if answer.abstained.is_some() && !answer.passages.is_empty() {
        text.push_str("\nnearest\n");
        for passage in answer.passages.iter().take(NEAREST) {
            let _ = writeln!(text, "    {}  {}", super::line(&passage.docid), super::line(&passage.title));
        }
    }
    if answer.invalid_citations > 0 {
        let _ = writeln!(
            text,
            "\ncitations that resolved to no passage and were taken out: {}",
            answer.invalid_citations
        );
    }
    if explain {
        text.push_str(&super::search::stages(&output.trace));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::Passage;

    #[test]
    fn a_passage_is_shown_where_it_was_quoted() {
        let quote = "Gold customers wait no more than fifteen minutes.";
        let text =
            format!("How long are daily copies kept? {} {quote}", "Other words fill the page. ".repeat(20));
        let passage = Passage { docid: "a.md".into(), text, ..Passage::default() };
        let answer = Answer {
            text: format!("{quote} [1]"),
            citations: vec![1],
            passages: vec![passage],
            ..Answer::default()
        };
        let question = "how long are daily copies kept".into();
        let shown = page(&Output { version: 1, question, answer, trace: Trace::default() }, false);
        assert_eq!(shown.matches("fifteen minutes").count(), 2, "{shown}");
    }
}
