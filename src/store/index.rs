//! The SQLite side of an index folder: documents, passages with their vectors, links, and what built them.
//!
//! A key names one content: a document that changes gets a new key, and no key is used twice. Whoever holds a key
//! of an older state therefore finds either exactly what it meant or nothing.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, Row, params};
use sha2::{Digest, Sha256};

use super::failed;
use crate::corpus::{Document, hex};
use crate::error::{Error, Result};

mod change;
mod parked;

pub use change::{IndexChange, Known};
pub use parked::{PARKED_FILE, Parked};

/// The database's name in an index folder.
pub const DB_FILE: &str = "index.db";

/// Fewest hexadecimal digits of a short content hash.
pub const SHORT_HASH: usize = 6;

/// Five vectors of 384 or 768 components nearly fill a page of this size; the default wastes a third of it.
const PAGE_SIZE: u32 = 16384;

const MIGRATIONS: &[&str] = &["
    create table meta (
        one integer primary key check (one = 1),
        generation integer not null, lexical text not null, chunks text not null,
        model text, fingerprint text, dims integer
    );
    insert into meta values (1, 0, '', '', null, null, null);
    create table documents (
        key integer primary key autoincrement,
        collection text not null, id text not null, name text not null,
        title text not null, lang text, hash text not null, body text not null,
        unique (collection, id)
    );
    create index documents_by_hash on documents (hash);
    create index documents_by_name on documents (collection, name);
    create table chunks (
        document integer not null references documents on delete cascade,
        seq integer not null, start integer not null, stop integer not null, vector blob,
        unique (document, seq)
    );
    create table links (
        document integer not null references documents on delete cascade,
        by_name integer not null, target text not null, count integer not null,
        primary key (document, by_name, target)
    ) without rowid;
    create index links_by_target on links (target, by_name);
"];

/// The model behind the vectors of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexModel {
    /// Its name, for people.
    pub name: String,
    /// Identifies weights and conventions: only equal fingerprints may be compared.
    pub fingerprint: String,
    /// Components of a vector.
    pub dims: usize,
}

/// What built an index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meta {
    /// Counts the finished changes; 0 means that there is none yet.
    pub generation: u64,
    /// Version of the lexical side.
    pub lexical: String,
    /// Version of the rules that cut documents into passages.
    pub chunks: String,
    /// The model of the vectors; `None` when the documents were indexed without.
    pub model: Option<IndexModel>,
}

/// A document as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredDocument {
    /// Names this content in this index, and no other ever.
    pub key: u64,
    /// The collection it is in.
    pub collection: String,
    /// SHA-256 of title and body in hexadecimal.
    pub hash: String,
    /// Id, title, body and language.
    pub document: Document,
}

impl StoredDocument {
    /// The short content hash, `#a1b2c3`.
    pub fn short_hash(&self) -> String {
        format!("#{}", &self.hash[..SHORT_HASH.min(self.hash.len())])
    }
}

/// A link in a document's text, to an id of its collection or, in a wiki, to a name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Link {
    /// Whether `target` is a name that any document of the collection may bear.
    pub by_name: bool,
    /// An id or a name.
    pub target: String,
}

/// Two documents that a link joins, seen from one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// The document that was asked about.
    pub from: u64,
    /// The document at the other end, whichever of them bears the link.
    pub to: u64,
    /// How often the link occurs.
    pub count: u32,
    /// How many documents the link may mean.
    pub meanings: u32,
}

/// A passage's vector, in the order of collection, document and passage.
pub struct VectorRow<'a> {
    /// The document's collection.
    pub collection: &'a str,
    /// The document's key.
    pub key: u64,
    /// The passage's number in its document.
    pub seq: u32,
    /// Components, little-endian `f32`.
    pub bytes: &'a [u8],
}

/// An open database of an index folder.
pub struct IndexDb {
    connection: Connection,
    path: PathBuf,
}

impl IndexDb {
    /// Opens the database of the folder `dir`, creating both. Fails like [`super::open`].
    pub fn create(dir: &Path) -> Result<Self> {
        std::fs::create_dir_all(dir).map_err(|e| Error::io("create the folder", dir, e))?;
        let path = dir.join(DB_FILE);
        if !path.exists() {
            // The size of a page is fixed by the first write.
            let sized = Connection::open(&path)
                .and_then(|c| c.execute_batch(&format!("pragma page_size = {PAGE_SIZE}; vacuum;")));
            sized.map_err(|e| failed(&path, "create", e))?;
        }
        Ok(Self { connection: super::open(&path, MIGRATIONS)?, path })
    }

    /// Opens the database of an index that is there. Fails when it is not, saying how to make one.
    pub fn open(dir: &Path) -> Result<Self> {
        let path = dir.join(DB_FILE);
        if !path.is_file() {
            return Err(no_index(dir));
        }
        Ok(Self { connection: super::open(&path, MIGRATIONS)?, path })
    }

    /// What built the index.
    pub fn meta(&self) -> Result<Meta> {
        let sql = "select generation, lexical, chunks, model, fingerprint, dims from meta";
        let read = |row: &Row<'_>| {
            let model = match row.get::<_, Option<String>>(3)? {
                Some(name) => {
                    Some(IndexModel { name, fingerprint: row.get(4)?, dims: row.get::<_, u32>(5)? as usize })
                }
                None => None,
            };
            Ok(Meta {
                generation: row.get::<_, i64>(0)? as u64,
                lexical: row.get(1)?,
                chunks: row.get(2)?,
                model,
            })
        };
        self.connection.query_row(sql, [], read).map_err(|e| failed(&self.path, "read", e))
    }

    /// The document called `key`; `None` when it has been changed or removed since.
    pub fn document(&self, key: u64) -> Result<Option<StoredDocument>> {
        Ok(self.select("key = ?1", [key as i64])?.pop())
    }

    /// The title of document `key`.
    pub fn title(&self, key: u64) -> Result<Option<String>> {
        let sql = "select title from documents where key = ?";
        let select =
            || self.connection.prepare_cached(sql)?.query_row([key as i64], |row| row.get(0)).optional();
        select().map_err(|e| failed(&self.path, "read", e))
    }

    /// Whether the document called `key` is still there.
    pub fn contains(&self, key: u64) -> Result<bool> {
        let sql = "select exists (select 1 from documents where key = ?)";
        let select = || self.connection.prepare_cached(sql)?.query_row([key as i64], |row| row.get(0));
        select().map_err(|e| failed(&self.path, "read", e))
    }

    /// The documents with this id, one a collection.
    pub fn with_id(&self, id: &str) -> Result<Vec<StoredDocument>> {
        self.select("id = ?1", [id])
    }

    /// The documents whose content hash begins with `digits` in lower case, fifty at most.
    pub fn with_hash(&self, digits: &str) -> Result<Vec<StoredDocument>> {
        self.select("hash >= ?1 and hash < ?1 || 'g' order by hash, collection, id limit 50", [digits])
    }

    fn select(&self, filter: &str, params: impl rusqlite::Params) -> Result<Vec<StoredDocument>> {
        let sql = format!("select {DOCUMENT} from documents where {filter}");
        let select = || -> rusqlite::Result<Vec<_>> {
            self.connection.prepare_cached(&sql)?.query_map(params, stored)?.collect()
        };
        select().map_err(|e| failed(&self.path, "read", e))
    }

    /// Calls `each` with every document, in the order of keys, one in memory at a time.
    pub fn each_document(&self, mut each: impl FnMut(StoredDocument) -> Result<()>) -> Result<()> {
        let fail = |e| failed(&self.path, "read", e);
        let sql = format!("select {DOCUMENT} from documents order by key");
        let mut statement = self.connection.prepare(&sql).map_err(fail)?;
        let mut rows = statement.query([]).map_err(fail)?;
        while let Some(row) = rows.next().map_err(fail)? {
            each(stored(row).map_err(fail)?)?;
        }
        Ok(())
    }

    /// The byte range and text of passage `seq` of document `key`.
    pub fn passage(&self, key: u64, seq: u32) -> Result<Option<(std::ops::Range<usize>, String)>> {
        let sql = "select start, stop, coalesce(substr(cast(body as blob), start + 1, stop - start), x'')
                   from chunks join documents on documents.key = document where document = ?1 and seq = ?2";
        let read = |row: &Row<'_>| {
            let bytes: Vec<u8> = row.get(2)?;
            let text = String::from_utf8_lossy(&bytes).into_owned();
            Ok((row.get::<_, u32>(0)? as usize..row.get::<_, u32>(1)? as usize, text))
        };
        let select =
            || self.connection.prepare_cached(sql)?.query_row(params![key as i64, seq], read).optional();
        select().map_err(|e| failed(&self.path, "read", e))
    }

    /// Collections and how many documents each has, in the order of names.
    pub fn collections(&self) -> Result<Vec<(String, u64)>> {
        let sql = "select collection, count(*) from documents group by collection order by collection";
        let select = || -> rusqlite::Result<Vec<_>> {
            let mut statement = self.connection.prepare(sql)?;
            statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64)))?.collect()
        };
        select().map_err(|e| failed(&self.path, "read", e))
    }

    /// Every document's id, sorted, each once.
    pub fn docids(&self) -> Result<Vec<String>> {
        let select = || -> rusqlite::Result<Vec<_>> {
            let mut statement = self.connection.prepare("select distinct id from documents order by id")?;
            statement.query_map([], |row| row.get(0))?.collect()
        };
        select().map_err(|e| failed(&self.path, "read", e))
    }

    /// Every document's collection and id, in their order.
    pub fn names(&self) -> Result<Vec<(String, String)>> {
        let select = || -> rusqlite::Result<Vec<_>> {
            let sql = "select collection, id from documents order by collection, id";
            let mut statement = self.connection.prepare(sql)?;
            statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        };
        select().map_err(|e| failed(&self.path, "read", e))
    }

    /// SHA-256 in hexadecimal over collection, id and content hash of every document: of equal corpora alike, whenever
    /// and in whatever order they were indexed.
    pub fn documents_hash(&self) -> Result<String> {
        let sql = "select collection, id, hash from documents order by collection, id";
        let hash = || -> rusqlite::Result<String> {
            let mut hasher = Sha256::new();
            let mut statement = self.connection.prepare(sql)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                for column in 0..3 {
                    hasher.update(row.get_ref(column)?.as_str()?);
                    hasher.update(b"\0");
                }
            }
            Ok(hex(&hasher.finalize()))
        };
        hash().map_err(|e| failed(&self.path, "read", e))
    }

    /// Calls `each` with every vector, and returns what built them: both from the same state of the index.
    pub fn each_vector(&mut self, mut each: impl FnMut(&Meta, VectorRow<'_>) -> Result<()>) -> Result<Meta> {
        let path = self.path.clone();
        let fail = |e| failed(&path, "read", e);
        self.connection.execute_batch("begin").map_err(fail)?;
        let mut read = || {
            let meta = self.meta()?;
            let sql = "select collection, key, seq, vector from documents join chunks on document = key
                       where vector is not null order by collection, key, seq";
            let mut statement = self.connection.prepare(sql).map_err(fail)?;
            let mut rows = statement.query([]).map_err(fail)?;
            while let Some(row) = rows.next().map_err(fail)? {
                let row = (|| -> rusqlite::Result<_> {
                    Ok(VectorRow {
                        collection: row.get_ref(0)?.as_str()?,
                        key: row.get::<_, i64>(1)? as u64,
                        seq: row.get(2)?,
                        bytes: row.get_ref(3)?.as_blob()?,
                    })
                })();
                each(&meta, row.map_err(fail)?)?;
            }
            Ok(meta)
        };
        let result = read();
        self.connection.execute_batch("rollback").map_err(fail)?;
        result
    }

    /// Whether any document has a link.
    pub fn has_links(&self) -> Result<bool> {
        let select =
            || self.connection.query_row("select exists (select 1 from links)", [], |row| row.get(0));
        select().map_err(|e| failed(&self.path, "read", e))
    }

    /// The links from and to document `key`, at most `limit` of each kind, best known first.
    ///
    /// A link joins documents of one collection. Links of a document to itself are left out.
    pub fn edges(&self, key: u64, limit: usize) -> Result<Vec<Edge>> {
        const MEANINGS: &str =
            "(select count(*) from documents x where x.collection = d.collection and x.name = l.target)";
        let kinds = [
            "select d.key, l.count, 1 from links l join documents s on s.key = l.document join documents d
             on d.collection = s.collection and d.id = l.target where l.document = ?1 and not l.by_name".to_string(),
            "select s.key, l.count, 1 from documents d join links l on l.target = d.id and not l.by_name
             join documents s on s.key = l.document and s.collection = d.collection where d.key = ?1".to_string(),
            format!("select d.key, l.count, {MEANINGS} from links l join documents s on s.key = l.document
             join documents d on d.collection = s.collection and d.name = l.target where l.document = ?1 and l.by_name"),
            format!("select s.key, l.count, {MEANINGS} from documents d join links l on l.target = d.name and l.by_name
             join documents s on s.key = l.document and s.collection = d.collection where d.key = ?1"),
        ];
        let mut edges = Vec::new();
        for sql in kinds {
            let mut select = || -> rusqlite::Result<()> {
                let mut statement =
                    self.connection.prepare_cached(&format!("{sql} order by 3, 1 limit ?2"))?;
                let read = |row: &Row<'_>| {
                    let to = row.get::<_, i64>(0)? as u64;
                    Ok(Edge { from: key, to, count: row.get(1)?, meanings: row.get(2)? })
                };
                for edge in statement.query_map(params![key as i64, limit as i64], read)? {
                    edges.push(edge?);
                }
                Ok(())
            };
            select().map_err(|e| failed(&self.path, "read", e))?;
        }
        edges.retain(|edge| edge.to != key);
        Ok(edges)
    }

    /// Notes that the lexical side is now of this version. It holds the same documents as before.
    pub fn set_lexical(&self, version: &str) -> Result<()> {
        let update = self.connection.execute("update meta set lexical = ?1", [version]);
        update.map(|_| ()).map_err(|e| failed(&self.path, "write", e))
    }

    /// Starts a change. Readers see the state before it until [`IndexChange::commit`].
    pub fn change(&mut self) -> Result<IndexChange<'_>> {
        IndexChange::begin(&mut self.connection, &self.path)
    }

    /// Moves what was written into the database itself, so that the folder takes no more room than it needs.
    ///
    /// Does nothing while others read an older state; a later change does it then.
    pub fn tidy(&self) -> Result<()> {
        let tidied = self.connection.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()));
        tidied.map_err(|e| failed(&self.path, "tidy up", e))
    }
}

/// The columns that [`stored`] reads.
const DOCUMENT: &str = "key, collection, hash, id, title, body, lang";

fn stored(row: &Row<'_>) -> rusqlite::Result<StoredDocument> {
    let document = Document { id: row.get(3)?, title: row.get(4)?, body: row.get(5)?, lang: row.get(6)? };
    Ok(StoredDocument {
        key: row.get::<_, i64>(0)? as u64,
        collection: row.get(1)?,
        hash: row.get(2)?,
        document,
    })
}

/// The error of a folder without an index.
pub fn no_index(dir: &Path) -> Error {
    Error::not_found(format!("{}: there is no index", dir.display()))
        .with_hint("make one with `rankgate index PATH`, or name its folder with --index")
}

/// Components as SQLite keeps them: little-endian `f32`.
fn to_bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|component| component.to_le_bytes()).collect()
}

/// Components from little-endian bytes; a trailing part of one is dropped.
pub fn components(bytes: &[u8]) -> impl Iterator<Item = f32> + '_ {
    bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes))
}
