//! Brings an index folder up to date with a corpus.
//!
//! Only what changed is read in, cut and embedded again. Everything is written in one transaction, so a run that
//! is stopped leaves the index as it was; the vectors that it had computed are found again by the next run.

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;
use std::time::Instant;

use serde::Serialize;

use super::bm25::{LEXICAL_VERSION, LexicalWriter};
use super::index::{self, LEXICAL_DIR, LOCK_FILE, lexical_dir};
use super::links;
use crate::corpus::Document;
use crate::error::{Error, ErrorKind, Result};
use crate::models::{Embedder, TextRole};
use crate::store::index::{DB_FILE, IndexChange, IndexDb, IndexModel, Meta, PARKED_FILE, Parked};
use crate::text::chunks;

/// Passages that are embedded, and then kept, at a time.
const BATCH: usize = 256;

/// What a run did.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct IndexReport {
    /// The collection that was brought up to date.
    pub collection: String,
    /// Documents that were not in it.
    pub added: u64,
    /// Documents whose text, title or language is another one now.
    pub changed: u64,
    /// Documents that are no longer in the corpus.
    pub removed: u64,
    /// Documents that are as they were.
    pub unchanged: u64,
    /// Whether all passages of the index were made anew, because another model or version had made them.
    pub rebuilt: bool,
    /// Passages that were made.
    pub passages: u64,
    /// Vectors that were computed.
    pub embedded: u64,
    /// Vectors that an earlier run had computed before it was stopped.
    pub resumed: u64,
    /// Passages longer than the model reads, whose end its vectors do not know.
    pub truncated: u64,
    /// The number of this change; that of the last one when nothing changed.
    pub generation: u64,
    /// The name of the model of the vectors.
    pub model: Option<String>,
    /// Seconds that it took, waiting included.
    pub seconds: f64,
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Another process is writing the same index.
    Waiting,
    /// So many documents of the corpus are read.
    Read(u64),
    /// So many of the documents that need new passages have them.
    Embedded {
        /// Finished documents.
        done: u64,
        /// All that need it.
        total: u64,
    },
}

/// Makes `collection` of the index in the folder `dir` hold exactly `documents`; other collections stay.
///
/// Without an `embedder` an index gets no vectors. With another embedder than the one that made the vectors, or
/// another version of the rules for passages, the passages of all collections are made anew: an index never mixes
/// two. Waits while another process writes.
///
/// Fails, leaving the index as it was, on the first error that `documents` yields, an id that occurs twice, a
/// corpus without documents, a folder that holds something else, and when vectors are there but no `embedder`.
pub fn build(
    dir: &Path,
    collection: &str,
    documents: impl IntoIterator<Item = Result<Document>>,
    embedder: Option<&dyn Embedder>,
    progress: &mut dyn FnMut(Progress),
) -> Result<IndexReport> {
    let started = Instant::now();
    if collection.trim().is_empty() {
        return Err(Error::usage("a collection needs a name").with_hint("give one with --collection"));
    }
    check_folder(dir)?;
    std::fs::create_dir_all(dir).map_err(|e| Error::io("create the folder", dir, e))?;
    let _lock = index::lock(dir, || progress(Progress::Waiting))?;
    let mut db = IndexDb::create(dir)?;
    let mut meta = db.meta()?;
    check_vectors(dir, &meta, embedder)?;
    prepare_lexical(dir, &db, &mut meta)?;

    let mut lexical = LazyLexical { dir, writer: None };
    let mut report = IndexReport { collection: collection.into(), ..IndexReport::default() };
    let change = db.change()?;
    read_in(&change, collection, documents, &mut lexical, &mut report, progress)?;
    let wanted = Meta {
        generation: meta.generation + 1,
        lexical: LEXICAL_VERSION.into(),
        chunks: index::passages_version(),
        model: embedder.map(|model| IndexModel {
            name: model.name().into(),
            fingerprint: model.fingerprint().into(),
            dims: model.dims(),
        }),
    };
    let same_model =
        wanted.model.as_ref().map(|m| &m.fingerprint) == meta.model.as_ref().map(|m| &m.fingerprint);
    if meta.generation > 0 && (meta.chunks != wanted.chunks || !same_model) {
        report.rebuilt = true;
        change.clear_chunks()?;
    }
    let parked = make_passages(dir, &change, embedder, &mut report, progress)?;
    report.model = embedder.map(|model| model.name().to_string());
    report.generation = meta.generation;
    if report.added + report.changed + report.removed > 0 || report.rebuilt {
        report.generation = wanted.generation;
        change.commit(&wanted)?;
        lexical.get()?.commit(wanted.generation)?;
        db.tidy()?;
    }
    if let Some(parked) = parked {
        parked.finish()?;
    }
    report.seconds = started.elapsed().as_secs_f64();
    Ok(report)
}

/// An index is only started where nothing else lies.
fn check_folder(dir: &Path) -> Result<()> {
    if dir.join(DB_FILE).exists() || !dir.exists() {
        return Ok(());
    }
    let entries = std::fs::read_dir(dir).map_err(|e| Error::io("read the folder", dir, e))?;
    // Another process may be about to start the same index, or a damaged database was moved away.
    let ours = |name: &std::ffi::OsStr| {
        let name = name.to_string_lossy();
        let lexical = name.starts_with(LEXICAL_DIR) && dir.join(&*name).join("meta.json").exists();
        lexical || [LOCK_FILE, DB_FILE, PARKED_FILE].iter().any(|known| name.starts_with(known))
    };
    if entries.flatten().all(|entry| ours(&entry.file_name())) {
        return Ok(());
    }
    Err(Error::usage(format!("{}: the folder holds something that is no index", dir.display()))
        .with_hint("choose an empty or a new folder with --index"))
}

fn check_vectors(dir: &Path, meta: &Meta, embedder: Option<&dyn Embedder>) -> Result<()> {
    match (&meta.model, embedder) {
        (Some(model), None) => {
            let what =
                format!("{}: the index has vectors of `{}`, which would be lost", dir.display(), model.name);
            Err(Error::usage(what).with_hint("leave out --no-vectors, or choose another folder with --index"))
        }
        _ => Ok(()),
    }
}

/// Brings the lexical side to the state of the database, whatever an interrupted run left of it.
fn prepare_lexical(dir: &Path, db: &IndexDb, meta: &mut Meta) -> Result<()> {
    if meta.generation == 0 {
        return index::remove_folder(&lexical_dir(dir));
    }
    if index::current_lexical(dir, meta).is_none() {
        index::rebuild_lexical(dir, db, meta)?;
    }
    Ok(())
}

/// The lexical writer, opened when there is something to write: it costs threads and memory.
struct LazyLexical<'a> {
    dir: &'a Path,
    writer: Option<LexicalWriter>,
}

impl LazyLexical<'_> {
    fn get(&mut self) -> Result<&mut LexicalWriter> {
        match &mut self.writer {
            Some(writer) => Ok(writer),
            none => Ok(none.insert(LexicalWriter::open(&lexical_dir(self.dir))?)),
        }
    }
}

/// Compares the corpus with the index, document by document, and writes what is new.
fn read_in(
    change: &IndexChange<'_>,
    collection: &str,
    documents: impl IntoIterator<Item = Result<Document>>,
    lexical: &mut LazyLexical<'_>,
    report: &mut IndexReport,
    progress: &mut dyn FnMut(Progress),
) -> Result<()> {
    let mut current = HashSet::new();
    for document in documents {
        let document = document?;
        let hash = document.content_hash();
        let known = change.known(collection, &document.id)?;
        if known.as_ref().is_some_and(|known| current.contains(&known.key)) {
            let what = format!("collection `{collection}`: document `{}` occurs twice", document.id);
            return Err(Error::input(what).with_hint("every id may occur once in a collection"));
        }
        let key = match known {
            Some(known) if known.hash == hash && known.lang == document.lang => {
                report.unchanged += 1;
                known.key
            }
            known => {
                match known {
                    Some(known) => {
                        report.changed += 1;
                        change.remove(known.key)?;
                        lexical.get()?.delete(known.key);
                    }
                    None => report.added += 1,
                }
                let key = change.insert(collection, &document, &hash, &links::name(&document.id))?;
                index::put(lexical.get()?, key, collection, &document)?;
                key
            }
        };
        current.insert(key);
        progress(Progress::Read(current.len() as u64));
    }
    if current.is_empty() {
        return Err(Error::input(format!("collection `{collection}`: the corpus has no documents"))
            .with_hint("a corpus is a folder with .md, .markdown or .txt files, or with a corpus.jsonl"));
    }
    for key in change.keys(collection)? {
        if !current.contains(&key) {
            report.removed += 1;
            change.remove(key)?;
            lexical.get()?.delete(key);
        }
    }
    Ok(())
}

/// Cuts and embeds every document that has no passages. Returns the parked vectors, to be removed at the end.
fn make_passages(
    dir: &Path,
    change: &IndexChange<'_>,
    embedder: Option<&dyn Embedder>,
    report: &mut IndexReport,
    progress: &mut dyn FnMut(Progress),
) -> Result<Option<Parked>> {
    let keys = change.without_chunks()?;
    let parked = match embedder {
        Some(_) if !keys.is_empty() => Some(Parked::open(dir)?),
        _ => None,
    };
    let mut passages = Passages { change, embedder, parked, batch: Vec::new(), report };
    for (done, key) in keys.iter().enumerate() {
        progress(Progress::Embedded { done: done as u64, total: keys.len() as u64 });
        passages.add(*key, &change.document(*key)?)?;
    }
    passages.flush()?;
    if !keys.is_empty() {
        progress(Progress::Embedded { done: keys.len() as u64, total: keys.len() as u64 });
    }
    Ok(passages.parked)
}

/// A passage that waits for its vector.
struct Waiting {
    key: u64,
    seq: u32,
    range: Range<usize>,
    text: String,
}

struct Passages<'a> {
    change: &'a IndexChange<'a>,
    embedder: Option<&'a dyn Embedder>,
    parked: Option<Parked>,
    batch: Vec<Waiting>,
    report: &'a mut IndexReport,
}

impl Passages<'_> {
    fn add(&mut self, key: u64, document: &Document) -> Result<()> {
        self.change.insert_links(key, &links::links(&document.id, &document.body))?;
        for (seq, chunk) in chunks(&document.body).into_iter().enumerate() {
            let (seq, range) = (seq as u32, chunk.start..chunk.end);
            self.report.passages += 1;
            let text = passage_text(&document.title, &document.body[range.clone()]);
            if self.embedder.is_none() || text.is_empty() {
                self.change.insert_chunk(key, seq, range, None)?;
                continue;
            }
            self.batch.push(Waiting { key, seq, range, text });
            if self.batch.len() == BATCH {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let (Some(embedder), Some(parked)) = (self.embedder, &mut self.parked) else { return Ok(()) };
        let model = embedder.fingerprint();
        let mut missing: Vec<&Waiting> = Vec::new();
        for waiting in &self.batch {
            match parked.get(model, &waiting.text)? {
                Some(vector) if vector.len() == embedder.dims() => {
                    self.change.insert_chunk(
                        waiting.key,
                        waiting.seq,
                        waiting.range.clone(),
                        Some(&vector),
                    )?;
                    self.report.resumed += 1;
                }
                _ => missing.push(waiting),
            }
        }
        let texts: Vec<&str> = missing.iter().map(|waiting| waiting.text.as_str()).collect();
        if !texts.is_empty() {
            let vectors = embedder.embed(&texts, TextRole::Passage)?;
            if vectors.dims != embedder.dims()
                || vectors.rows().len() != texts.len()
                || vectors.data.iter().any(|component| !component.is_finite())
            {
                let what = format!("model `{}`: its vectors are not what it promised", embedder.name());
                return Err(Error::new(ErrorKind::Model, what)
                    .with_hint("verify its files with `rankgate models verify`"));
            }
            parked.put(model, texts.iter().copied().zip(vectors.rows()))?;
            for (waiting, vector) in missing.iter().zip(vectors.rows()) {
                self.change.insert_chunk(waiting.key, waiting.seq, waiting.range.clone(), Some(vector))?;
            }
            self.report.embedded += texts.len() as u64;
            self.report.truncated += vectors.truncated as u64;
        }
        self.batch.clear();
        Ok(())
    }
}

/// What a model reads of a passage: the title above the text, unless the text begins with it.
///
/// ```
/// use rankgate::pipeline::indexer::passage_text;
/// assert_eq!(passage_text("Deploying", "First, build."), "Deploying\nFirst, build.");
/// assert_eq!(passage_text("Deploying", "# Deploying\nFirst, build."), "# Deploying\nFirst, build.");
/// ```
pub fn passage_text(title: &str, text: &str) -> String {
    let text = text.trim();
    if title.is_empty() || text.trim_start_matches(['#', ' ']).starts_with(title) {
        return text.to_string();
    }
    format!("{title}\n{text}").trim_end().to_string()
}
