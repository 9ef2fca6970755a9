//! Documents, queries, judgments and rankings, and the readers of the formats they come in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

mod answer;
pub mod beir;
pub mod folder;
mod input;
mod output;
pub mod queries;
pub mod trec;

pub use answer::{Answer, Expansion, Passage};
pub use input::open_file;
pub use output::{create_file, is_database, write_file};

/// One document of a corpus.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// Relative path with `/`, or the `_id` of a BEIR corpus. Unique in its collection.
    pub id: String,
    /// Title; empty when there is none.
    pub title: String,
    /// The text, without front matter.
    pub body: String,
    /// Language tag such as `de`, when the document states one.
    pub lang: Option<String>,
}

impl Document {
    /// SHA-256 of title and body in lower-case hexadecimal, 64 characters.
    pub fn content_hash(&self) -> String {
        let mut hasher = Sha256::new();
        hasher.update(self.title.as_bytes());
        hasher.update([0]);
        hasher.update(self.body.as_bytes());
        hex(&hasher.finalize())
    }
}

/// Bytes as lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// What a structured query part is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Words for the lexical lane only.
    Term,
    /// A meaning for the vector lane only.
    Intent,
    /// A hypothetical answer, embedded like a passage. At most one a query.
    Hyde,
}

/// One structured part of a query: `term: …`, `intent: …` or `hyde: …`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueryMode {
    /// Which lane the text goes to.
    pub mode: Mode,
    /// The text.
    pub text: String,
}

/// A query of a test collection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Query {
    /// Stable identifier, unique in its file.
    pub id: String,
    /// What a person typed.
    pub text: String,
    /// Language tag, if stated.
    pub lang: Option<String>,
    /// Only documents of this collection are wanted.
    pub collection: Option<String>,
    /// A class to report by: `entity`, `phrase`, `cross-language` …
    pub category: Option<String>,
    /// Structured parts that go to the lanes beside the text.
    pub modes: Vec<QueryMode>,
}

/// Graded relevance of documents: docid → grade. Zero and below means judged not relevant.
pub type Judgments = BTreeMap<String, i64>;

/// Judgments by query id: what TREC calls qrels.
pub type Qrels = BTreeMap<String, Judgments>;

/// A query with its judgments: a case of an eval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct JudgedQuery {
    /// The query.
    pub query: Query,
    /// Its judgments.
    pub judgments: Judgments,
}

/// One retrieved document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hit {
    /// The document's id.
    pub docid: String,
    /// The score it was ranked by; higher is better, comparable only inside one ranking.
    pub score: f64,
    /// The collection it is in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub collection: String,
    /// Short content hash, `#a1b2c3`; accepted wherever a docid is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hash: String,
    /// The document's title.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// The passage that matched best.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub snippet: String,
    /// The passage nearest to the query, counted from 0 in its document; absent where no search by meaning looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk: Option<u32>,
    /// What each stage said of the document; empty when a ranking does not explain itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
}

/// What one stage said of a document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The stage: `bm25`, `vector`, `late-interaction` …
    pub stage: String,
    /// The document's place in the stage's list, from 1.
    pub rank: usize,
    /// The stage's own score.
    pub score: f64,
    /// What the stage added to the hit's score.
    pub contribution: f64,
}

impl Evidence {
    /// What `stage` said: the place in its list from 1, its own score, and what it added.
    pub fn new(stage: impl Into<String>, rank: usize, score: impl Into<f64>, contribution: f64) -> Self {
        Self { stage: stage.into(), rank, score: score.into(), contribution }
    }
}

impl Hit {
    /// A hit that only knows its document and score.
    pub fn new(docid: impl Into<String>, score: f64) -> Self {
        Self { docid: docid.into(), score, ..Self::default() }
    }
}

/// Ordered hits, best first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Ranking {
    /// The hits.
    pub hits: Vec<Hit>,
}

impl Ranking {
    /// A ranking from docids alone, scored n, n−1, … 1: for an engine that returns no scores.
    ///
    /// ```
    /// let ranking = rankgate::Ranking::from_docids(["b", "a"]);
    /// assert_eq!(ranking.top(3), "b, a");
    /// ```
    pub fn from_docids<S: Into<String>>(docids: impl IntoIterator<Item = S>) -> Self {
        let docids: Vec<String> = docids.into_iter().map(Into::into).collect();
        let n = docids.len();
        let hits = docids.into_iter().enumerate().map(|(i, docid)| Hit::new(docid, (n - i) as f64)).collect();
        Self { hits }
    }

    /// The docids, best first, repetitions included.
    pub fn docids(&self) -> impl Iterator<Item = &str> {
        self.hits.iter().map(|hit| hit.docid.as_str())
    }

    /// The first `n` docids joined by `, `: for a table.
    pub fn top(&self, n: usize) -> String {
        self.docids().take(n).collect::<Vec<_>>().join(", ")
    }

    /// The first docid that occurs twice, if one does.
    pub fn duplicate(&self) -> Option<&str> {
        let mut seen = std::collections::HashSet::new();
        self.docids().find(|docid| !seen.insert(*docid))
    }
}

impl FromIterator<Hit> for Ranking {
    fn from_iter<I: IntoIterator<Item = Hit>>(hits: I) -> Self {
        Self { hits: hits.into_iter().collect() }
    }
}

/// Reads judged queries from a BEIR folder, a folder with a `queries.json`, or such a file.
///
/// Fails like [`beir::judged_queries`] and [`queries::read`].
pub fn judged_queries(path: &Path) -> Result<Vec<JudgedQuery>> {
    if !path.exists() {
        return Err(Error::not_found(format!("{}: there is no such folder or file", path.display()))
            .with_hint("name the folder of a corpus, or a file of judged queries"));
    }
    let beside = path.join("queries.json");
    if path.is_dir() && !beside.is_file() {
        return beir::judged_queries(path);
    }
    queries::read(if path.is_dir() { &beside } else { path })
}

/// A corpus on disk, of a form that was recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Corpus {
    /// A folder in BEIR's form; see [`beir`].
    Beir(PathBuf),
    /// A folder of Markdown and text, or one such file; see [`folder`].
    Folder(PathBuf),
}

/// Recognises what lies at `path`: with a `corpus.jsonl` it is a BEIR folder, else a folder of documents.
pub fn open(path: &Path) -> Corpus {
    if beir::is_beir(path) { Corpus::Beir(path.into()) } else { Corpus::Folder(path.into()) }
}

impl Corpus {
    /// Its documents, read one at a time, in an order that is always the same.
    ///
    /// Fails at once when the place cannot be read; yields an [`crate::ErrorKind::Input`] error for each document
    /// that cannot be used, and goes on after it.
    pub fn documents(&self) -> Result<Box<dyn Iterator<Item = Result<Document>>>> {
        Ok(match self {
            Self::Beir(dir) => Box::new(beir::documents(dir)?),
            Self::Folder(root) => Box::new(folder::documents(root)?),
        })
    }
}
