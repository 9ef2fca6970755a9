//! The fixture: documents, queries and graded judgments in three languages, and every rule that they keep.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::corpus::{Document, JudgedQuery, Judgments, Query, folder, hex};
use crate::error::{Error, Result};
use crate::record::json;

mod check;
#[cfg(test)]
mod tests;

/// A fixture that keeps all rules.
#[derive(Debug, Clone)]
pub struct Fixture {
    /// The folder it was read from.
    pub dir: PathBuf,
    /// What it promises.
    pub manifest: Manifest,
    /// Its documents, ordered by id.
    pub documents: Vec<Document>,
    /// Its queries, in the order of their file.
    pub queries: Vec<CjkQuery>,
    /// Path within the fixture → SHA-256 of the bytes, for every file that decides a result.
    pub files: BTreeMap<String, String>,
}

/// `manifest.json`: what the fixture promises of itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Of the fixture: raised with any change of a document, a query or a judgment.
    pub version: u32,
    /// Two-letter tags, which are the names of the folders.
    pub languages: Vec<String>,
    /// Categories that each language has to have.
    pub categories: Vec<String>,
    /// The least that each language has.
    pub minimum: Minimum,
    /// Under which licence the texts are.
    pub licence: Licence,
    /// Where the texts are from.
    pub provenance: Provenance,
    /// In which form the texts are.
    pub unicode: Unicode,
}

/// The least of each language.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Minimum {
    /// Documents of each language.
    pub documents: usize,
    /// Queries of each language.
    pub queries: usize,
}

/// The licence of the texts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Licence {
    /// An SPDX expression.
    pub spdx: String,
    /// What it covers.
    pub scope: String,
}

/// Where the texts are from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// The day on which this was looked at.
    pub reviewed: String,
    /// Whether everybody may pass it on.
    pub redistributable: bool,
    /// Whether anything was taken from elsewhere.
    pub external_text: bool,
    /// How the texts were made.
    pub method: String,
}

/// In which form the texts are.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unicode {
    /// Always UTF-8.
    pub encoding: String,
    /// The normal form of documents: NFC.
    pub documents: String,
    /// The forms that occur in queries.
    pub queries: Vec<String>,
}

/// A query with its judgments.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CjkQuery {
    /// `zh-q001`.
    pub id: String,
    /// Its language, which is that of the documents that answer it.
    pub language: String,
    /// What is difficult about it.
    pub category: String,
    /// What a person typed.
    pub query: String,
    /// Why it is here.
    pub notes: String,
    /// For `normalization`: what is written differently in the document.
    pub normalization: Option<Normalization>,
    /// For `ranking`: which words all documents have, and which one tells them apart.
    pub ranking: Option<Discrimination>,
    /// docid → grade from 0 to 3, from `qrels.json`.
    #[serde(skip)]
    pub judgments: Judgments,
}

/// A text that query and document write differently.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Normalization {
    /// The normal form that makes one of the other.
    pub form: NormalForm,
    /// As the query has it.
    pub source: String,
    /// As the document has it.
    pub target: String,
}

/// A Unicode normal form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum NormalForm {
    /// Canonical composition.
    Nfc,
    /// Compatibility composition.
    Nfkc,
}

/// Which words of a query decide.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Discrimination {
    /// Only the document that answers has it.
    pub discriminator: String,
    /// Every document of the language has them.
    pub shared: Vec<String>,
}

/// `sources.json`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sources {
    version: u32,
    documents: Vec<Source>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    id: String,
    language: String,
    license: String,
    provenance: String,
    #[serde(rename = "authored")]
    _authored: String,
    normalization: String,
    sha256: String,
}

/// `queries.json`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Queries {
    version: u32,
    queries: Vec<CjkQuery>,
}

/// `qrels.json`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Qrels {
    version: u32,
    #[serde(rename = "scale")]
    _scale: BTreeMap<String, String>,
    judgments: Vec<Judged>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Judged {
    query: String,
    docid: String,
    relevance: i64,
}

/// The files as they were read.
struct Read {
    manifest: Manifest,
    sources: Sources,
    queries: Vec<CjkQuery>,
    judgments: Vec<Judged>,
    /// docid → text as it stands in the file.
    texts: BTreeMap<String, String>,
    documents: Vec<Document>,
}

impl Fixture {
    /// Reads the fixture in `dir` and checks it.
    ///
    /// Fails with the name of the file and of the query or document for each rule of `fixture/check.rs` that is broken:
    /// identifiers, provenance and hashes, normal form, categories of each language, complete judgments, queries that
    /// give the answer away.
    pub fn read(dir: &Path) -> Result<Self> {
        let mut files = BTreeMap::new();
        let manifest: Manifest = parse(dir, "manifest.json", &mut files)?;
        let sources: Sources = parse(dir, "sources.json", &mut files)?;
        let Queries { version, mut queries } = parse(dir, "queries.json", &mut files)?;
        let Qrels { version: qrels, judgments, .. } = parse(dir, "qrels.json", &mut files)?;
        for (file, version) in [("sources", sources.version), ("queries", version), ("qrels", qrels)] {
            if version != 1 {
                return Err(Error::input(format!("{file}.json: version {version} is unknown"))
                    .with_hint("this program reads version 1")
                    .context(dir.display()));
            }
        }
        let documents = folder::documents(&dir.join("corpus"))?.collect::<Result<Vec<Document>>>()?;
        let mut texts = BTreeMap::new();
        for Document { id, .. } in &documents {
            let name = format!("corpus/{id}");
            texts.insert(id.clone(), text(dir, &name, &mut files)?);
        }
        let read = Read { manifest, sources, queries: Vec::new(), judgments, texts, documents };
        for query in &mut queries {
            let own = read.judgments.iter().filter(|judged| judged.query == query.id);
            query.judgments = own.map(|judged| (judged.docid.clone(), judged.relevance)).collect();
        }
        let read = Read { queries, ..read };
        check::all(&read, &files).map_err(|e| e.context(dir.display()))?;
        let Read { manifest, queries, documents, .. } = read;
        Ok(Self { dir: dir.to_path_buf(), manifest, documents, queries, files })
    }

    /// SHA-256 over the hashes of all files.
    pub fn fingerprint(&self) -> String {
        json::fingerprint(&serde_json::json!(self.files))
    }
}

impl From<&CjkQuery> for JudgedQuery {
    fn from(query: &CjkQuery) -> Self {
        Self {
            query: Query {
                id: query.id.clone(),
                text: query.query.clone(),
                lang: Some(query.language.clone()),
                category: Some(query.category.clone()),
                ..Query::default()
            },
            judgments: query.judgments.clone(),
        }
    }
}

fn text(dir: &Path, name: &str, files: &mut BTreeMap<String, String>) -> Result<String> {
    let path = dir.join(name);
    let bytes = std::fs::read(&path).map_err(|e| Error::io("read", &path, e))?;
    files.insert(name.into(), hex(&Sha256::digest(&bytes)));
    String::from_utf8(bytes).map_err(|_| Error::input(format!("{}: not UTF-8", path.display())))
}

fn parse<T: DeserializeOwned>(dir: &Path, name: &str, files: &mut BTreeMap<String, String>) -> Result<T> {
    let text = text(dir, name, files)?;
    let value = json::from_str(&text).and_then(serde_json::from_value);
    value.map_err(|e| Error::input(format!("{}: {e}", dir.join(name).display())))
}
