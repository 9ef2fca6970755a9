//! One change of an index: everything in it becomes visible at once, or nothing does.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};

use super::{DOCUMENT, Link, Meta, stored, to_bytes};
use crate::corpus::Document;
use crate::error::Result;
use crate::store::failed;

/// A change of the index that has not been committed; dropping it undoes it.
pub struct IndexChange<'a> {
    tx: Transaction<'a>,
    path: &'a Path,
}

/// What decides whether a document is still the one that was indexed.
#[derive(Debug, PartialEq, Eq)]
pub struct Known {
    /// Its key.
    pub key: u64,
    /// SHA-256 of title and body in hexadecimal.
    pub hash: String,
    /// Its language.
    pub lang: Option<String>,
}

impl<'a> IndexChange<'a> {
    pub(super) fn begin(connection: &'a mut Connection, path: &'a Path) -> Result<Self> {
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate);
        Ok(Self { tx: tx.map_err(|e| failed(path, "write", e))?, path })
    }

    fn write<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        work(&self.tx).map_err(|e| failed(self.path, "write", e))
    }

    /// The document `id` of `collection`, if it is in the index.
    pub fn known(&self, collection: &str, id: &str) -> Result<Option<Known>> {
        let sql = "select key, hash, lang from documents where collection = ?1 and id = ?2";
        let read = |row: &Row<'_>| Ok(Known { key: key(row)?, hash: row.get(1)?, lang: row.get(2)? });
        self.write(|c| c.prepare_cached(sql)?.query_row([collection, id], read).optional())
    }

    /// Adds a document and returns its key. `name` is what links by name call it.
    pub fn insert(&self, collection: &str, document: &Document, hash: &str, name: &str) -> Result<u64> {
        let Document { id, title, body, lang } = document;
        self.write(|c| {
            c.prepare_cached(
                "insert into documents (collection, id, name, title, lang, hash, body) values (?, ?, ?, ?, ?, ?, ?)",
            )?
            .execute(params![collection, id, name, title, lang, hash, body])?;
            Ok(c.last_insert_rowid() as u64)
        })
    }

    /// Removes a document with its passages and links.
    pub fn remove(&self, key: u64) -> Result<()> {
        self.write(|c| c.prepare_cached("delete from documents where key = ?")?.execute([key as i64]))?;
        Ok(())
    }

    /// The keys of a collection.
    pub fn keys(&self, collection: &str) -> Result<Vec<u64>> {
        self.write(|c| {
            let mut statement =
                c.prepare_cached("select key from documents where collection = ? order by key")?;
            statement.query_map([collection], key)?.collect()
        })
    }

    /// Removes the passages and links of every collection, to be made anew.
    pub fn clear_chunks(&self) -> Result<()> {
        self.write(|c| c.execute_batch("delete from chunks; delete from links"))
    }

    /// The keys of the documents that have no passages yet, of all collections.
    pub fn without_chunks(&self) -> Result<Vec<u64>> {
        let sql = "select key from documents
                   where not exists (select 1 from chunks where document = key) order by key";
        self.write(|c| c.prepare(sql)?.query_map([], key)?.collect())
    }

    /// The document called `key`, which is in the index.
    pub fn document(&self, key: u64) -> Result<Document> {
        let sql = format!("select {DOCUMENT} from documents where key = ?");
        let document = self.write(|c| c.prepare_cached(&sql)?.query_row([key as i64], stored))?;
        Ok(document.document)
    }

    /// Adds the links in a document's text, and how often each occurs.
    pub fn insert_links(&self, key: u64, links: &[(Link, u32)]) -> Result<()> {
        self.write(|c| {
            let mut statement = c.prepare_cached("insert into links values (?, ?, ?, ?)")?;
            for (link, count) in links {
                statement.execute(params![key as i64, link.by_name, link.target, count])?;
            }
            Ok(())
        })
    }

    /// Adds passage `seq` of a document: a byte range of its body, and its vector if there is one.
    pub fn insert_chunk(
        &self,
        key: u64,
        seq: u32,
        range: std::ops::Range<usize>,
        vector: Option<&[f32]>,
    ) -> Result<()> {
        let (start, stop) = (range.start as i64, range.end as i64);
        self.write(|c| {
            c.prepare_cached(
                "insert into chunks (document, seq, start, stop, vector) values (?, ?, ?, ?, ?)",
            )?
            .execute(params![key as i64, seq, start, stop, vector.map(to_bytes)])
        })?;
        Ok(())
    }

    /// Makes the change visible, with `meta` as what built the index.
    pub fn commit(self, meta: &Meta) -> Result<()> {
        let model = meta.model.as_ref();
        let values = params![
            meta.generation as i64,
            meta.lexical,
            meta.chunks,
            model.map(|model| &model.name),
            model.map(|model| &model.fingerprint),
            model.map(|model| model.dims as i64),
        ];
        let sql =
            "update meta set generation = ?, lexical = ?, chunks = ?, model = ?, fingerprint = ?, dims = ?";
        self.write(|c| c.execute(sql, values))?;
        self.tx.commit().map_err(|e| failed(self.path, "write", e))
    }
}

fn key(row: &Row<'_>) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(0)? as u64)
}
