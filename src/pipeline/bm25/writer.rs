//! Writing: documents in, one commit a batch.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tantivy::directory::{Directory, INDEX_WRITER_LOCK, MmapDirectory};
use tantivy::indexer::NoMergePolicy;
use tantivy::schema::{Schema, Term};
use tantivy::tokenizer::{self, Token as IndexToken, TokenStream};
use tantivy::{Index, IndexSettings, IndexWriter, TantivyDocument, TantivyError};

use crate::error::{Error, Result};
use crate::text::{DEFAULT_LANGUAGE, Token, TokenKind, Tokenizer, stem};

use super::{Fields, TOKENIZER, failed, made_by, schema, version};

/// Memory for postings before they are written out as a segment.
const MEMORY: usize = 50_000_000;
/// How often a lock that is held is asked for again, 10 ms apart.
const LOCK_TRIES: u32 = 50;
/// More segments than this are merged into one.
const MANY_SEGMENTS: usize = 8;

/// What is indexed of a document.
#[derive(Debug, Clone, Copy, Default)]
pub struct LexicalDoc<'a> {
    /// The collection that it is in.
    pub collection: &'a str,
    /// Its id, searched as a path when it contains `/` or ends in a file extension.
    pub id: &'a str,
    /// Its title, or empty.
    pub title: &'a str,
    /// Its text. A title repeated at its start is counted once, as a title.
    pub body: &'a str,
    /// Its language, if stated.
    pub lang: Option<&'a str>,
}

/// The one writer of an index folder.
///
/// Nothing is visible before [`commit`](Self::commit); a process that dies leaves the last commit.
pub struct LexicalWriter {
    dir: PathBuf,
    writer: IndexWriter,
    fields: Fields,
    tokenizer: Tokenizer,
    generation: u64,
}

impl LexicalWriter {
    /// Opens the index in `dir` for writing, creating folder and index.
    ///
    /// An index of another [`LEXICAL_VERSION`](super::LEXICAL_VERSION) is emptied, for its words cannot be compared with new ones:
    /// [`generation`](Self::generation) is then 0. Fails when another process is writing (after a short while),
    /// and when the folder cannot be written or is damaged.
    pub fn open(dir: &Path) -> Result<Self> {
        Self::open_with(dir, Tokenizer::DEFAULT)
    }

    /// [`open`](Self::open) with a tokenizer that need not be the default: to measure one against the other.
    pub fn open_with(dir: &Path, tokenizer: Tokenizer) -> Result<Self> {
        std::fs::create_dir_all(dir).map_err(|e| Error::io("create the folder", dir, e))?;
        let (schema, fields) = schema();
        let open = || -> tantivy::Result<Self> {
            let directory = MmapDirectory::open(dir)?;
            let (index, generation) = match usable(&directory, &schema, tokenizer)? {
                Some(found) => found,
                None => (anew(dir, directory, schema.clone())?, 0),
            };
            index.tokenizers().register(TOKENIZER, Marked);
            let writer = index.writer_with_num_threads(1, MEMORY)?;
            // Background merges would make the files on disk depend on timing.
            writer.set_merge_policy(Box::new(NoMergePolicy));
            Ok(Self { dir: dir.to_owned(), writer, fields, tokenizer, generation })
        };
        // A process that this one starts meanwhile also holds the lock, until it runs its own program.
        let mut again = 0..LOCK_TRIES;
        loop {
            match open() {
                Err(TantivyError::LockFailure(..)) if again.next().is_some() => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                opened => return opened.map_err(|e| failed(dir, "open the index for writing", e)),
            }
        }
    }

    /// The generation of the last commit; 0 for an empty index.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Adds a document, in place of one with the same key.
    pub fn put(&mut self, key: u64, doc: LexicalDoc<'_>) -> Result<()> {
        self.delete(key);
        let mut out = TantivyDocument::new();
        out.add_u64(self.fields.key, key);
        out.add_text(self.fields.collection, doc.collection);
        if let Some(lang) = doc.lang {
            out.add_text(self.fields.lang, lang);
        }
        let tokens = |text| self.tokenizer.tokens(text);
        let title = tokens(doc.title);
        let path = if is_path(doc.id) { tokens(doc.id) } else { Vec::new() };
        let mut body = tokens(doc.body);
        if !title.is_empty() && starts_with(&body, &title) {
            body.drain(..title.len());
        }
        for (i, words) in [title, path, body].into_iter().enumerate() {
            if words.is_empty() {
                continue;
            }
            let stems = words.iter().filter(|t| !matches!(t.kind, TokenKind::Pair | TokenKind::Tail));
            let stems = stems.map(|t| (stem(&t.text, doc.lang.unwrap_or(DEFAULT_LANGUAGE)), t.position));
            out.add_text(self.fields.stem[i], indexed(stems));
            let words = words.into_iter().map(|t| (t.text, t.position));
            out.add_text(self.fields.exact[i], indexed(words));
        }
        self.writer.add_document(out).map_err(|e| failed(&self.dir, "index a document", e))?;
        Ok(())
    }

    /// Removes the document with this key, if there is one.
    pub fn delete(&mut self, key: u64) {
        self.writer.delete_term(Term::from_field_u64(self.fields.key, key));
    }

    /// Removes every document.
    pub fn clear(&mut self) -> Result<()> {
        self.writer.delete_all_documents().map_err(|e| failed(&self.dir, "clear the index", e))?;
        Ok(())
    }

    /// Makes everything since the last commit visible and durable, as `generation`.
    pub fn commit(&mut self, generation: u64) -> Result<()> {
        let mut commit = || -> tantivy::Result<()> {
            let mut prepared = self.writer.prepare_commit()?;
            prepared.set_payload(&format!("{} {generation}", version(self.tokenizer)));
            prepared.commit()?;
            let segments = self.writer.index().searchable_segment_metas()?;
            let deleted: u32 = segments.iter().map(|s| s.num_deleted_docs()).sum();
            let living: u32 = segments.iter().map(|s| s.num_docs()).sum();
            if segments.len() > MANY_SEGMENTS || deleted > living / 4 {
                let ids: Vec<_> = segments.iter().map(|s| s.id()).collect();
                self.writer.merge(&ids).wait()?;
                self.writer.garbage_collect_files().wait()?;
            }
            Ok(())
        };
        commit().map_err(|e| failed(&self.dir, "commit the index", e))?;
        self.generation = generation;
        Ok(())
    }
}

/// The index in `directory` with its generation, if there is one that this tokenizer made.
fn usable(
    directory: &MmapDirectory,
    schema: &Schema,
    tokenizer: Tokenizer,
) -> tantivy::Result<Option<(Index, u64)>> {
    if !Index::exists(directory)? {
        return Ok(None);
    }
    let index = Index::open(directory.clone())?;
    let payload = index.load_metas()?.payload;
    // Before its first commit an index has no words that another tokenizer could have made.
    let generation = match made_by(payload.as_deref()) {
        Some((made, generation)) if made == tokenizer || payload.is_none() => Some(generation),
        _ => None,
    };
    Ok(generation.filter(|_| index.schema() == *schema).map(|generation| (index, generation)))
}

/// An empty index in place of what is there; tantivy collects the files of the old one.
fn anew(dir: &Path, directory: MmapDirectory, schema: Schema) -> tantivy::Result<Index> {
    let _lock = directory.acquire_lock(&INDEX_WRITER_LOCK).map_err(|e| TantivyError::LockFailure(e, None))?;
    match std::fs::remove_file(dir.join("meta.json")) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e.into()),
        _ => {}
    }
    Index::create(directory, schema, IndexSettings::default())
}

/// Whether an id says something as a path: `docs/auth-flow.md`, not `184` or `a00p0`.
fn is_path(id: &str) -> bool {
    let extension = |(stem, ext): (&str, &str)| {
        !stem.is_empty()
            && ext.len() <= 8
            && ext.starts_with(|c: char| c.is_ascii_alphabetic())
            && ext.chars().all(|c| c.is_ascii_alphanumeric())
    };
    id.contains('/') || id.rsplit_once('.').is_some_and(extension)
}

fn starts_with(body: &[Token], title: &[Token]) -> bool {
    body.len() >= title.len() && body.iter().zip(title).all(|(a, b)| a.text == b.text)
}

/// The text that a tokenizer of tantivy gets, such that it finds these words at these positions.
///
/// Each word follows a mark that says whether it stands where the last one does. (tantivy takes tokens
/// directly as well, but passes them through JSON, which costs more than all the rest of indexing.)
fn indexed(words: impl Iterator<Item = (String, u32)>) -> String {
    let mut out = String::new();
    let mut last = None;
    for (word, position) in words {
        out.push(if last == Some(position) { SAME } else { NEXT });
        out.push_str(&word);
        last = Some(position);
    }
    out
}

/// Before a word at the position of the one before it. No word has a control character.
const SAME: char = '\u{1}';
/// Before a word at the next position.
const NEXT: char = '\u{2}';

/// Takes apart what [`indexed`] wrote.
#[derive(Clone)]
struct Marked;

struct MarkedWords<'a> {
    rest: &'a str,
    token: IndexToken,
}

impl tokenizer::Tokenizer for Marked {
    type TokenStream<'a> = MarkedWords<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> MarkedWords<'a> {
        // The first word is marked as the next one: it stands at 0.
        MarkedWords { rest: text, token: IndexToken { position: usize::MAX, ..IndexToken::default() } }
    }
}

impl TokenStream for MarkedWords<'_> {
    fn advance(&mut self) -> bool {
        let mut chars = self.rest.chars();
        let Some(mark) = chars.next() else { return false };
        let words = chars.as_str();
        let (word, rest) = words.split_at(words.find([SAME, NEXT]).unwrap_or(words.len()));
        self.token.position = self.token.position.wrapping_add(usize::from(mark == NEXT));
        self.token.text.clear();
        self.token.text.push_str(word);
        self.rest = rest;
        true
    }

    fn token(&self) -> &IndexToken {
        &self.token
    }

    fn token_mut(&mut self) -> &mut IndexToken {
        &mut self.token
    }
}
