//! Vectors of a change that is not finished: they are kept as they are computed, so that a run that is killed
//! loses at most one batch.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest, Sha256};

use super::{components, to_bytes};
use crate::error::{Error, Result};
use crate::store::{failed, open};

const MIGRATIONS: &[&str] = &["
    create table vectors (
        model text not null, text blob not null, vector blob not null, unique (model, text)
    );
"];

/// The file of an index folder in which vectors wait for the change that they belong to.
pub const PARKED_FILE: &str = "parked.db";

/// The file of parked vectors beside an index.
pub struct Parked {
    connection: Connection,
    path: PathBuf,
}

impl Parked {
    /// Opens what an earlier run left in the index folder `dir`, or starts a new file.
    pub fn open(dir: &Path) -> Result<Self> {
        let path = dir.join(PARKED_FILE);
        Ok(Self { connection: open(&path, MIGRATIONS)?, path })
    }

    /// The vector of `text` by the model with this fingerprint.
    pub fn get(&self, model: &str, text: &str) -> Result<Option<Vec<f32>>> {
        let sql = "select vector from vectors where model = ? and text = ?";
        let select = || {
            self.connection
                .prepare_cached(sql)?
                .query_row(params![model, hash(text)], |row| {
                    Ok(components(row.get_ref(0)?.as_blob()?).collect())
                })
                .optional()
        };
        select().map_err(|e| failed(&self.path, "read", e))
    }

    /// Keeps the vectors of a batch, all or none.
    pub fn put<'a>(&mut self, model: &str, batch: impl Iterator<Item = (&'a str, &'a [f32])>) -> Result<()> {
        let insert = || -> rusqlite::Result<()> {
            let tx = self.connection.transaction()?;
            for (text, vector) in batch {
                tx.prepare_cached("insert or ignore into vectors values (?, ?, ?)")?.execute(params![
                    model,
                    hash(text),
                    to_bytes(vector)
                ])?;
            }
            tx.commit()
        };
        insert().map_err(|e| failed(&self.path, "write", e))
    }

    /// Removes the file: its vectors are in the index now.
    pub fn finish(self) -> Result<()> {
        let Self { connection, path } = self;
        connection.close().map_err(|(_, e)| failed(&path, "close", e))?;
        std::fs::remove_file(&path).map_err(|e| Error::io("remove", &path, e))
    }
}

fn hash(text: &str) -> Vec<u8> {
    Sha256::digest(text.as_bytes()).to_vec()
}
