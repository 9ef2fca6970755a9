//! Captured searches: one row a search, format version 1.
//!
//! A row is a JSON object that begins with 17 agreed keys, in a fixed order. The keys behind them are this program's,
//! and say what is needed to run the search again as it was. Any other key is kept as it came.

use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead, Write};
use std::path::Path;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::moment::is_moment;
use super::ndjson::{self, Lines};
use crate::corpus::{Expansion, QueryMode};
use crate::error::{Error, ErrorKind, Result};
use crate::settings::{Fusion, Thoroughness};

mod replayable;

/// The format's version.
pub const VERSION: u32 = 1;

/// The value of `_kind` in the first line of a baseline.
pub(super) const HEADER_KIND: &str = "baseline_metadata";

/// Which command searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Tool {
    /// By words and meaning, to answer a question.
    Ask,
    /// By words and meaning.
    Query,
    /// By words.
    Search,
    /// By meaning.
    Vsearch,
}

impl Tool {
    /// The name in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Query => "query",
            Self::Search => "search",
            Self::Vsearch => "vsearch",
        }
    }
}

/// What a ranking depends on beside what was asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fingerprints {
    /// Of the documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corpus: Option<String>,
    /// Of the index: its format, chunks and settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<String>,
    /// Of the models, by the stage they ran in: `vector`, `rerank` …
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, String>,
    /// The version of the code that searched, and what its ranking sources hash to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What `corpus` stands for: the documents of each collection. Older rows lack this and all below.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub collections: BTreeMap<String, u64>,
    /// What `index` stands for: the rules for words and passages, and the model of the vectors.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rules: BTreeMap<String, String>,
    /// The names of `models`, by the same stages.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub model_names: BTreeMap<String, String>,
    /// The search settings that the ranking was left to. What a search was asked itself is beside its text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
}

impl Fingerprints {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// One search that was captured. The first 17 fields are the agreed keys.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Captured {
    /// The format's version, [`VERSION`].
    pub schema_version: u32,
    /// The number of the row where it was captured. Files that were put together may repeat it.
    pub id: Option<i64>,
    /// Which command searched.
    pub tool_name: Tool,
    /// The text as typed, personal data replaced.
    pub query: String,
    /// Docids, best first, each once.
    pub retrieved_slugs: Vec<String>,
    /// The best passage of each of `retrieved_slugs`, counted from 0 in its document. Empty unless it is known of every
    /// one: by words alone, documents are ranked whole.
    pub retrieved_chunk_ids: Vec<i64>,
    /// The collections of the hits, each once.
    pub source_ids: Vec<String>,
    /// Whether expansion was asked for.
    pub expand_enabled: Option<bool>,
    /// How much detail was asked for; this program has no such choice.
    pub detail: Option<String>,
    /// How much detail was given.
    pub detail_resolved: Option<String>,
    /// Whether meaning was searched.
    pub vector_enabled: Option<bool>,
    /// Whether the query was expanded.
    pub expansion_applied: Option<bool>,
    /// Milliseconds that the search took.
    #[serde(serialize_with = "whole_if_possible")]
    pub latency_ms: Option<f64>,
    /// Whether the caller was another machine.
    pub remote: Option<bool>,
    /// The job that called, if one did.
    pub job_id: Option<i64>,
    /// The sub-agent that called, if one did.
    pub subagent_id: Option<i64>,
    /// UTC, RFC 3339 with milliseconds.
    pub created_at: Option<String>,
    /// What was asked beside the text.
    #[serde(flatten)]
    pub asked: Asked,
    /// The stages that ran, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<String>,
    /// What the query was expanded to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expansion: Option<Expansion>,
    /// What the ranking depends on beside what was asked.
    #[serde(skip_serializing_if = "Fingerprints::is_empty")]
    pub fingerprints: Fingerprints,
    /// Keys of other programs. One of the names above must not be among them.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// What a search was asked beside its text; absent where the default was taken, or where it is not known.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Asked {
    /// How many hits were wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Only documents of this collection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collection: Option<String>,
    /// How much work the search was allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thoroughness: Option<Thoroughness>,
    /// How the lanes became one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fusion: Option<Fusion>,
    /// Whether the head of the list might be reranked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rerank: Option<bool>,
    /// Whether links were followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph: Option<bool>,
    /// Structured parts beside the text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<QueryMode>,
    /// The language of the text, if it was stated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lang: Option<String>,
}

/// 12 rather than 12.0: the key is an integer where the format comes from.
fn whole_if_possible<S: serde::Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) if value.fract() == 0.0 && value.abs() < 1e15 => serializer.serialize_i64(*value as i64),
        value => value.serialize(serializer),
    }
}

impl Captured {
    /// A row that knows what was searched for and what came back, and nothing else.
    pub fn new(tool_name: Tool, query: impl Into<String>, retrieved_slugs: Vec<String>) -> Self {
        Self {
            schema_version: VERSION,
            id: None,
            tool_name,
            query: query.into(),
            retrieved_slugs,
            retrieved_chunk_ids: Vec::new(),
            source_ids: Vec::new(),
            expand_enabled: None,
            detail: None,
            detail_resolved: None,
            vector_enabled: None,
            expansion_applied: None,
            latency_ms: None,
            remote: None,
            job_id: None,
            subagent_id: None,
            created_at: None,
            asked: Asked::default(),
            stages: Vec::new(),
            expansion: None,
            fingerprints: Fingerprints::default(),
            extra: Map::new(),
        }
    }

    /// The row that a JSON object holds. `schema_version`, `tool_name`, `query` and `retrieved_slugs` have to be
    /// there; any other key may be absent or null.
    ///
    /// Fails, naming the key, on a version other than [`VERSION`], a value of the wrong type, a negative latency, a
    /// document without a name or that stands twice, and a `created_at` that is no moment.
    pub fn from_object(mut object: Map<String, Value>) -> Result<Self> {
        check_version(&object)?;
        object.shift_remove("schema_version");
        let keys = &mut Keys(object);
        let row = Self {
            id: keys.take("id")?,
            retrieved_chunk_ids: keys.take("retrieved_chunk_ids")?.unwrap_or_default(),
            source_ids: keys.take("source_ids")?.unwrap_or_default(),
            expand_enabled: keys.take("expand_enabled")?,
            detail: keys.take("detail")?,
            detail_resolved: keys.take("detail_resolved")?,
            vector_enabled: keys.take("vector_enabled")?,
            expansion_applied: keys.take("expansion_applied")?,
            latency_ms: keys.take("latency_ms")?,
            remote: keys.take("remote")?,
            job_id: keys.take("job_id")?,
            subagent_id: keys.take("subagent_id")?,
            created_at: keys.take("created_at")?,
            asked: Asked {
                limit: keys.take("limit")?,
                collection: keys.take("collection")?,
                thoroughness: keys.take("thoroughness")?,
                fusion: keys.take("fusion")?,
                rerank: keys.take("rerank")?,
                graph: keys.take("graph")?,
                parts: keys.take("parts")?.unwrap_or_default(),
                lang: keys.take("lang")?,
            },
            stages: keys.take("stages")?.unwrap_or_default(),
            expansion: keys.take("expansion")?,
            fingerprints: keys.take("fingerprints")?.unwrap_or_default(),
            ..Self::new(keys.need("tool_name")?, keys.need::<String>("query")?, keys.need("retrieved_slugs")?)
        };
        if row.latency_ms.is_some_and(|latency| latency < 0.0) {
            return Err(Error::input("`latency_ms` is negative"));
        }
        if row.retrieved_slugs.iter().any(String::is_empty) {
            return Err(Error::input("`retrieved_slugs` has a document without a name"));
        }
        let mut seen = HashSet::new();
        if let Some(twice) = row.retrieved_slugs.iter().find(|slug| !seen.insert(slug.as_str())) {
            return Err(Error::input(format!("`retrieved_slugs` has `{twice}` twice"))
                .with_hint("keep the first: one document is one hit"));
        }
        if let Some(text) = row.created_at.as_deref().filter(|text| !is_moment(text)) {
            return Err(Error::input(format!("`created_at` is `{text}`, which is no moment"))
                .with_hint("write it as 2026-05-04T12:00:00.000Z"));
        }
        Ok(Self { extra: std::mem::take(&mut keys.0), ..row })
    }

    /// Writes the row as one line.
    pub fn write(&self, out: &mut impl Write) -> std::io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        out.write_all(b"\n")
    }

    /// The texts of the row that a person may have written, each with its key: where personal data could be.
    pub fn texts(&self) -> Vec<(&str, &str)> {
        fn strings<'a>(key: &'a str, value: &'a Value, found: &mut Vec<(&'a str, &'a str)>) {
            match value {
                Value::String(text) => found.push((key, text)),
                Value::Array(list) => list.iter().for_each(|value| strings(key, value, found)),
                Value::Object(map) => map.iter().for_each(|(name, value)| {
                    found.push((key, name));
                    strings(key, value, found);
                }),
                _ => {}
            }
        }
        let mut found = vec![("query", self.query.as_str())];
        found.extend(self.asked.parts.iter().map(|part| ("parts", part.text.as_str())));
        if let Some(expansion) = &self.expansion {
            let texts = expansion.lexical_queries.iter().chain(&expansion.vector_queries);
            let texts = texts.chain(&expansion.hyde).chain(&expansion.notes);
            found.extend(texts.map(|text| ("expansion", text.as_str())));
        }
        found.extend(self.retrieved_slugs.iter().map(|slug| ("retrieved_slugs", slug.as_str())));
        found.extend(self.source_ids.iter().map(|source| ("source_ids", source.as_str())));
        self.extra.iter().for_each(|(key, value)| {
            found.push((key, key));
            strings(key, value, &mut found);
        });
        found
    }
}

/// The keys of an object that nobody has taken yet.
struct Keys(Map<String, Value>);

impl Keys {
    /// The value of a key that may be absent or null.
    fn take<T: DeserializeOwned>(&mut self, key: &str) -> Result<Option<T>> {
        match self.0.shift_remove(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                serde_json::from_value(value).map(Some).map_err(|e| Error::input(format!("`{key}`: {e}")))
            }
        }
    }

    fn need<T: DeserializeOwned>(&mut self, key: &str) -> Result<T> {
        self.take(key)?.ok_or_else(|| Error::input(format!("`{key}` is missing")))
    }
}

/// Fails unless `schema_version` is [`VERSION`].
pub(super) fn check_version(object: &Map<String, Value>) -> Result<()> {
    let found = object.get("schema_version").unwrap_or(&Value::Null);
    let Some(number) = found.as_f64() else {
        return Err(Error::input(format!("`schema_version` is {}", ndjson::kind(found)))
            .with_hint(format!("this program writes and reads {VERSION}")));
    };
    if number == f64::from(VERSION) {
        return Ok(());
    }
    let what = format!("`schema_version` is {found}, this program reads {VERSION}");
    Err(if number > f64::from(VERSION) {
        Error::new(ErrorKind::Version, what)
            .with_hint("update rankgate, or export the file anew with this version")
    } else {
        Error::input(what)
    })
}

/// Reads the rows of a file one at a time, in its order, each with the number of its line. The header of a baseline
/// is passed over.
///
/// Fails when the file cannot be opened; yields an error, naming file, line and key, for each line that is no row,
/// and goes on after it.
pub fn read(path: &Path) -> Result<impl Iterator<Item = Result<(u64, Captured)>>> {
    Ok(rows(Lines::open(path)?, path.display().to_string()))
}

/// The same from any reader; `name` stands for the file in errors.
///
/// ```
/// let file = r#"{"schema_version":1,"tool_name":"query","query":"who is alice","retrieved_slugs":["people/alice"]}"#;
/// let (line, row) = rankgate::record::captured::parse("hand.ndjson", file.as_bytes()).next().expect("has a row")?;
/// assert_eq!((line, row.query.as_str()), (1, "who is alice"));
/// # Ok::<(), rankgate::Error>(())
/// ```
pub fn parse(name: &str, reader: impl BufRead) -> impl Iterator<Item = Result<(u64, Captured)>> {
    rows(Lines::new(reader, name), name.to_string())
}

fn rows<R: BufRead>(lines: Lines<R>, name: String) -> impl Iterator<Item = Result<(u64, Captured)>> {
    lines.filter(|line| !line.as_ref().is_ok_and(|line| is_header(&line.object))).map(move |line| {
        let line = line?;
        let row =
            Captured::from_object(line.object).map_err(|e| e.context(format!("{name}:{}", line.number)))?;
        Ok((line.number, row))
    })
}

/// Whether an object is the first line of a baseline.
pub(super) fn is_header(object: &Map<String, Value>) -> bool {
    object.get("_kind").and_then(Value::as_str) == Some(HEADER_KIND)
}

#[cfg(test)]
mod tests;
