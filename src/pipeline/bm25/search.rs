//! An index opened for searching.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use tantivy::directory::MmapDirectory;
use tantivy::{Index, ReloadPolicy};

use crate::error::{Error, ErrorKind, Result};
use crate::text::{DEFAULT_LANGUAGE, LexicalQuery};

use super::found::{Contribution, LexicalResult};
use super::plan::verbatim;
use super::postings::{Doc, Documents};
use super::score::Run;
use super::{Reading, failed, made_by, schema, version};

/// An index opened for searching: one commit, unchanged by later ones.
pub struct Lexical {
    dir: PathBuf,
    documents: Documents,
    reading: Reading,
    generation: u64,
}

impl Lexical {
    /// Opens the last commit of the index in `dir`.
    ///
    /// Queries are read by the tokenizer that made the index, be it the default or another. Fails when there is no
    /// index, when it is damaged, and when its version is unknown.
    pub fn open(dir: &Path) -> Result<Self> {
        let exists = MmapDirectory::open(dir).map_err(Into::into).and_then(|d| Ok(Index::exists(&d)?));
        if !dir.is_dir() || !exists.map_err(|e| failed(dir, "open the index", e))? {
            return Err(Error::not_found(format!("{}: there is no index", dir.display()))
                .with_hint("make one with `rankgate index PATH`"));
        }
        let (schema, fields) = schema();
        let open = || -> tantivy::Result<Option<Self>> {
            let index = Index::open_in_dir(dir)?;
            let (tokenizer, generation) = match made_by(index.load_metas()?.payload.as_deref()) {
                Some(made) if index.schema() == schema => made,
                _ => return Ok(None),
            };
            let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
            let documents = Documents::new(reader.searcher(), fields)?;
            let mut languages = documents.terms(fields.lang)?;
            languages.insert(DEFAULT_LANGUAGE.to_owned());
            let languages = languages.into_iter().collect();
            let reading = Reading { tokenizer, languages };
            Ok(Some(Self { dir: dir.to_owned(), documents, reading, generation }))
        };
        open().map_err(|e| failed(dir, "open the index", e))?.ok_or_else(|| {
            let what = format!("{}: the index was not made by this version of rankgate", dir.display());
            Error::new(ErrorKind::Version, what).with_hint("index the documents again")
        })
    }

    /// The generation that the writer gave this commit.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// How words are read and stored: [`LEXICAL_VERSION`](super::LEXICAL_VERSION), unless another tokenizer was asked for.
    pub fn version(&self) -> &'static str {
        version(self.reading.tokenizer)
    }

    /// The `limit` best documents, of `collection` or of all.
    ///
    /// A document that has an excluded text in any field is never found. If some document has a quoted
    /// phrase, only such are found; of several phrases, those documents are found that have the most. A phrase
    /// that none has counts as its words. A query without words finds nothing. Fails only on a damaged index.
    pub fn search(
        &self,
        query: &LexicalQuery,
        collection: Option<&str>,
        limit: usize,
    ) -> Result<LexicalResult> {
        let search = || -> tantivy::Result<LexicalResult> {
            let mut run = Run::new(&self.documents, &self.reading, collection, None)?;
            run.query(query)?;
            run.filter(query)?;
            run.result(limit)
        };
        self.guarded(search)
    }

    /// The documents of `collection`, or of all, that have a text which `query` excludes, in any field.
    pub fn excluded(&self, query: &LexicalQuery, collection: Option<&str>) -> Result<HashSet<u64>> {
        if query.excluded.is_empty() {
            return Ok(HashSet::new());
        }
        let find = || -> tantivy::Result<HashSet<u64>> {
            let run = Run::new(&self.documents, &self.reading, collection, None)?;
            let mut found = vec![false; run.scope.len()];
            for excluded in &query.excluded {
                let having = run.having(&verbatim(excluded, self.reading.tokenizer))?;
                found.iter_mut().zip(having).for_each(|(found, has)| *found |= has);
            }
            let docs: Vec<Doc> = (0..self.documents.end).filter(|&doc| found[doc as usize]).collect();
            Ok(self.documents.keys(&docs)?.into_iter().collect())
        };
        self.guarded(find)
    }

    /// What the score of the document with this key is made of, the greatest part first.
    ///
    /// The parts add up to the score that [`search`](Self::search) gives with the same arguments. Empty when
    /// there is no such document, or when it has nothing that was asked for.
    pub fn explain(
        &self,
        query: &LexicalQuery,
        collection: Option<&str>,
        key: u64,
    ) -> Result<Vec<Contribution>> {
        let explain = || -> tantivy::Result<Vec<Contribution>> {
            let Some(doc) = self.documents.find(key)? else { return Ok(Vec::new()) };
            let mut run = Run::new(&self.documents, &self.reading, collection, Some(doc))?;
            run.query(query)?;
            let factor = run.factor(&run.scores[doc as usize]);
            run.notes.iter_mut().for_each(|note| note.score *= factor);
            run.notes.sort_by(|a, b| b.score.total_cmp(&a.score));
            Ok(run.notes)
        };
        self.guarded(explain)
    }

    /// Runs what reads postings. Damaged ones can name documents that there are not: that is an error of the index,
    /// and no reason to end the program.
    fn guarded<T>(&self, work: impl FnOnce() -> tantivy::Result<T>) -> Result<T> {
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(result) => result.map_err(|e| failed(&self.dir, "search the index", e)),
            Err(_) => Err(damaged(&self.dir)),
        }
    }

    /// Compares the files of the index in `dir` with their checksums; the names of those that differ.
    ///
    /// Fails when there is no index, or it cannot be opened.
    pub fn verify(dir: &Path) -> Result<Vec<String>> {
        let verify = || Index::open_in_dir(dir)?.validate_checksum();
        let differ = verify().map_err(|e| failed(dir, "verify the index", e))?;
        let mut names: Vec<String> = differ.iter().map(|path| path.display().to_string()).collect();
        names.sort();
        Ok(names)
    }
}

/// The error for an index whose files hold what nobody wrote.
fn damaged(dir: &Path) -> Error {
    Error::input(format!("{}: the index is damaged", dir.display()))
        .with_hint("delete this folder: the next search makes it anew, no document is lost")
}
