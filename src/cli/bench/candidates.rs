//! `rankgate bench candidates`: embedders, fusion rules and rerankers compared over the whole path.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::apart::measured;
use crate::benchmarks::artefact;
use crate::benchmarks::candidates::{
    Artefact, CorpusFacts, Kind, Set, embedders, fixtures, folder, jobs, matrix, own, page,
};
use crate::cli::{json, print, working_folder};
use crate::error::{Error, Result, exit};
use crate::settings::{ModelSettings, Settings};

/// Compare embedders, fusion rules and rerankers over the whole path of a search
///
/// Every candidate searches a fresh index of the same documents, each embedder in a process of its own. A candidate in
/// which a stage did not run that it stands for is failed and has no figures. The recommendation is computed: another
/// candidate than the settings' is named only when it is better by more than chance and on no set worse. This compares
/// and is no gate: the exit code is 0 unless the candidate of the settings failed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rankgate bench candidates --write
  rankgate bench candidates --corpus docs --queries judged.json
  rankgate bench candidates --corpus docs --queries judged.json --embedder bge-small --write --to results

Without --corpus the fixtures of the working folder are searched: fixtures/corpus, queries.json and ask.json.")]
pub struct Args {
    /// Compare this embedder with that of the settings; repeat it for several. Default: all of the catalogue and of
    /// [models.custom.NAME]. With `+languages` behind it, what tells languages apart stays in its vectors.
    #[arg(long, value_name = "NAME")]
    embedder: Vec<String>,
    /// Documents of your own: a folder, or a BEIR folder.
    #[arg(long, value_name = "DIR", requires = "queries")]
    corpus: Option<PathBuf>,
    /// Judged queries over them: a queries.json, or a BEIR folder.
    #[arg(long, value_name = "FILE|DIR", requires = "corpus")]
    queries: Option<PathBuf>,
    /// Keep the result as a new dated artefact, JSON and Markdown.
    #[arg(long)]
    write: bool,
    /// Folder of the artefacts. Default: fixtures/candidates, unless the documents are your own.
    #[arg(long, value_name = "DIR", requires = "write")]
    to: Option<PathBuf>,
    /// Print one JSON document (schemas/bench-candidates.schema.json).
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub fn run(args: Args) -> Result<ExitCode> {
    let project = working_folder()?;
    let to = match (&args.to, &args.corpus) {
        (None, Some(_)) if args.write => {
            return Err(Error::usage("--write does not know where to keep a result over your own documents")
                .with_hint("name a folder with --to"));
        }
        (Some(to), _) => to.clone(),
        (None, _) => folder(&project, Kind::Candidates),
    };
    let settings = Settings::load(&project)?;
    let mut names = embedders(&settings.models);
    if !args.embedder.is_empty() {
        args.embedder.iter().try_for_each(|name| known(name, &names, &settings.models))?;
        names.truncate(1);
        names.extend(args.embedder.iter().filter(|name| **name != names[0]).cloned().collect::<Vec<_>>());
    }
    let (corpus, facts, sets) = cases(&args, &project)?;
    let specs = matrix(&settings, &names);
    let indexes = temporary()?;
    let candidates = measured(&jobs(&corpus, indexes.path(), &settings, &specs, &sets), &specs)?;
    let artefact = Artefact::new(Kind::Candidates, facts, &sets, candidates);
    finish(&artefact, args.write.then_some(to.as_path()), args.json)
}

/// Documents, what they are, and the cases.
fn cases(args: &Args, project: &Path) -> Result<(PathBuf, CorpusFacts, Vec<Set>)> {
    let (corpus, found) = match (&args.corpus, &args.queries) {
        (Some(corpus), Some(queries)) => (corpus.clone(), own(corpus, queries)?),
        _ => (project.join("fixtures/corpus"), of_project(project)?),
    };
    Ok((corpus, found.0, found.1))
}

/// The cases of the project in `project`.
pub(super) fn of_project(project: &Path) -> Result<(CorpusFacts, Vec<Set>)> {
    fixtures(&project.join("fixtures")).map_err(|e| match e.hint() {
        Some(_) => e,
        None => e.with_hint("run it in a project with fixtures, or name --corpus and --queries"),
    })
}

/// A folder for indexes that goes away with the value.
pub(super) fn temporary() -> Result<tempfile::TempDir> {
    tempfile::tempdir().map_err(|e| Error::io("make a folder", &std::env::temp_dir(), e))
}

fn known(name: &str, names: &[String], models: &ModelSettings) -> Result<()> {
    let own = |plain: &str| plain == "hash" || models.custom.contains_key(plain);
    if names.iter().any(|known| known == name) || own(name) {
        return Ok(());
    }
    Err(Error::not_found(format!("there is no embedder `{name}` to compare")).with_hint(format!(
        "known are {}; add others under [models.custom.NAME] in .config/rankgate.toml",
        names.join(", ")
    )))
}

/// Keeps and prints an artefact. One whose default failed is not kept.
pub(super) fn finish(artefact: &Artefact, to: Option<&Path>, as_json: bool) -> Result<ExitCode> {
    let failed =
        artefact.candidates.iter().find(|c| c.id == artefact.default).and_then(|c| c.failed.as_ref());
    let text = page(artefact);
    print(&if as_json { json(artefact) } else { text.clone() })?;
    if let Some(why) = failed {
        eprintln!("error: the candidate of the settings, `{}`, failed: {why}", artefact.default);
        return Ok(ExitCode::from(exit::ERROR));
    }
    if let Some(to) = to {
        let path = artefact::write(to, &artefact.value(), &text)?;
        eprintln!("kept as {}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}
