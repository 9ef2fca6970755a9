//! Queries with a known answer: the JSON file that the correctness gate reads.
//!
//! ```json
//! {"schema_version": 1, "queries": [
//!   {"query_id": "q1", "query": "fintech founder", "relevant_slugs": ["people/alice-example"],
//!    "first_relevant_slug": "people/alice-example"},
//!   {"query_id": "q2", "query": "seed round", "relevant": [{"source_id": "team-a", "slug": "deals/widget-co-example"}],
//!    "expected_top1": {"source_id": "team-a", "slug": "deals/widget-co-example"}}
//! ]}
//! ```
//!
//! Slugs alone are of the source `default`. Documents that were judged and are not relevant can be listed under
//! `judged_slugs` or `judged`; with them, it shows when too few of the documents found were ever looked at.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::corpus::{Hit, Query};
use crate::error::{Error, ErrorKind, Result};
use crate::record::json;

/// The source of a slug that names none.
pub const DEFAULT_SOURCE: &str = "default";

/// A document of a source; written `source::slug`. Two are equal only when both parts are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SourceSlug {
    /// The source: a collection.
    pub source_id: String,
    /// The document in it.
    pub slug: String,
}

impl SourceSlug {
    /// A document of a source.
    pub fn new(source_id: impl Into<String>, slug: impl Into<String>) -> Self {
        Self { source_id: source_id.into(), slug: slug.into() }
    }

    /// What people call it: the slug, after the source where there are `several`.
    pub fn name(&self, several: bool) -> String {
        if several { self.to_string() } else { self.slug.clone() }
    }
}

impl fmt::Display for SourceSlug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.source_id, self.slug)
    }
}

impl From<&Hit> for SourceSlug {
    /// A hit that names no collection is of the source `default`.
    fn from(hit: &Hit) -> Self {
        let source = if hit.collection.is_empty() { DEFAULT_SOURCE } else { &hit.collection };
        Self::new(source, hit.docid.as_str())
    }
}

/// A query with its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownQuery {
    /// Unique in the file.
    pub id: String,
    /// What is searched for.
    pub query: String,
    /// The relevant documents; at least one.
    pub relevant: BTreeSet<SourceSlug>,
    /// The document that has to come first; need not be among the relevant ones.
    pub expected_top1: Option<SourceSlug>,
    /// All documents that were judged, the relevant ones included; `None` when the file does not say.
    pub judged: Option<BTreeSet<SourceSlug>>,
    /// Grades, where they were given.
    pub grades: BTreeMap<SourceSlug, i64>,
    /// The whole query, where a file states more of it than its text.
    pub stated: Option<Query>,
    /// A name for people.
    pub label: Option<String>,
    /// The axis of the query's vector, for corpora with made-up vectors.
    pub embedding_dim: Option<usize>,
}

impl KnownQuery {
    /// A query and its relevant documents, nothing else known.
    pub fn new(id: impl Into<String>, query: impl Into<String>, relevant: BTreeSet<SourceSlug>) -> Self {
        Self {
            id: id.into(),
            query: query.into(),
            relevant,
            expected_top1: None,
            judged: None,
            grades: BTreeMap::new(),
            stated: None,
            label: None,
            embedding_dim: None,
        }
    }

    /// The grade of a document: the one given, else 1 for a relevant one and 0 for any other.
    pub fn grade(&self, document: &SourceSlug) -> i64 {
        let relevant = || i64::from(self.relevant.contains(document));
        self.grades.get(document).copied().unwrap_or_else(relevant)
    }

    /// The share of the documents among the first `k` that somebody judged, a repeated one counted once; `None` when
    /// the file does not say who was judged, or nothing was found.
    ///
    /// Unlike `metrics::judged_at`, empty places do not count as judged: they say nothing of those that are filled.
    pub fn judged_share(&self, retrieved: &[SourceSlug], k: usize) -> Option<f64> {
        let judged = self.judged.as_ref()?;
        let mut seen = HashSet::new();
        let first = retrieved.iter().filter(|key| seen.insert(*key)).take(k);
        let (known, all) =
            first.fold((0u32, 0u32), |(known, all), key| (known + u32::from(judged.contains(key)), all + 1));
        (all > 0).then(|| f64::from(known) / f64::from(all))
    }
}

/// The queries of a file, in its order, and what the file says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownQueries {
    /// The file's `_description`.
    pub description: Option<String>,
    /// At least one.
    pub queries: Vec<KnownQuery>,
    /// How many queries of the file have no relevant document and can say nothing.
    pub left_out: usize,
}

impl KnownQueries {
    /// What a reader should know: queries that are not counted.
    pub fn note(&self) -> Option<String> {
        (self.left_out > 0)
            .then(|| format!("{} queries have no relevant document and are not counted", self.left_out))
    }
}

/// Reads the JSON text of a file.
///
/// Fails, naming the entry by place and id, on what is no such file, a version other than 1, no queries, an id given
/// twice, a blank query, no relevant document, an empty name, an `expected_top1` that is null, and on a
/// `first_relevant_slug` that several sources have.
pub fn parse(text: &str) -> Result<KnownQueries> {
    let value = json::from_str(text.trim_start_matches('\u{feff}'))
        .map_err(|e| Error::input(format!("not JSON: {e}")))?;
    let Value::Object(mut file) = value else {
        return Err(
            Error::input("not an object").with_hint("write {\"schema_version\": 1, \"queries\": [...]}")
        );
    };
    let version = file.remove("schema_version").unwrap_or(Value::Null);
    match version.as_f64() {
        Some(1.0) => {}
        Some(number) if number > 1.0 => {
            let what = format!("`schema_version` is {version}, this program reads 1");
            return Err(Error::new(ErrorKind::Version, what).with_hint("update rankgate"));
        }
        _ => return Err(Error::input(format!("`schema_version` is {version}, not 1"))),
    }
    let description = take(&mut file, "_description")?;
    let entries: Vec<Value> = take(&mut file, "queries")?.unwrap_or_default();
    if entries.is_empty() {
        return Err(Error::input("there are no `queries`"));
    }
    let mut seen = HashSet::new();
    let queries = entries.into_iter().enumerate().map(|(index, entry)| {
        let Value::Object(mut entry) = entry else {
            return Err(Error::input(format!("queries[{index}]: not an object")));
        };
        let id = take(&mut entry, "query_id").map_err(|e| e.context(format!("queries[{index}]")))?;
        let id: String = id.unwrap_or_else(|| format!("entry-{index}"));
        let place = format!("queries[{index}] `{id}`");
        if !seen.insert(id.clone()) {
            return Err(Error::input(format!("{place}: the id occurs twice")));
        }
        known(id, entry).map_err(|e| e.context(place))
    });
    Ok(KnownQueries { description, queries: queries.collect::<Result<_>>()?, left_out: 0 })
}

fn known(id: String, mut entry: Map<String, Value>) -> Result<KnownQuery> {
    let query: String = take(&mut entry, "query")?.unwrap_or_default();
    if query.trim().is_empty() {
        return Err(Error::input("`query` has no text"));
    }
    let relevant = documents(&mut entry, "relevant", "relevant_slugs")?.unwrap_or_default();
    if relevant.is_empty() {
        return Err(Error::input("no document is relevant")
            .with_hint("list them under `relevant_slugs` or `relevant`"));
    }
    let expected_top1 = expected(&mut entry, &relevant)?;
    let judged = documents(&mut entry, "judged", "judged_slugs")?.map(|mut judged| {
        judged.extend(relevant.iter().cloned());
        judged
    });
    Ok(KnownQuery {
        expected_top1,
        judged,
        label: take(&mut entry, "label")?,
        embedding_dim: take(&mut entry, "embedding_dim")?,
        ..KnownQuery::new(id, query, relevant)
    })
}

/// Documents with their sources, or else slugs of the default source.
fn documents(
    entry: &mut Map<String, Value>,
    full: &str,
    short: &str,
) -> Result<Option<BTreeSet<SourceSlug>>> {
    let listed: Option<BTreeSet<SourceSlug>> = take(entry, full)?;
    let slugs: Option<Vec<String>> = take(entry, short)?;
    let found = listed
        .or_else(|| Some(slugs?.into_iter().map(|slug| SourceSlug::new(DEFAULT_SOURCE, slug)).collect()));
    match found.iter().flatten().find(|document| document.slug.is_empty() || document.source_id.is_empty()) {
        Some(document) => Err(Error::input(format!("a document has an empty name: `{document}`"))),
        None => Ok(found),
    }
}

fn expected(entry: &mut Map<String, Value>, relevant: &BTreeSet<SourceSlug>) -> Result<Option<SourceSlug>> {
    if entry.get("expected_top1") == Some(&Value::Null) {
        return Err(Error::input("`expected_top1` is null").with_hint("leave it out"));
    }
    if let Some(document) = take(entry, "expected_top1")? {
        return Ok(Some(document));
    }
    let Some(slug) = take::<String>(entry, "first_relevant_slug")? else {
        return Ok(None);
    };
    // Beside documents with sources the slug means the one that has it.
    let mut sources = relevant.iter().filter(|document| document.slug == slug);
    match (sources.next(), sources.next()) {
        (Some(document), None) => Ok(Some(document.clone())),
        (None, _) => Ok(Some(SourceSlug::new(DEFAULT_SOURCE, slug))),
        (Some(_), Some(_)) => {
            Err(Error::input(format!("`first_relevant_slug`: several sources have `{slug}`"))
                .with_hint("name the source with `expected_top1`"))
        }
    }
}

/// The value of a key that may be absent or null.
fn take<T: DeserializeOwned>(object: &mut Map<String, Value>, key: &str) -> Result<Option<T>> {
    match object.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            serde_json::from_value(value).map(Some).map_err(|e| Error::input(format!("`{key}`: {e}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn one(entry: &str) -> Result<KnownQuery> {
        Ok(parse(&format!(r#"{{"schema_version":1,"queries":[{entry}]}}"#))?.queries.remove(0))
    }

    #[test]
    fn both_shapes_are_read() {
        let short = one(r#"{"query_id":"q1","query":"x","relevant_slugs":["a","b","a"],"first_relevant_slug":"b","embedding_dim":3,"note":1}"#)
            .expect("is a query");
        assert_eq!(short.relevant.len(), 2);
        assert_eq!(short.expected_top1, Some(SourceSlug::new("default", "b")));
        assert_eq!((short.embedding_dim, short.judged), (Some(3), None));
        let full = one(r#"{"query":"x","relevant":[{"source_id":"s","slug":"a"}],"relevant_slugs":["z"],"expected_top1":{"source_id":"t","slug":"c"},"judged_slugs":["d"]}"#)
            .expect("is a query");
        assert_eq!((full.id.as_str(), full.relevant.len()), ("entry-0", 1), "documents with sources win");
        assert_eq!(full.expected_top1, Some(SourceSlug::new("t", "c")), "need not be relevant");
        assert_eq!(full.judged.expect("is stated").len(), 2);
    }

    #[test]
    fn a_slug_beside_sources_means_the_source_that_has_it() {
        let entry = |relevant: &str| {
            one(&format!(r#"{{"query":"x","first_relevant_slug":"a","relevant":[{relevant}]}}"#))
        };
        let found = entry(r#"{"source_id":"team","slug":"a"}"#).expect("is clear");
        assert_eq!(found.expected_top1, Some(SourceSlug::new("team", "a")));
        let error =
            entry(r#"{"source_id":"s","slug":"a"},{"source_id":"t","slug":"a"}"#).expect_err("is not");
        assert!(error.to_string().contains("several sources have `a`"), "{error}");
    }

    #[test]
    fn source_and_slug_are_compared_apart() {
        let (first, second) = (SourceSlug::new("a::b", "c"), SourceSlug::new("a", "b::c"));
        assert!(first != second && first.to_string() == second.to_string());
        assert_eq!(SourceSlug::from(&Hit::new("d", 1.0)), SourceSlug::new("default", "d"));
    }

    #[test]
    fn errors_name_the_entry() {
        for (file, wanted) in [
            ("[]", "not an object"),
            ("{", "not JSON"),
            (r#"{"queries":[]}"#, "`schema_version` is null, not 1"),
            (r#"{"schema_version":2,"queries":[]}"#, "`schema_version` is 2, this program reads 1 (update"),
            (r#"{"schema_version":1}"#, "there are no `queries`"),
            (r#"{"schema_version":1,"queries":{}}"#, "`queries`: invalid type"),
            (r#"{"schema_version":1,"queries":[7]}"#, "queries[0]: not an object"),
        ] {
            let error = parse(file).expect_err(file).to_string();
            assert!(error.starts_with(wanted), "{error}");
        }
        for (entry, wanted) in [
            (r#"{"query_id":7}"#, "queries[0]: `query_id`: invalid type"),
            (r#"{"query_id":"q","query":" \u00a0"}"#, "queries[0] `q`: `query` has no text"),
            (r#"{"query":"x","relevant_slugs":[]}"#, "queries[0] `entry-0`: no document is relevant"),
            (r#"{"query":"x","relevant":[]}"#, "queries[0] `entry-0`: no document is relevant"),
            (r#"{"query":"x","relevant_slugs":[""]}"#, "queries[0] `entry-0`: a document has an empty name"),
            (
                r#"{"query":"x","relevant":[{"slug":"a"}]}"#,
                "queries[0] `entry-0`: `relevant`: missing field `source_id`",
            ),
            (
                r#"{"query":"x","relevant_slugs":["a"],"expected_top1":null}"#,
                "queries[0] `entry-0`: `expected_top1` is null",
            ),
            (
                r#"{"query":"x","relevant_slugs":["a"]},{"query_id":"entry-0"}"#,
                "queries[1] `entry-0`: the id occurs twice",
            ),
        ] {
            let error = one(entry).expect_err(entry).to_string();
            assert!(error.starts_with(wanted), "{error}");
        }
    }

    fn nearly_a_file() -> impl Strategy<Value = String> {
        let value = prop_oneof![
            Just("null"),
            Just("1"),
            Just("-1.5"),
            Just("\"\""),
            Just("\"a\""),
            Just("[]"),
            Just("[\"a\"]"),
            Just("[\"a\",\"b\"]"),
            Just("{}"),
            Just("{\"source_id\":\"s\",\"slug\":\"a\"}"),
            Just("[{\"source_id\":\"s\",\"slug\":\"a\"}]"),
            Just("[{}]"),
        ];
        let key = proptest::sample::select(vec![
            "query_id",
            "query",
            "relevant",
            "relevant_slugs",
            "expected_top1",
            "first_relevant_slug",
            "judged",
            "judged_slugs",
            "label",
            "embedding_dim",
            "x",
        ]);
        let entry = proptest::collection::vec((key, value), 0..5).prop_map(|changes| {
            let changes: String = changes.iter().map(|(key, value)| format!(",\"{key}\":{value}")).collect();
            format!("{{\"query\":\"x\",\"relevant_slugs\":[\"a\"]{changes}}}")
        });
        proptest::collection::vec(entry, 0..3)
            .prop_map(|entries| format!("{{\"schema_version\":1,\"queries\":[{}]}}", entries.join(",")))
    }

    proptest! {
        // The number of cases is part of the promise, whatever PROPTEST_CASES says.
        #![proptest_config(ProptestConfig { cases: 50_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_read_can_be_used(file in nearly_a_file()) {
            if let Ok(found) = parse(&file) {
                let ids: HashSet<_> = found.queries.iter().map(|query| &query.id).collect();
                prop_assert!(!ids.is_empty() && ids.len() == found.queries.len());
                prop_assert!(found.queries.iter().all(|query| !query.relevant.is_empty() && !query.query.is_empty()));
            }
        }

        #[test]
        fn no_text_makes_the_reader_panic(
            text in "(\\{\"schema_version\":1,|\"queries\":\\[|\\{|\\}|\\]|,|\"query\":|\"a\"|null|\u{feff}|1e999|\\\\u|.){0,12}",
        ) {
            let _ = parse(&text);
        }
    }
}
