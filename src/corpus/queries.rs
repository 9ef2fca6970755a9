//! Reads `queries.json`: an array of judged queries, written by hand and kept beside the evals.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use serde::Deserialize;

use super::{JudgedQuery, Judgments, Mode, Query, QueryMode};
use crate::error::{Error, Result};

/// How alike two docids must be, from 0 to 1, before one is proposed for the other.
const ALIKE: f64 = 0.6;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Entry {
    id: String,
    query: String,
    #[serde(alias = "lang")]
    language: Option<String>,
    category: Option<String>,
    collection: Option<String>,
    #[serde(default)]
    judgments: Vec<Judgment>,
    #[serde(default)]
    relevant_docs: Vec<String>,
    #[serde(default)]
    query_modes: Vec<QueryMode>,
    /// Why the case is there: for the reader of the file.
    #[serde(rename = "note")]
    _note: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Judgment {
    docid: String,
    relevance: i64,
}

/// Reads a file of judged queries, in its order.
///
/// Each entry has `id`, `query`, `judgments` (`docid`, `relevance` ≥ 0) and may have `language`, `category`,
/// `collection`, `relevantDocs` (docids; grade 1 where `judgments` does not grade them), `queryModes` and `note`.
/// Fails, naming file and query, on an empty file, an unknown key, an id or a docid given twice, an empty query,
/// a negative grade, more than one `hyde` and a query without any judgment.
pub fn read(path: &Path) -> Result<Vec<JudgedQuery>> {
    let text = std::fs::read_to_string(path).map_err(|e| Error::io("read the queries", path, e))?;
    parse(&text).map_err(|e| e.context(path.display()))
}

/// Reads judged queries from JSON; errors are those of [`read`] without the file's name.
///
/// ```
/// let cases = rankgate::corpus::queries::parse(
///     r#"[{"id": "q1", "query": "how to deploy", "judgments": [{"docid": "en/deploy.md", "relevance": 2}]}]"#,
/// )?;
/// assert_eq!(cases[0].judgments["en/deploy.md"], 2);
/// # Ok::<(), rankgate::Error>(())
/// ```
pub fn parse(json: &str) -> Result<Vec<JudgedQuery>> {
    let json = json.trim_start_matches('\u{feff}');
    let entries: Vec<Entry> = serde_json::from_str(json).map_err(|e| Error::input(e.to_string()))?;
    if entries.is_empty() {
        return Err(Error::input("there are no queries in it"));
    }
    let mut seen = HashSet::new();
    entries
        .into_iter()
        .map(|entry| {
            if !seen.insert(entry.id.clone()) {
                return Err(Error::input(format!("query `{}` occurs twice", entry.id))
                    .with_hint("every id may occur once"));
            }
            let name = format!("query `{}`", entry.id);
            judged(entry).map_err(|e| e.context(name))
        })
        .collect()
}

fn judged(entry: Entry) -> Result<JudgedQuery> {
    if entry.id.trim().is_empty() || entry.query.trim().is_empty() {
        return Err(Error::input("`id` and `query` must have text"));
    }
    if entry.query_modes.iter().filter(|part| part.mode == Mode::Hyde).count() > 1 {
        return Err(Error::input("`queryModes` has more than one `hyde`"));
    }
    let mut judgments = Judgments::new();
    for Judgment { docid, relevance } in entry.judgments {
        if relevance < 0 {
            return Err(Error::input(format!("docid `{docid}` has the grade {relevance}"))
                .with_hint("grades are 0 for not relevant, 1 and up for relevant"));
        }
        if judgments.insert(docid.clone(), relevance).is_some() {
            return Err(Error::input(format!("docid `{docid}` is judged twice")));
        }
    }
    for docid in entry.relevant_docs {
        judgments.entry(docid).or_insert(1);
    }
    if judgments.is_empty() {
        return Err(Error::input("no document is judged").with_hint("add `judgments`"));
    }
    let query = Query {
        id: entry.id,
        text: entry.query,
        lang: entry.language,
        collection: entry.collection,
        category: entry.category,
        modes: entry.query_modes,
    };
    Ok(JudgedQuery { query, judgments })
}

/// Checks that every judged docid is `known`; `docids` yields all of them, only to propose one that is alike.
///
/// Fails on the first that is not, naming query and docid and how many more there are.
///
/// ```
/// use rankgate::corpus::queries::{check_docids, parse};
/// let cases = parse(r#"[{"id": "q7", "query": "x", "relevantDocs": ["en/x.md"]}]"#)?;
/// let error = check_docids(&cases, |docid| docid == "en/xy.md", || vec!["en/xy.md".into()]).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "query `q7` names docid `en/x.md`, which is not in the corpus (did you mean `en/xy.md`?)"
/// );
/// # Ok::<(), rankgate::Error>(())
/// ```
pub fn check_docids(
    queries: &[JudgedQuery],
    known: impl Fn(&str) -> bool,
    docids: impl FnOnce() -> Vec<String>,
) -> Result<()> {
    let mut unknown: BTreeMap<&str, &str> = BTreeMap::new();
    let mut first = None;
    for case in queries {
        for docid in case.judgments.keys().filter(|docid| !known(docid)) {
            first.get_or_insert((case.query.id.as_str(), docid.as_str()));
            unknown.entry(docid).or_insert(&case.query.id);
        }
    }
    let Some((query, docid)) = first else { return Ok(()) };
    let more = match unknown.len() - 1 {
        0 => String::new(),
        more => format!("; {more} more docids are unknown"),
    };
    let error =
        Error::input(format!("query `{query}` names docid `{docid}`, which is not in the corpus{more}"));
    let all = docids();
    Err(match most_alike(docid, all.iter().map(String::as_str)) {
        Some(other) => error.with_hint(format!("did you mean `{other}`?")),
        None => error.with_hint("correct the docid; if the document is there by now, index again"),
    })
}

/// The docid that is written most like `docid`; `None` when none is much like it.
pub fn most_alike<'a>(docid: &str, docids: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    docids
        .map(|other| (strsim::normalized_damerau_levenshtein(docid, other), other))
        .filter(|(alike, _)| *alike >= ALIKE)
        // The first of equals, so that the proposal does not depend on the order in which the corpus is stored.
        .max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(a.1)))
        .map(|(_, other)| other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_read() {
        let json = r#"[{"id": "a", "query": "q", "language": "de", "category": "entity", "collection": "c",
            "judgments": [{"docid": "x", "relevance": 3}], "relevantDocs": ["x", "y"], "note": "why",
            "queryModes": [{"mode": "term", "text": "t"}]}]"#;
        let case = parse(json).expect("parses").remove(0);
        assert_eq!(case.judgments, Judgments::from([("x".into(), 3), ("y".into(), 1)]));
        assert_eq!(case.query.lang.as_deref(), Some("de"));
        assert_eq!(case.query.modes[0].mode, Mode::Term);
    }

    #[test]
    fn each_mistake_is_named() {
        let judged = r#""judgments": [{"docid": "x", "relevance": 1}]"#;
        for (json, words) in [
            ("[]".to_string(), "no queries"),
            ("{".to_string(), "line 1"),
            (format!(r#"[{{"id": "a", "query": "q", {judged}}}, {{"id": "a", "query": "r", {judged}}}]"#), "`a` occurs twice"),
            (format!(r#"[{{"id": "a", "query": " ", {judged}}}]"#), "query `a`: `id` and `query` must have text"),
            (format!(r#"[{{"id": "a", "query": "q", "judgements": [], {judged}}}]"#), "unknown field `judgements`"),
            (r#"[{"id": "a", "query": "q"}]"#.to_string(), "query `a`: no document is judged"),
            (r#"[{"id": "a", "query": "q", "judgments": [{"docid": "x", "relevance": -1}]}]"#.to_string(), "grade -1"),
            (r#"[{"id": "a", "query": "q", "judgments": [{"docid": "x", "relevance": 1.5}]}]"#.to_string(), "1.5"),
            (
                r#"[{"id": "a", "query": "q", "judgments": [{"docid": "x", "relevance": 1}, {"docid": "x", "relevance": 2}]}]"#
                    .to_string(),
                "`x` is judged twice",
            ),
        ] {
            let error = parse(&json).expect_err(words).report();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn an_unknown_docid_without_a_likeness_gets_no_wild_guess() {
        let cases = parse(r#"[{"id": "a", "query": "q", "relevantDocs": ["zzz", "yyy"]}]"#).expect("parses");
        let error = check_docids(&cases, |_| false, || vec!["en/deploy.md".into()]).expect_err("unknown");
        assert!(
            !error.to_string().contains("deploy") && error.to_string().contains("index again"),
            "{error}"
        );
        assert!(error.to_string().contains("`yyy`") && error.to_string().contains("1 more"), "{error}");
        check_docids(&cases, |_| true, || unreachable!("only asked for a proposal")).expect("all known");
    }
}
