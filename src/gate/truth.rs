//! Known queries from any file that states them, and the collections that their documents are in.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io::Read;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::qrels::{self, DEFAULT_SOURCE, KnownQueries, KnownQuery, SourceSlug};
use crate::corpus::queries::most_alike;
use crate::corpus::{self, JudgedQuery, Query, open_file, queries, trec};
use crate::error::{Error, Result};
use crate::record::{FileKind, json};

/// Reads known queries: the JSON of [`qrels`], a `queries.json`, a folder with either that or BEIR's files, a list of
/// `{"query", "relevant": [slug…], "grades"?: {slug: grade}}`, or TREC judgments together with `queries`, a file of
/// the texts (`id`, tab, text in each line, or BEIR's JSON lines).
///
/// Documents of files that name no sources are of the query's collection, else of `default`. TREC and BEIR state
/// which documents were judged, and so does a `queries.json`. Queries without a relevant document are left out.
///
/// Fails, naming the file and what is wrong in it, on anything else, and where no query has a relevant document.
///
/// ```no_run
/// # use std::path::Path;
/// let known = rankgate::gate::truth::read(Path::new("qrels.txt"), Some(Path::new("topics.tsv")))?;
/// # Ok::<(), rankgate::Error>(())
/// ```
pub fn read(path: &Path, queries: Option<&Path>) -> Result<KnownQueries> {
    if let Some(queries) = queries {
        return trec_queries(path, queries);
    }
    if path.is_dir() {
        return judged(path, corpus::judged_queries(path)?);
    }
    let mut bytes = Vec::new();
    let read = open_file(path, "queries")?.read_to_end(&mut bytes);
    read.map_err(|e| Error::io("read the queries", path, e))?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Error::input("not UTF-8").with_hint("save the file as UTF-8 text"))
        .map_err(|e| e.context(path.display()))?;
    parse(&text).map_err(|e| e.context(path.display()))
}

fn parse(text: &str) -> Result<KnownQueries> {
    if let Some(kind) = FileKind::of(text).filter(|kind| *kind != FileKind::Known) {
        let (what, hint) = kind.words();
        return Err(Error::usage(format!("no queries with a known answer: {what}")).with_hint(hint));
    }
    let start = text.trim_start_matches('\u{feff}').trim_start();
    if !start.starts_with(['{', '[']) {
        return Err(Error::usage("neither a JSON object nor a list").with_hint(
            "judgments in TREC's form need the texts of their queries: name them with --queries",
        ));
    }
    let value = json::from_str(start).map_err(|e| Error::input(format!("not JSON: {e}")))?;
    match &value {
        Value::Object(file) if file.contains_key("schema_version") || !file.contains_key("queries") => {
            qrels::parse(start)
        }
        Value::Object(file) => plain(&file["queries"]),
        Value::Array(list) if list.first().is_some_and(|entry| entry.get("relevant").is_some()) => {
            plain(&value)
        }
        _ => known_queries(queries::parse(start)?),
    }
}

/// An entry of the list that names relevant documents, and grades if it has them.
#[derive(Deserialize)]
struct Entry {
    id: Option<String>,
    query: String,
    relevant: Vec<String>,
    #[serde(default)]
    grades: BTreeMap<String, i64>,
}

fn plain(list: &Value) -> Result<KnownQueries> {
    let list = list.as_array().filter(|list| !list.is_empty());
    let list = list.ok_or_else(|| Error::input("there are no `queries`"))?;
    let mut seen = HashSet::new();
    let queries = list.iter().enumerate().map(|(index, entry)| {
        let entry = Entry::deserialize(entry).map_err(|e| Error::input(format!("queries[{index}]: {e}")))?;
        let id = entry.id.unwrap_or_else(|| format!("entry-{index}"));
        let place = format!("queries[{index}] `{id}`");
        if !seen.insert(id.clone()) {
            return Err(Error::input(format!("{place}: the id occurs twice")));
        }
        if entry.query.trim().is_empty() {
            return Err(Error::input(format!("{place}: `query` has no text")));
        }
        let relevant: BTreeSet<SourceSlug> =
            entry.relevant.into_iter().map(|slug| SourceSlug::new(DEFAULT_SOURCE, slug)).collect();
        if relevant.is_empty() {
            return Err(Error::input(format!("{place}: no document is relevant")));
        }
        let grades = entry.grades.into_iter();
        let grades = grades.map(|(slug, grade)| (SourceSlug::new(DEFAULT_SOURCE, slug), grade)).collect();
        Ok(KnownQuery { grades, ..KnownQuery::new(id, entry.query, relevant) })
    });
    Ok(KnownQueries { description: None, queries: queries.collect::<Result<_>>()?, left_out: 0 })
}

fn trec_queries(path: &Path, queries: &Path) -> Result<KnownQueries> {
    let mut qrels = trec::read_qrels(path)?;
    let texts = corpus::beir::query_texts(queries)?;
    // A query that nobody judged has no relevant document.
    let cases: Vec<JudgedQuery> = texts
        .into_iter()
        .map(|query| JudgedQuery { judgments: qrels.remove(&query.id).unwrap_or_default(), query })
        .collect();
    if let Some(id) = qrels.keys().next() {
        let what = format!("{}: query `{id}` is judged, but is not in {}", path.display(), queries.display());
        return Err(Error::input(what).with_hint("take both files from the same release of the collection"));
    }
    judged(path, cases)
}

fn judged(path: &Path, cases: Vec<JudgedQuery>) -> Result<KnownQueries> {
    known_queries(cases).map_err(|e| e.context(path.display()))
}

fn known_queries(cases: Vec<JudgedQuery>) -> Result<KnownQueries> {
    let all = cases.len();
    let queries: Vec<KnownQuery> = cases.into_iter().filter_map(known).collect();
    if queries.is_empty() {
        return Err(Error::input(format!("none of {all} queries has a relevant document")));
    }
    Ok(KnownQueries { description: None, left_out: all - queries.len(), queries })
}

/// A judged query as a known one; `None` when nothing is relevant.
fn known(case: JudgedQuery) -> Option<KnownQuery> {
    let source = case.query.collection.as_deref().unwrap_or(DEFAULT_SOURCE);
    let key = |docid: &String| SourceSlug::new(source, docid.as_str());
    // Below zero: in the pool, and nobody judged it.
    let judged = case.judgments.iter().filter(|(_, grade)| **grade >= 0);
    let grades: BTreeMap<SourceSlug, i64> = judged.map(|(docid, grade)| (key(docid), *grade)).collect();
    let relevant: BTreeSet<SourceSlug> =
        grades.iter().filter(|(_, grade)| **grade > 0).map(|(key, _)| key.clone()).collect();
    let judged = Some(grades.keys().cloned().collect());
    let Query { id, text, .. } = case.query.clone();
    let known =
        KnownQuery { judged, grades, stated: Some(case.query), ..KnownQuery::new(id, text, relevant) };
    (!known.relevant.is_empty()).then_some(known)
}

impl KnownQueries {
    /// Fits the sources to the collections of an index: `default` means the only collection where there is one, and
    /// a slug without a source that begins with a collection's name and `::` is of that collection.
    ///
    /// Fails on a source that is no collection, naming the query: its documents could never be found.
    pub fn fit(&mut self, collections: &[String]) -> Result<()> {
        let only = match collections {
            [only] if only != DEFAULT_SOURCE => Some(only.as_str()),
            _ => None,
        };
        let fit = |key: &SourceSlug| {
            if key.source_id != DEFAULT_SOURCE {
                return key.clone();
            }
            let named = key.slug.split_once("::").filter(|(name, _)| collections.iter().any(|c| c == name));
            match (named, only) {
                (Some((name, slug)), _) if !slug.is_empty() => SourceSlug::new(name, slug),
                (_, Some(only)) => SourceSlug::new(only, key.slug.as_str()),
                _ => key.clone(),
            }
        };
        for query in &mut self.queries {
            query.relevant = query.relevant.iter().map(fit).collect();
            query.expected_top1 = query.expected_top1.as_ref().map(fit);
            query.judged = query.judged.as_ref().map(|judged| judged.iter().map(fit).collect());
            query.grades = query.grades.iter().map(|(key, grade)| (fit(key), *grade)).collect();
            let mut named = query.relevant.iter().chain(&query.expected_top1);
            if let Some(unknown) = named.find(|key| !collections.contains(&key.source_id)) {
                let what = format!(
                    "query `{}` names `{unknown}`, and the index has no collection `{}`",
                    query.id, unknown.source_id
                );
                return Err(Error::input(what).with_hint(match collections {
                    [] => "the index is empty: put documents in with `rankgate index`".to_string(),
                    known => format!(
                        "name the source, one of {}: `source_id` in JSON, `{}::docid` in TREC judgments",
                        known.join(", "),
                        known[0]
                    ),
                }));
            }
        }
        Ok(())
    }

    /// Checks that the documents which the queries name are in the index: `documents` are all of it, by collection.
    ///
    /// Returns a note on those that are not, if there are any: they can never be found. Fails where none is there.
    pub fn check_documents(&self, documents: &HashMap<String, HashSet<String>>) -> Result<Option<String>> {
        let mut named: BTreeSet<&SourceSlug> = BTreeSet::new();
        for query in &self.queries {
            named.extend(query.relevant.iter().chain(&query.expected_top1));
            named.extend(query.judged.iter().flatten());
        }
        let there =
            |key: &&SourceSlug| documents.get(&key.source_id).is_some_and(|ids| ids.contains(&key.slug));
        let all = named.len();
        let absent: Vec<&SourceSlug> = named.into_iter().filter(|key| !there(key)).collect();
        if absent.is_empty() {
            return Ok(None);
        }
        let several = documents.len() > 1;
        let mut shown: Vec<String> =
            absent.iter().take(SHOWN).map(|key| describe(key, documents, several)).collect();
        if absent.len() > SHOWN {
            shown.push(format!("{} more", absent.len() - SHOWN));
        }
        let what =
            format!("{} of {all} judged documents are not in the index: {}", absent.len(), shown.join(", "));
        if absent.len() == all {
            return Err(Error::input(what)
                .with_hint("take the file that belongs to this index, or index the documents"));
        }
        Ok(Some(what))
    }
}

/// Documents that a message names.
const SHOWN: usize = 5;

/// A document that is not there, and the one that may be meant.
fn describe(key: &SourceSlug, documents: &HashMap<String, HashSet<String>>, several: bool) -> String {
    let near =
        documents.get(&key.source_id).and_then(|ids| most_alike(&key.slug, ids.iter().map(String::as_str)));
    let near = near.map(|slug| {
        let meant = SourceSlug::new(key.source_id.as_str(), slug).name(several);
        format!(" (did you mean `{meant}`?)")
    });
    format!("`{}`{}", key.name(several), near.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(json: &str) -> Result<KnownQueries> {
        parse(json)
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = read(Path::new("no-such.json"), None).expect_err("is not there");
        assert_eq!(error.kind(), crate::ErrorKind::NotFound);
        assert!(error.to_string().contains("no-such.json"), "{error}");
    }

    #[test]
    fn every_shape_says_the_same() {
        let key = SourceSlug::new(DEFAULT_SOURCE, "a");
        let shapes = [
            r#"{"schema_version":1,"queries":[{"query_id":"q","query":"x","relevant_slugs":["a"]}]}"#,
            r#"{"queries":[{"id":"q","query":"x","relevant":["a"]}]}"#,
            r#"[{"id":"q","query":"x","relevant":["a"],"grades":{"a":3}}]"#,
            r#"[{"id":"q","query":"x","judgments":[{"docid":"a","relevance":3},{"docid":"b","relevance":0}]}]"#,
        ];
        for shape in shapes {
            let known = text(shape).expect("is read").queries.remove(0);
            assert_eq!((known.id.as_str(), known.query.as_str()), ("q", "x"), "{shape}");
            assert_eq!(known.relevant, [key.clone()].into(), "{shape}");
        }
        assert_eq!(text(shapes[2]).expect("is read").queries[0].grade(&key), 3);
        let judged = text(shapes[3]).expect("is read").queries.remove(0);
        assert_eq!((judged.grade(&key), judged.judged.expect("is stated").len()), (3, 2));
    }

    #[test]
    fn trec_judgments_take_their_texts_from_beside() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).expect("writes");
            path
        };
        let qrels = write("qrels.txt", "q1 0 a 2\nq1 0 b 0\nq1 0 c -1\nq2 0 a 0\n");
        let tabs = write("topics.tsv", "q1\tapple pie\nq2\tpears\n");
        let lines = write(
            "queries.jsonl",
            "{\"_id\":\"q1\",\"text\":\"apple pie\"}\n{\"_id\":\"q2\",\"text\":\"pears\"}\n",
        );
        for texts in [&tabs, &lines] {
            let known = read(&qrels, Some(texts)).expect("is read").queries;
            assert_eq!((known.len(), known[0].query.as_str()), (1, "apple pie"), "q2 has nothing relevant");
            assert_eq!(known[0].judged.as_ref().expect("is stated").len(), 2, "c was in the pool only");
        }
        let alone = read(&qrels, None).expect_err("has no texts").to_string();
        assert!(alone.contains("qrels.txt: neither") && alone.contains("--queries"), "{alone}");
        let short = write("short.tsv", "q1\tapple pie\n");
        let error = read(&qrels, Some(&short)).expect_err("lacks q2").to_string();
        assert!(error.contains("query `q2` is judged, but is not in"), "{error}");
        let blank = write("blank.tsv", "q1\t \n");
        let error = read(&qrels, Some(&blank)).expect_err("has no text").to_string();
        assert!(error.contains("blank.tsv:1: query `q1` has no text"), "{error}");
        let odd = write("odd.tsv", "q1 apple\n");
        let error = read(&qrels, Some(&odd)).expect_err("has no tab").to_string();
        assert!(error.contains("odd.tsv:1: no tab between id and text"), "{error}");
    }

    #[test]
    fn a_slug_alone_means_the_only_collection_and_never_a_guess() {
        let of = || text(r#"[{"id":"q","query":"x","relevant":["a"]}]"#).expect("is read");
        let mut one = of();
        one.fit(&["docs".into()]).expect("fits");
        assert_eq!(one.queries[0].relevant, [SourceSlug::new("docs", "a")].into());
        let error = of().fit(&["docs".into(), "wiki".into()]).expect_err("is a guess").to_string();
        assert_eq!(
            error,
            "query `q` names `default::a`, and the index has no collection `default` (name the source, one of docs, wiki: \
             `source_id` in JSON, `docs::docid` in TREC judgments)"
        );
        let mut named = of();
        named.fit(&["default".into(), "wiki".into()]).expect("fits");
        assert_eq!(named, of());
        of().fit(&[]).expect_err("nothing could be found");
    }

    #[test]
    fn errors_name_the_entry() {
        for (json, wanted) in [
            ("[]", "no queries"),
            (r#"{"queries":[]}"#, "there are no `queries`"),
            (r#"[{"query":"x","relevant":[]}]"#, "queries[0] `entry-0`: no document is relevant"),
            (r#"[{"query":" ","relevant":["a"]}]"#, "queries[0] `entry-0`: `query` has no text"),
            (r#"[{"query":"x","relevant":["a"]},{"relevant":["a"]}]"#, "queries[1]: missing field `query`"),
            (
                r#"[{"id":"q","query":"x","relevant":["a"]},{"id":"q","query":"y","relevant":["a"]}]"#,
                "occurs twice",
            ),
            (r#"{"schema_version":2,"queries":[]}"#, "this program reads 1"),
            ("[", "not JSON"),
        ] {
            let error = text(json).expect_err(json).to_string();
            assert!(error.contains(wanted), "{json}: {error}");
        }
    }
    proptest! {
        // The number of cases is part of the promise, whatever PROPTEST_CASES says.
        #![proptest_config(ProptestConfig { cases: 100_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_text_makes_the_reader_panic(
            text in "(\\[|\\{|\\}|\\]|,|:|\"id\":\"q\"|\"query\":\"x\"|\"relevant\":|\"judgments\":|\"grades\":|\"queries\":|\
                     \"docid\":\"a\"|\"relevance\":-?[0-9]|\"a\"|null|1e999|\u{feff}){0,14}",
        ) {
            if let Ok(found) = parse(&text) {
                prop_assert!(found.queries.iter().all(|query| !query.relevant.is_empty()));
            }
        }
    }
}
