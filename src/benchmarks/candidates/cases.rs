//! The cases that candidates are compared over.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::corpus::queries::{self, check_docids};
use crate::corpus::{self, JudgedQuery, Judgments, Query, hex};
use crate::error::{Error, Result};

/// The set of questions whose sources are the documents to find.
pub const ASK: &str = "ask";

/// What documents were searched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CorpusFacts {
    /// How many.
    pub documents: usize,
    /// SHA-256 over ids and contents.
    pub hash: String,
}

/// Cases that are reported together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Set {
    /// What it is called.
    pub name: String,
    /// Its cases; each has a relevant document.
    pub cases: Vec<JudgedQuery>,
}

/// An entry of `ask.json`; a question without `docids` has no answer.
#[derive(Deserialize)]
struct Asked {
    id: String,
    question: String,
    lang: Option<String>,
    #[serde(default)]
    docids: Vec<String>,
}

/// The sets of the fixtures in `folder`: `queries.json`, by the first letter of the id *baseline*, *adversarial* (`a`)
/// and *multilingual* (`x`), and [`ASK`], the answerable questions of `ask.json` with their sources as grade 3.
///
/// Fails when one of the files cannot be used, or names a document that `folder/corpus` lacks.
pub fn fixtures(folder: &Path) -> Result<(CorpusFacts, Vec<Set>)> {
    let names = ["baseline", "adversarial", "multilingual", ASK];
    let mut sets = names.map(|name| Set { name: name.into(), cases: Vec::new() });
    for case in queries::read(&folder.join("queries.json"))? {
        let set = match case.query.id.as_bytes().first() {
            Some(b'a') => 1,
            Some(b'x') => 2,
            _ => 0,
        };
        sets[set].cases.push(case);
    }
    sets[3].cases = asked(&folder.join("ask.json"))?;
    checked(&folder.join("corpus"), sets.into(), "fixtures")
}

/// One set, *own*, of anybody's documents and judged queries (a BEIR folder, or a `queries.json`).
///
/// Fails when either cannot be used, no query has a relevant document, or one names a document that is not there.
pub fn own(corpus: &Path, queries: &Path) -> Result<(CorpusFacts, Vec<Set>)> {
    let cases = corpus::judged_queries(queries)?;
    checked(corpus, vec![Set { name: "own".into(), cases }], &queries.display().to_string())
}

fn asked(path: &Path) -> Result<Vec<JudgedQuery>> {
    let text = std::fs::read_to_string(path).map_err(|e| Error::io("read the questions", path, e))?;
    let asked: Vec<Asked> =
        serde_json::from_str(&text).map_err(|e| Error::input(e.to_string()).context(path.display()))?;
    let answerable = asked.into_iter().filter(|case| !case.docids.is_empty());
    let case = |asked: Asked| JudgedQuery {
        query: Query { id: asked.id, text: asked.question, lang: asked.lang, ..Query::default() },
        judgments: asked.docids.into_iter().map(|docid| (docid, 3)).collect::<Judgments>(),
    };
    Ok(answerable.map(case).collect())
}

/// The sets without cases that nothing could answer, and what the corpus is. Every docid must be one of the corpus, and
/// every id must be unique over all sets.
fn checked(corpus: &Path, mut sets: Vec<Set>, source: &str) -> Result<(CorpusFacts, Vec<Set>)> {
    let (facts, docids) = facts(corpus)?;
    let mut ids = std::collections::HashSet::new();
    for set in &mut sets {
        set.cases.retain(|case| case.judgments.values().any(|&grade| grade > 0));
        check_docids(
            &set.cases,
            |docid| docids.binary_search_by(|known| known.as_str().cmp(docid)).is_ok(),
            || docids.clone(),
        )
        .map_err(|e| e.context(source))?;
        if let Some(case) = set.cases.iter().find(|case| !ids.insert(case.query.id.clone())) {
            return Err(Error::input(format!("{source}: case `{}` occurs twice", case.query.id))
                .with_hint("every id may occur once"));
        }
    }
    sets.retain(|set| !set.cases.is_empty());
    if sets.is_empty() {
        return Err(Error::input(format!("{source}: no query has a relevant document"))
            .with_hint("judge some documents with a grade of 1 or more"));
    }
    Ok((facts, sets))
}

/// How many documents a corpus has, what identifies them, and their ids, sorted.
fn facts(corpus: &Path) -> Result<(CorpusFacts, Vec<String>)> {
    let mut known = Vec::new();
    for document in corpus::open(corpus).documents()? {
        let document = document?;
        let hash = document.content_hash();
        known.push((document.id, hash));
    }
    if known.is_empty() {
        return Err(Error::input(format!("{}: there are no documents in it", corpus.display()))
            .with_hint("name a folder of Markdown or text files, or a BEIR folder"));
    }
    known.sort();
    let mut hasher = Sha256::new();
    known.iter().for_each(|(id, hash)| hasher.update(format!("{id}\0{hash}\n")));
    let facts = CorpusFacts { documents: known.len(), hash: hex(&hasher.finalize()) };
    Ok((facts, known.into_iter().map(|(id, _)| id).collect()))
}
