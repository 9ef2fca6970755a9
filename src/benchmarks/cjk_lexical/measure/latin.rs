//! Text in Latin letters, which a tokenizer for other scripts must leave as it was.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::corpus::{Document, JudgedQuery, folder, queries};
use crate::error::{Error, Result};
use crate::metrics::{ndcg_at, recall_at, stats};
use crate::record::json;
use crate::text::Tokenizer;

use super::super::words::Words;
use super::LIMIT;

/// Languages whose queries are not part of the comparison.
const UNSPACED: [&str; 3] = ["zh", "ja", "ko"];

/// Judged queries over a corpus, and identifiers with the document that has them.
#[derive(Debug, Clone)]
pub struct Comparison {
    documents: Vec<Document>,
    queries: Vec<JudgedQuery>,
    stored: Vec<(String, Document)>,
    identifiers: Vec<Promise>,
}

/// Means over the queries in Latin letters, and what became of identifiers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latin {
    /// How many queries there are.
    pub queries: usize,
    /// Mean over them.
    #[serde(rename = "recall@10")]
    pub recall_10: f64,
    /// Mean over them.
    #[serde(rename = "ndcg@10")]
    pub ndcg_10: f64,
    /// Each identifier that was looked for.
    pub identifiers: Vec<Identifier>,
}

/// An identifier that was looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Identifier {
    /// The case's id.
    pub id: String,
    /// Whether the document that has it came first.
    pub first: bool,
    /// Whether nothing was found.
    pub zero_result: bool,
}

/// A case of a lexical matrix, as far as it is needed here.
#[derive(Debug, Clone, Deserialize)]
struct Promise {
    id: String,
    class: String,
    query: String,
    collection: Option<String>,
    first: Vec<String>,
}

#[derive(Deserialize)]
struct Matrix {
    documents: Vec<InMatrix>,
    cases: Vec<Promise>,
}

#[derive(Deserialize)]
struct InMatrix {
    #[serde(default)]
    collection: String,
    #[serde(flatten)]
    document: Body,
}

#[derive(Deserialize)]
struct Body {
    id: String,
    #[serde(default)]
    title: String,
    body: String,
    lang: Option<String>,
}

impl Comparison {
    /// Reads a folder of documents, their judged queries, and a lexical matrix (`fixtures/lexical.json`).
    ///
    /// Queries in Chinese, Japanese and Korean are left out, and so are cases of the matrix that are not about an
    /// identifier, a version or a file name, or that promise no first document. Fails when a file is missing or not of
    /// its form, and when nothing is left.
    pub fn read(corpus: &Path, judged: &Path, matrix: &Path) -> Result<Self> {
        let documents = folder::documents(corpus)?.collect::<Result<Vec<_>>>()?;
        let mut queries = queries::read(judged)?;
        queries.retain(|case| !case.query.lang.as_deref().is_some_and(|lang| UNSPACED.contains(&lang)));
        let text = std::fs::read_to_string(matrix).map_err(|e| Error::io("read", matrix, e))?;
        let read = json::from_str(&text).and_then(serde_json::from_value::<Matrix>);
        let read = read.map_err(|e| Error::input(format!("{}: {e}", matrix.display())))?;
        let stored = read.documents.into_iter().map(|InMatrix { collection, document }| {
            let Body { id, title, body, lang } = document;
            (collection, Document { id, title, body, lang })
        });
        let mut identifiers = read.cases;
        identifiers.retain(|case| {
            let kinds = ["identifier", "version", "file name"];
            kinds.iter().any(|kind| case.class.contains(kind)) && !case.first.is_empty()
        });
        if queries.is_empty() || identifiers.is_empty() {
            let what =
                format!("{}, {}: no query or no identifier to compare", judged.display(), matrix.display());
            return Err(Error::input(what).with_hint("name files that have both"));
        }
        Ok(Self { documents, queries, stored: stored.collect(), identifiers })
    }

    pub(super) fn measure(&self, tokenizer: Tokenizer) -> Result<Latin> {
        let words = Words::build(self.documents.iter().map(|document| ("", document)), tokenizer)?;
        let (mut recall, mut ndcg) = (Vec::new(), Vec::new());
        for JudgedQuery { query, judgments } in &self.queries {
            let found = words.search(&query.text, None, LIMIT)?;
            // Queries without a relevant document define neither.
            recall.extend(recall_at(LIMIT, found.iter().copied(), judgments));
            ndcg.extend(ndcg_at(LIMIT, found.iter().copied(), judgments));
        }
        let stored = self.stored.iter().map(|(collection, document)| (collection.as_str(), document));
        let words = Words::build(stored, tokenizer)?;
        let mut identifiers = Vec::new();
        for case in &self.identifiers {
            let found = words.search(&case.query, case.collection.as_deref(), LIMIT)?;
            let first = found.first() == case.first.first().map(String::as_str).as_ref();
            identifiers.push(Identifier { id: case.id.clone(), first, zero_result: found.is_empty() });
        }
        Ok(Latin {
            queries: recall.len(),
            recall_10: stats::mean(&recall).unwrap_or(0.0),
            ndcg_10: stats::mean(&ndcg).unwrap_or(0.0),
            identifiers,
        })
    }
}
