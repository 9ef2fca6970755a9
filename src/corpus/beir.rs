//! Reads a folder in the form of the BEIR benchmark (Thakur et al., NeurIPS 2021): `corpus.jsonl`,
//! `queries.jsonl` and `qrels.tsv` or `qrels/test.tsv`.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Document, JudgedQuery, Query, trec};
use crate::error::{Error, Result};

/// The file that makes a folder a BEIR folder.
pub const CORPUS_FILE: &str = "corpus.jsonl";
const QUERIES_FILE: &str = "queries.jsonl";
const QRELS_FILES: [&str; 2] = ["qrels.tsv", "qrels/test.tsv"];

/// Whether `dir` holds a BEIR corpus.
pub fn is_beir(dir: &Path) -> bool {
    dir.join(CORPUS_FILE).is_file()
}

/// Reads `corpus.jsonl` of `dir` line by line.
///
/// A text that begins with its title loses the title there, so that title and body together say everything
/// once. A bad line yields an error with file and line: broken JSON, a missing `_id`, an `_id` seen before; the
/// caller may go on to the next line. Fails at once when the file cannot be opened.
pub fn documents(dir: &Path) -> Result<impl Iterator<Item = Result<Document>> + use<>> {
    let path = dir.join(CORPUS_FILE);
    let mut seen = Seen::default();
    Ok(lines::<CorpusLine>(&path)?.map(move |line| {
        let (number, line) = line?;
        let id = seen.check(line.id, &path, number)?;
        let title = line.title.unwrap_or_default().trim().to_string();
        let body = without_title(line.text.unwrap_or_default(), &title);
        Ok(Document { id, title, body, lang: line.metadata.lang })
    }))
}

/// Reads `queries.jsonl` of `dir`, in the order of the file. Fails as [`documents`] yields errors.
pub fn queries(dir: &Path) -> Result<Vec<Query>> {
    read_queries(&dir.join(QUERIES_FILE))
}

fn read_queries(path: &Path) -> Result<Vec<Query>> {
    let mut seen = Seen::default();
    lines::<QueryLine>(path)?
        .map(|line| {
            let (number, line) = line?;
            let id = seen.check(line.id, path, number)?;
            if line.text.trim().is_empty() {
                return Err(at(path, number, format!("query `{id}` has no text")));
            }
            let Metadata { lang, category } = line.metadata;
            Ok(Query { id, text: line.text, lang, category, ..Query::default() })
        })
        .collect()
}

/// Reads a file of queries alone: lines of JSON as in `queries.jsonl`, or an id, a tab and a text in each line.
///
/// Fails, naming file and line, on a line that is neither, an id that occurs twice and a query without text.
pub fn query_texts(path: &Path) -> Result<Vec<Query>> {
    let bytes = std::fs::read(path).map_err(|e| Error::io("read the queries", path, e))?;
    let text = std::str::from_utf8(&bytes).map_err(|_| {
        Error::input(format!("{}: not UTF-8", path.display())).with_hint("save the file as UTF-8 text")
    })?;
    let text = text.trim_start_matches('\u{feff}');
    if text.trim_start().starts_with('{') {
        return read_queries(path);
    }
    let mut seen = Seen::default();
    (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(number, line)| {
            let columns = line.split_once('\t');
            let (id, text) = columns.ok_or_else(|| at(path, number, "no tab between id and text"))?;
            let id = seen.check(Id::Text(id.trim().into()), path, number)?;
            if text.trim().is_empty() {
                return Err(at(path, number, format!("query `{id}` has no text")));
            }
            Ok(Query { id, text: text.trim().into(), ..Query::default() })
        })
        .collect()
}

/// The file of judgments: `qrels.tsv`, else `qrels/test.tsv`. Fails when `dir` has neither.
pub fn qrels_path(dir: &Path) -> Result<PathBuf> {
    QRELS_FILES.into_iter().map(|file| dir.join(file)).find(|path| path.is_file()).ok_or_else(|| {
        Error::not_found(format!("{}: neither `qrels.tsv` nor `qrels/test.tsv` is there", dir.display()))
            .with_hint("judged queries are such a file beside a queries.jsonl, or a queries.json")
    })
}

/// Reads the queries that have judgments, in the order of `queries.jsonl`.
///
/// Queries without judgments belong to another split and are left out. Fails when a judgment names a query that
/// is not there, and when no query is judged.
pub fn judged_queries(dir: &Path) -> Result<Vec<JudgedQuery>> {
    let path = qrels_path(dir)?;
    let mut qrels = trec::read_qrels(&path)?;
    let judged: Vec<JudgedQuery> = queries(dir)?
        .into_iter()
        .filter_map(|query| qrels.remove(&query.id).map(|judgments| JudgedQuery { query, judgments }))
        .collect();
    if let Some(id) = qrels.keys().next() {
        let what = format!("{}: query `{id}` is judged, but is not in {QUERIES_FILE}", path.display());
        return Err(Error::input(what).with_hint("take both files from the same release of the collection"));
    }
    if judged.is_empty() {
        return Err(Error::input(format!("{}: no query is judged", path.display())));
    }
    Ok(judged)
}

/// An identifier that some corpora write as a number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Id {
    Text(String),
    Number(u64),
}

#[derive(Deserialize)]
struct CorpusLine {
    #[serde(rename = "_id")]
    id: Id,
    title: Option<String>,
    text: Option<String>,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Deserialize)]
struct QueryLine {
    #[serde(rename = "_id")]
    id: Id,
    text: String,
    #[serde(default)]
    metadata: Metadata,
}

/// What is understood of the free-form `metadata`.
#[derive(Default, Deserialize)]
#[serde(from = "serde_json::Value")]
struct Metadata {
    lang: Option<String>,
    category: Option<String>,
}

impl From<serde_json::Value> for Metadata {
    fn from(value: serde_json::Value) -> Self {
        let text = |key: &str| value.get(key).and_then(|value| value.as_str()).map(str::to_string);
        Self { lang: text("lang").or_else(|| text("language")), category: text("category") }
    }
}

/// The identifiers of a file so far.
#[derive(Default)]
struct Seen(HashSet<String>);

impl Seen {
    fn check(&mut self, id: Id, path: &Path, number: usize) -> Result<String> {
        let id = match id {
            Id::Text(text) => text,
            Id::Number(number) => number.to_string(),
        };
        if id.is_empty() {
            return Err(at(path, number, "`_id` is empty"));
        }
        if !self.0.insert(id.clone()) {
            return Err(
                at(path, number, format!("`_id` `{id}` occurs twice")).with_hint("every id may occur once")
            );
        }
        Ok(id)
    }
}

fn without_title(text: String, title: &str) -> String {
    match text.strip_prefix(title) {
        // "Wing" is not the title of "Wings of …".
        Some(rest) if !title.is_empty() && !rest.starts_with(char::is_alphanumeric) => {
            rest.trim_start().to_string()
        }
        _ => text,
    }
}

fn at(path: &Path, line: usize, what: impl std::fmt::Display) -> Error {
    Error::input(format!("{}:{line}: {what}", path.display()))
}

/// The records of a file of one JSON object a line, with their line numbers from 1. Empty lines are skipped.
fn lines<T: DeserializeOwned>(path: &Path) -> Result<impl Iterator<Item = Result<(usize, T)>> + use<T>> {
    let file = File::open(path).map_err(|e| Error::io("read", path, e))?;
    let path = path.to_path_buf();
    let mut reader = BufReader::new(file);
    let mut buffer = Vec::new();
    let mut number = 0;
    Ok(std::iter::from_fn(move || {
        loop {
            buffer.clear();
            number += 1;
            match reader.read_until(b'\n', &mut buffer) {
                Ok(0) => return None,
                Ok(_) if buffer.trim_ascii().is_empty() => {}
                Ok(_) => return Some(record(&buffer, &path, number).map(|record| (number, record))),
                Err(e) => return Some(Err(Error::io("read", &path, e))),
            }
        }
    }))
}

fn record<T: DeserializeOwned>(line: &[u8], path: &Path, number: usize) -> Result<T> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    serde_json::from_slice(line).map_err(|e| {
        let error = at(path, number, e.to_string().replace(" at line 1 column", " at column"));
        if e.is_eof() { error.with_hint("the file may be cut off: fetch it again") } else { error }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a temporary folder");
        for (name, text) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().expect("has a parent")).expect("creates");
            std::fs::write(path, text).expect("writes");
        }
        dir
    }

    #[test]
    fn numbers_are_ids_and_a_repeated_title_is_dropped() {
        let dir = folder(&[(
            CORPUS_FILE,
            "\u{feff}{\"_id\": 7, \"title\": \"Wing\", \"text\": \"Wing . Lift.\"}\n\n\
             {\"_id\": \"b\", \"title\": \"Wing\", \"text\": \"Wings.\", \"metadata\": {\"lang\": \"en\", \"n\": 1}}\n",
        )]);
        let documents: Vec<_> = documents(dir.path()).expect("opens").collect::<Result<_>>().expect("reads");
        assert_eq!((documents[0].id.as_str(), documents[0].body.as_str()), ("7", ". Lift."));
        assert_eq!((documents[1].body.as_str(), documents[1].lang.as_deref()), ("Wings.", Some("en")));
    }

    #[test]
    fn bad_lines_name_file_and_line_and_the_next_one_is_read() {
        let dir = folder(&[(
            CORPUS_FILE,
            "{\"_id\": \"a\", \"text\": \"x\"}\n{\"text\": \"x\"}\n{\"_id\": \"a\"}\nnull\n{\"_id\": \"\"}\n\
             {\"_id\": \"b\"}\n{\"_id\": \"c\", \"te",
        )]);
        let results: Vec<_> = documents(dir.path()).expect("opens").collect();
        let errors: Vec<_> = results.iter().flat_map(|r| r.as_ref().err()).map(Error::report).collect();
        assert_eq!(results.len() - errors.len(), 2);
        for (error, words) in errors.iter().zip([
            "corpus.jsonl:2: missing field `_id`",
            "corpus.jsonl:3: `_id` `a` occurs twice",
            "corpus.jsonl:4: ",
            "corpus.jsonl:5: `_id` is empty",
            "corpus.jsonl:7: EOF",
        ]) {
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn queries_are_joined_with_their_judgments() {
        let queries = "{\"_id\": 1, \"text\": \"q one\"}\n{\"_id\": 2, \"text\": \"q two\"}\n";
        let qrels = "query-id\tcorpus-id\tscore\n2\tb\t1\n2\tc\t0\n";
        let dir = folder(&[(QUERIES_FILE, queries), ("qrels/test.tsv", qrels)]);
        let judged = judged_queries(dir.path()).expect("reads");
        assert_eq!((judged.len(), judged[0].query.id.as_str(), judged[0].judgments["b"]), (1, "2", 1));
        let dir = folder(&[(QUERIES_FILE, queries), ("qrels.tsv", "query-id\tcorpus-id\tscore\n3\tb\t1\n")]);
        assert!(judged_queries(dir.path()).expect_err("3 is unknown").report().contains("query `3`"));
        assert!(judged_queries(folder(&[(QUERIES_FILE, queries)]).path()).is_err());
    }

    #[test]
    fn the_public_collections_are_read_whole() {
        let data = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data/cranfield"));
        if !data.exists() {
            eprintln!("skipped: no shared data");
            return;
        }
        let documents: Vec<_> = documents(data).expect("opens").collect::<Result<_>>().expect("reads");
        assert_eq!(documents.len(), 1400);
        let repeated =
            documents.iter().filter(|d| !d.title.is_empty() && d.body.starts_with(&d.title)).count();
        // 1398 texts begin with their title; one of these has it twice, and the second time is text.
        assert_eq!(repeated, 1);
        assert_eq!(judged_queries(data).expect("reads").len(), 225);
    }
}
