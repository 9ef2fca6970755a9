//! An index by words in a folder of its own, made with a given tokenizer.

use std::path::Path;
use std::time::Instant;

use crate::corpus::Document;
use crate::error::{Error, Result};
use crate::pipeline::bm25::{Lexical, LexicalDoc, LexicalWriter};
use crate::text::{Tokenizer, parse};

/// A document and the collection that it is in.
pub(super) type Stored<'a> = (&'a str, &'a Document);

/// An index that goes with its folder.
pub(super) struct Words {
    dir: tempfile::TempDir,
    lexical: Lexical,
    ids: Vec<String>,
    /// From the first document to a commit that can be searched.
    pub(super) build_ms: f64,
}

impl Words {
    /// Indexes `documents`, whose ids are returned by searches.
    pub(super) fn build<'a>(
        documents: impl Iterator<Item = Stored<'a>>,
        tokenizer: Tokenizer,
    ) -> Result<Self> {
        let dir = tempfile::tempdir().map_err(|e| Error::io("make a folder in", &std::env::temp_dir(), e))?;
        let start = Instant::now();
        let ids = fill(dir.path(), documents, tokenizer)?;
        let lexical = Lexical::open(dir.path())?;
        Ok(Self { lexical, ids, build_ms: start.elapsed().as_secs_f64() * 1e3, dir })
    }

    /// Ids of the `limit` best documents.
    pub(super) fn search(&self, query: &str, collection: Option<&str>, limit: usize) -> Result<Vec<&str>> {
        let found = self.lexical.search(&parse(query), collection, limit)?;
        Ok(found.hits.iter().filter_map(|hit| self.ids.get(hit.key as usize)).map(String::as_str).collect())
    }

    /// All files of the index, after its one commit.
    pub(super) fn bytes(&self) -> Result<u64> {
        let failed = |e| Error::io("read the folder", self.dir.path(), e);
        let mut bytes = 0;
        for entry in self.dir.path().read_dir().map_err(failed)? {
            bytes += entry.and_then(|entry| entry.metadata()).map_err(failed)?.len();
        }
        Ok(bytes)
    }
}

/// Writes `documents` into the index in `dir`; their ids, of which the keys are the places.
pub(super) fn fill<'a>(
    dir: &Path,
    documents: impl Iterator<Item = Stored<'a>>,
    tokenizer: Tokenizer,
) -> Result<Vec<String>> {
    let mut writer = LexicalWriter::open_with(dir, tokenizer)?;
    let mut ids = Vec::new();
    for (collection, Document { id, title, body, lang }) in documents {
        let doc = LexicalDoc { collection, id, title, body, lang: lang.as_deref() };
        writer.put(ids.len() as u64, doc)?;
        ids.push(id.clone());
    }
    writer.commit(1)?;
    Ok(ids)
}
