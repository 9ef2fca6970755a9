//! An index folder as a search sees it.
//!
//! The folder holds a SQLite database (documents, passages, vectors, links) and a lexical side made from it. Both
//! carry the number of the change that wrote them. When the numbers differ, a process was stopped between the two,
//! and the lexical side is made again from the database. Writers exclude each other by a lock on a file.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{File, TryLockError};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use once_cell::sync::OnceCell;
use sha2::{Digest, Sha256};

use super::bm25::{LEXICAL_VERSION, Lexical, LexicalDoc, LexicalWriter};
use super::links::LINKS_VERSION;
use super::vector::Vectors;
use crate::corpus::{Document, JudgedQuery, Judgments, hex};
use crate::error::{Error, ErrorKind, Result};
use crate::models::Embedder;
use crate::store::index::{
    Edge, IndexDb, IndexModel, Meta, SHORT_HASH, StoredDocument, components, no_index,
};
use crate::text::chunks;

pub(super) const LOCK_FILE: &str = "lock";
pub(super) const LEXICAL_DIR: &str = "lexical";

/// How long a process waits for another one before it says so.
const PATIENCE: Duration = Duration::from_secs(1);

/// Identifies everything that is derived from a document's text beside its vectors.
///
/// The rules for passages are identified by what they make of a text with words, lines, blank lines and another
/// script, so that nobody has to remember to change a number with them.
pub(super) fn passages_version() -> String {
    static VERSION: OnceLock<String> = OnceLock::new();
    let version = VERSION.get_or_init(|| {
        let mut text = String::new();
        for n in 0..400 {
            let end = ["\n\n", "\n", " ", "\n- "][n % 4];
            text += &format!(
                "Sentence {n} has words, and ends. {}{end}",
                "\u{6f22}\u{5b57}\u{3002}".repeat(n % 5)
            );
        }
        let cuts: String =
            chunks(&text).iter().map(|chunk| format!("{} {} ", chunk.start, chunk.end)).collect();
        format!("{}/{LINKS_VERSION}", &hex(&Sha256::digest(cuts))[..12])
    });
    version.clone()
}

/// An index, open for searching. Shared between threads.
pub struct IndexReader {
    dir: PathBuf,
    db: Mutex<IndexDb>,
    meta: Meta,
    lexical: Lexical,
    vectors: OnceCell<(IndexModel, Vectors)>,
    documents_hash: OnceCell<String>,
    counts: OnceCell<BTreeMap<String, u64>>,
}

impl IndexReader {
    /// Opens the index in the folder `dir`; vectors are loaded when they are first asked for.
    ///
    /// Repairs the lexical side when a process was stopped while it wrote. Fails when there is no index, and when
    /// another version of this program cut the documents into passages: index again then.
    pub fn open(dir: &Path) -> Result<Self> {
        let db = IndexDb::open(dir)?;
        let mut meta = db.meta()?;
        if meta.generation == 0 {
            return Err(no_index(dir));
        }
        let lexical = match current_lexical(dir, &meta) {
            Some(lexical) => lexical,
            None => {
                let _lock =
                    lock(dir, || eprintln!("waiting for another process that writes {}", dir.display()))?;
                // The other process may just have finished a change.
                meta = db.meta()?;
                match current_lexical(dir, &meta) {
                    Some(lexical) => lexical,
                    None => rebuild_lexical(dir, &db, &mut meta)?,
                }
            }
        };
        let version = passages_version();
        if meta.chunks != version {
            let what = format!(
                "{}: built with passages of version {}, this program makes {version}",
                dir.display(),
                meta.chunks
            );
            return Err(Error::new(ErrorKind::Version, what).with_hint(REPAIR));
        }
        Ok(Self {
            dir: dir.to_path_buf(),
            db: Mutex::new(db),
            meta,
            lexical,
            vectors: OnceCell::new(),
            documents_hash: OnceCell::new(),
            counts: OnceCell::new(),
        })
    }

    fn db(&self) -> MutexGuard<'_, IndexDb> {
        // A panic elsewhere cannot leave a reading connection half changed.
        self.db.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Counts the finished changes of the index up to when it was opened.
    pub fn generation(&self) -> u64 {
        self.meta.generation
    }

    /// The files of the lexical side that differ from their checksums.
    pub fn verify_words(&self) -> Result<Vec<String>> {
        Lexical::verify(&lexical_dir(&self.dir))
    }

    /// Whether no change was finished since it was opened.
    pub fn is_current(&self) -> Result<bool> {
        Ok(self.db().meta()?.generation == self.meta.generation)
    }

    /// The model of the vectors; `None` when the index has none.
    pub fn model(&self) -> Option<&IndexModel> {
        self.meta.model.as_ref()
    }

    /// SHA-256 over collection, id and content hash of every document, computed when it is first asked for.
    pub fn documents_hash(&self) -> Result<&str> {
        self.documents_hash.get_or_try_init(|| self.db().documents_hash()).map(String::as_str)
    }

    /// SHA-256 of the rules that made the index from the documents: those for words and for passages, and the model.
    pub fn rules_hash(&self) -> String {
        let model = self.meta.model.as_ref().map_or("", |model| &model.fingerprint);
        hex(&Sha256::digest(format!("{}\0{}\0{model}", self.meta.lexical, self.meta.chunks)))
    }

    /// What [`rules_hash`](Self::rules_hash) stands for: `words`, `passages` and, where there are vectors, the name of
    /// their model.
    pub fn rules(&self) -> BTreeMap<String, String> {
        let vectors = self.meta.model.as_ref().map(|model| ("vectors", model.name.clone()));
        let rules = [("words", self.meta.lexical.clone()), ("passages", self.meta.chunks.clone())];
        rules.into_iter().chain(vectors).map(|(name, rule)| (name.to_string(), rule)).collect()
    }

    /// How many documents each collection has, counted when it is first asked for.
    pub fn counts(&self) -> Result<&BTreeMap<String, u64>> {
        self.counts.get_or_try_init(|| Ok(self.db().collections()?.into_iter().collect()))
    }

    /// The lexical side.
    pub fn lexical(&self) -> &Lexical {
        &self.lexical
    }

    /// The vectors, `4 × dims` bytes a passage, read once into memory.
    ///
    /// Fails when the index has none, and when another model than `embedder` made them: the two are not comparable.
    pub fn vectors(&self, embedder: &dyn Embedder) -> Result<&Vectors> {
        let (model, vectors) = self.vectors.get_or_try_init(|| self.load_vectors())?;
        if model.fingerprint != embedder.fingerprint() {
            let what = format!(
                "{}: its vectors were made by `{}` ({}), not by `{}` ({})",
                self.dir.display(),
                model.name,
                model.fingerprint,
                embedder.name(),
                embedder.fingerprint(),
            );
            return Err(Error::new(ErrorKind::Version, what).with_hint(REPAIR));
        }
        Ok(vectors)
    }

    fn load_vectors(&self) -> Result<(IndexModel, Vectors)> {
        let mut vectors: Option<Vectors> = None;
        let meta = self.db().each_vector(|meta, row| {
            let dims = meta.model.as_ref().map_or(0, |model| model.dims);
            let vectors = vectors.get_or_insert_with(|| Vectors::new(dims));
            vectors
                .push(row.collection, row.key, row.seq, components(row.bytes))
                .map_err(|e| e.context(self.dir.display()))
        })?;
        let model = meta.model.ok_or_else(|| {
            Error::not_found(format!("{}: the index has no vectors", self.dir.display())).with_hint(
                "search by words alone with --fast, or run `rankgate index` again without --no-vectors",
            )
        })?;
        let vectors = vectors.unwrap_or_else(|| Vectors::new(model.dims));
        Ok((model, vectors))
    }

    /// The document called `key`; `None` when it has been changed or removed since.
    pub fn document(&self, key: u64) -> Result<Option<StoredDocument>> {
        self.db().document(key)
    }

    /// The title of document `key`; `None` when it is gone.
    pub fn title(&self, key: u64) -> Result<Option<String>> {
        self.db().title(key)
    }

    /// Whether the document called `key` is still there.
    pub fn contains(&self, key: u64) -> Result<bool> {
        self.db().contains(key)
    }

    /// The byte range in its document's body, and the text, of passage `chunk` of document `key`.
    pub fn passage(&self, key: u64, chunk: u32) -> Result<Option<(Range<usize>, String)>> {
        self.db().passage(key, chunk)
    }

    /// The document that `name` means: an id, or a short content hash such as `#a1b2c3`.
    ///
    /// A hash needs at least six hexadecimal digits. `None` when nothing has that name. Fails when several
    /// documents have it, listing five of them; a `collection` leaves out the documents of all others.
    pub fn find(&self, name: &str, collection: Option<&str>) -> Result<Option<StoredDocument>> {
        let digits = name.strip_prefix('#').map(str::to_ascii_lowercase);
        let digits = digits
            .filter(|d| (SHORT_HASH..=64).contains(&d.len()) && d.bytes().all(|b| b.is_ascii_hexdigit()));
        let mut found = match &digits {
            Some(digits) => self.db().with_hash(digits)?,
            None => self.db().with_id(name)?,
        };
        found.retain(|document| collection.is_none_or(|wanted| wanted == document.collection));
        if found.len() < 2 {
            return Ok(found.pop());
        }
        let list: Vec<String> = found
            .iter()
            .take(5)
            .map(|d| {
                format!(
                    "`{}` of collection `{}` (#{})",
                    d.document.id,
                    d.collection,
                    &d.hash[..12.min(d.hash.len())]
                )
            })
            .collect();
        let hint = if digits.is_some() { "use the id, or more digits" } else { "name the collection" };
        Err(Error::input(format!("`{name}` may mean {}", list.join(", "))).with_hint(hint))
    }

    /// `queries` with judgments by id alone: a short hash such as `#a1b2c3` becomes the id of its document.
    ///
    /// Fails, naming the query, when no document has the hash or several have it, and when two names of one query
    /// mean the same document. Ids are left as they are; see [`check_docids`](crate::corpus::queries::check_docids).
    pub fn resolve_hashes(&self, mut queries: Vec<JudgedQuery>) -> Result<Vec<JudgedQuery>> {
        if !queries.iter().any(names_hash) {
            return Ok(queries);
        }
        let ids: HashSet<String> = self.docids()?.into_iter().collect();
        for case in queries.iter_mut().filter(|case| names_hash(case)) {
            case.judgments = self
                .judgments_by_id(case, &ids)
                .map_err(|e| e.context(format_args!("query `{}`", case.query.id)))?;
        }
        Ok(queries)
    }

    fn judgments_by_id(&self, case: &JudgedQuery, ids: &HashSet<String>) -> Result<Judgments> {
        let mut judgments = Judgments::new();
        for (name, grade) in &case.judgments {
            let id = if !name.starts_with('#') || ids.contains(name) {
                name.clone()
            } else {
                let found = self.find(name, case.query.collection.as_deref())?;
                let document = found.ok_or_else(|| {
                    Error::input(format!("names `{name}`, and no document has that hash")).with_hint(format!(
                        "a hash has {SHORT_HASH} or more hexadecimal digits and changes with its text; an id does not"
                    ))
                })?;
                document.document.id
            };
            if judgments.contains_key(&id) {
                return Err(Error::input(format!("`{name}` is docid `{id}`, which is judged twice")));
            }
            judgments.insert(id, *grade);
        }
        Ok(judgments)
    }

    /// Collections and how many documents each has, in the order of names.
    pub fn collections(&self) -> Result<Vec<(String, u64)>> {
        self.db().collections()
    }

    /// Every document's id, sorted, each once.
    pub fn docids(&self) -> Result<Vec<String>> {
        self.db().docids()
    }

    /// Every document's id, by collection.
    pub fn documents(&self) -> Result<HashMap<String, HashSet<String>>> {
        let mut documents: HashMap<String, HashSet<String>> = HashMap::new();
        for (collection, id) in self.db().names()? {
            documents.entry(collection).or_default().insert(id);
        }
        Ok(documents)
    }

    /// Whether any document has a link to follow.
    pub fn has_links(&self) -> Result<bool> {
        self.db().has_links()
    }

    /// The links from and to document `key`; see [`IndexDb::edges`].
    pub fn edges(&self, key: u64, limit: usize) -> Result<Vec<Edge>> {
        self.db().edges(key, limit)
    }
}

/// Whether some judgment may name its document by hash.
pub fn names_hash(case: &JudgedQuery) -> bool {
    case.judgments.keys().any(|name| name.starts_with('#'))
}

/// What mends an index of another model or version.
const REPAIR: &str = "run `rankgate index` again to make it anew, or choose another folder with --index";

/// Takes the folder's lock; it is free again when the file is dropped, also by a process that is killed.
///
/// Calls `waiting` once when another process still holds it after a second, and waits on.
pub(super) fn lock(dir: &Path, waiting: impl FnOnce()) -> Result<File> {
    let path = dir.join(LOCK_FILE);
    let fail = |e| Error::io("lock", &path, e);
    let file = File::options().create(true).append(true).open(&path).map_err(fail)?;
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(20)),
            Err(TryLockError::Error(e)) => return Err(fail(e)),
        }
    }
    waiting();
    file.lock().map_err(fail)?;
    Ok(file)
}

/// The folder of the lexical side.
pub(super) fn lexical_dir(dir: &Path) -> PathBuf {
    dir.join(LEXICAL_DIR)
}

/// The lexical side, if it belongs to the state of the database that `meta` describes.
pub(super) fn current_lexical(dir: &Path, meta: &Meta) -> Option<Lexical> {
    if meta.lexical != LEXICAL_VERSION {
        return None;
    }
    // Whatever else is wrong with it: it is made from the database, so it can be made again.
    let lexical = Lexical::open(&lexical_dir(dir)).ok()?;
    (lexical.version() == LEXICAL_VERSION && lexical.generation() == meta.generation).then_some(lexical)
}

/// Makes the lexical side from the database, beside the old one. The caller holds the lock.
pub(super) fn rebuild_lexical(dir: &Path, db: &IndexDb, meta: &mut Meta) -> Result<Lexical> {
    let new = dir.join("lexical.new");
    let old = lexical_dir(dir);
    remove_folder(&new)?;
    let mut writer = LexicalWriter::open(&new)?;
    db.each_document(|stored| put(&mut writer, stored.key, &stored.collection, &stored.document))?;
    writer.commit(meta.generation)?;
    drop(writer);
    remove_folder(&old)?;
    std::fs::rename(&new, &old).map_err(|e| Error::io("rename", &new, e))?;
    db.set_lexical(LEXICAL_VERSION)?;
    meta.lexical = LEXICAL_VERSION.to_string();
    Lexical::open(&old)
}

/// Hands a document to the lexical side.
pub(super) fn put(writer: &mut LexicalWriter, key: u64, collection: &str, document: &Document) -> Result<()> {
    let Document { id, title, body, lang } = document;
    writer.put(key, LexicalDoc { collection, id, title, body, lang: lang.as_deref() })
}

pub(super) fn remove_folder(path: &Path) -> Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", path, e)),
        _ => Ok(()),
    }
}
