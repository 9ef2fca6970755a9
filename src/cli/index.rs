//! `rankgate index`: makes an index folder hold a corpus.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use serde::Serialize;

use crate::corpus::{self, Corpus, Document, folder};
use crate::error::{Error, ErrorKind, Result};
use crate::models::{self, Embedder};
use crate::pipeline::indexer::{self, IndexReport};
use crate::pipeline::progress::IndexBar;
use crate::settings::Settings;

/// Index a folder of Markdown and text, or a BEIR folder.
///
/// Each PATH becomes a collection named after it; documents that are no longer there leave the collection. Only
/// what changed since the last time is read in and embedded again.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Folders (or single files) to index.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Put all documents into this collection instead of one for each PATH.
    #[arg(long, value_name = "NAME")]
    collection: Option<String>,
    /// The index folder [default: `index` in RANKGATE_HOME].
    #[arg(long, value_name = "DIR")]
    index: Option<PathBuf>,
    /// Index for searches by words alone; no model is needed.
    #[arg(long)]
    no_vectors: bool,
    /// Leave out documents that cannot be read, and list them, instead of stopping; what an earlier run had read of
    /// them goes, too.
    #[arg(long)]
    skip_invalid: bool,
    /// Print the result as one JSON document.
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Output<'a> {
    version: u32,
    index: String,
    collections: &'a [IndexReport],
    /// What is wrong with each document that was left out.
    skipped: &'a [String],
}

/// Brings the index up to date and prints what changed. Fails, leaving the index as it was, on bad input.
pub fn run(args: Args) -> Result<ExitCode> {
    let dir = super::index_folder(args.index.as_deref())?;
    let folders: Vec<PathBuf> =
        args.paths.iter().filter(|path| matches!(corpus::open(path), Corpus::Folder(_))).cloned().collect();
    let collections = collections(args.paths, args.collection)?;
    let embedder = if args.no_vectors { None } else { Some(embedder()?) };
    let mut reports = Vec::new();
    let mut skipped = Vec::new();
    for (name, paths) in collections {
        let documents = documents(&paths, args.skip_invalid, &mut skipped)?;
        let mut bar = IndexBar::new(&name, &dir, embedder.is_some());
        let embedder = embedder.as_deref();
        let report = indexer::build(&dir, &name, documents, embedder, &mut |progress| bar.show(progress))?;
        drop(bar);
        if report.removed > 0 && report.changed + report.unchanged == 0 {
            eprintln!(
                "note: collection `{name}` held other documents before, which are gone; to keep both, give \
                 --collection another name"
            );
        }
        reports.push(report);
    }
    if let Some(note) = other_kinds(&folders) {
        eprintln!("{note}");
    }
    for problem in &skipped {
        eprintln!("left out: {problem}");
    }
    if args.json {
        let output =
            Output { version: 1, index: dir.display().to_string(), collections: &reports, skipped: &skipped };
        super::print(&super::json(&output))?;
    } else {
        super::print(&reports.iter().map(summary).collect::<String>())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Says which files of `folders` were not read because of their kind, if there are any.
fn other_kinds(folders: &[PathBuf]) -> Option<String> {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for (ending, count) in folders.iter().flat_map(|root| folder::others(root)) {
        *kinds.entry(ending).or_default() += count;
    }
    let total: usize = kinds.values().sum();
    let mut most: Vec<_> = kinds.into_iter().collect();
    most.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let kind = |(ending, count): &(String, usize)| match ending.as_str() {
        "" => format!("{count} without an ending"),
        ending => format!("{count} .{}", super::line(ending)),
    };
    let list: Vec<String> = most.iter().take(5).map(kind).collect();
    (total > 0).then(|| {
        let (files, read) = (if total == 1 { "file" } else { "files" }, folder::EXTENSIONS.join(", ."));
        format!("note: {total} {files} of other kinds left out ({}); read are .{read}", list.join(", "))
    })
}

fn embedder() -> Result<Arc<dyn Embedder>> {
    let settings = Settings::load(&super::working_folder()?)?;
    models::embedder(&settings.models, None)
}

/// The collections to index, by name. Fails when two paths would get the same name.
fn collections(paths: Vec<PathBuf>, name: Option<String>) -> Result<BTreeMap<String, Vec<PathBuf>>> {
    if let Some(name) = name {
        return Ok(BTreeMap::from([(name, paths)]));
    }
    let mut collections: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for path in paths {
        let full = std::fs::canonicalize(&path).map_err(|e| Error::io("read", &path, e))?;
        let part = if full.is_file() { full.file_stem() } else { full.file_name() };
        let name = part.and_then(|part| part.to_str()).ok_or_else(|| {
            Error::usage(format!("{}: no name for a collection comes from this path", path.display()))
                .with_hint("give one with --collection")
        })?;
        if let Some(other) = collections.insert(name.to_string(), vec![path.clone()]) {
            let what =
                format!("{} and {} would both be collection `{name}`", other[0].display(), path.display());
            return Err(Error::usage(what).with_hint("index them one at a time, with --collection"));
        }
    }
    Ok(collections)
}

/// The documents of all paths, one after the other; with `skip`, those that cannot be used go to `skipped`.
fn documents<'a>(
    paths: &[PathBuf],
    skip: bool,
    skipped: &'a mut Vec<String>,
) -> Result<impl Iterator<Item = Result<Document>> + use<'a>> {
    let readers = paths.iter().map(|path| corpus::open(path).documents()).collect::<Result<Vec<_>>>()?;
    Ok(readers.into_iter().flatten().filter_map(move |document| match document {
        Err(e) if skip && e.kind() == ErrorKind::Input => {
            skipped.push(e.to_string());
            None
        }
        other => Some(other),
    }))
}

fn summary(report: &IndexReport) -> String {
    let IndexReport { collection, added, changed, removed, unchanged, .. } = report;
    let mut line =
        format!("{collection}: {added} added, {changed} changed, {removed} removed, {unchanged} unchanged");
    if report.passages > 0 {
        line += &format!("; {} passages", report.passages);
        if let Some(model) = &report.model {
            line += &format!(", vectors by {model}");
        }
    }
    if report.rebuilt {
        line += ", all made anew (another model or version had made them, or none)";
    }
    if report.truncated > 0 {
        line += &format!(", {} passages longer than the model reads", report.truncated);
    }
    format!("{line} ({:.1} s)\n", report.seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_its_collection_and_two_of_a_name_are_refused() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        for name in ["a/notes", "b/notes", "c"] {
            std::fs::create_dir_all(dir.path().join(name)).expect("creates");
        }
        let path = |name: &str| dir.path().join(name);
        let found = collections(vec![path("a/notes"), path("c/.")], None).expect("differ");
        assert_eq!(found.keys().collect::<Vec<_>>(), ["c", "notes"]);
        let error = collections(vec![path("a/notes"), path("b/notes")], None).expect_err("same name");
        assert!(error.report().contains("both be collection `notes`"), "{}", error.report());
        let both =
            collections(vec![path("a/notes"), path("b/notes")], Some("all".into())).expect("one collection");
        assert_eq!(both["all"].len(), 2);
    }
}
