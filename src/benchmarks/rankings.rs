//! Rankings of any file that holds some, and what became of them in another one.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::candidates::{Artefact, Candidate, CaseResult};
use crate::corpus::trec::Run;
use crate::error::{Error, Result};
use crate::metrics::{jaccard, rank_biased_overlap, stats};
use crate::record::captured;
use crate::record::diff::{Left, Lost, Place, RankedDiff};

/// How many documents of each ranking are compared.
pub const DEPTH: usize = 10;
/// How deep rank-biased overlap looks.
const PERSISTENCE: f64 = 0.9;

/// The rankings of one file.
#[derive(Debug, Clone, PartialEq)]
pub struct Rankings {
    /// The file, as it was named.
    pub name: String,
    /// Whether it says what each stage made of a document.
    pub knows_stages: bool,
    /// Whether it holds captured searches, whose ids are what was asked.
    captured: bool,
    /// Its rankings, in its order; no two have the same id or text.
    pub lists: Vec<List>,
}

/// The ranking of one query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct List {
    /// What the query is called, where it has a name.
    pub id: Option<String>,
    /// What was searched for, where that is known.
    pub text: Option<String>,
    /// The first [`DEPTH`] distinct documents.
    pub docids: Vec<String>,
    /// Which stage put a document below those.
    lost: HashMap<String, Lost>,
}

impl Rankings {
    /// Reads an artefact of candidates or of a hybrid baseline (`FILE#candidate` where it has several), captured
    /// searches (an export or a baseline), or a TREC run.
    ///
    /// Fails on a file of neither kind, a candidate that is not there or failed, and on what the kind's reader refuses.
    pub fn read(named: &str) -> Result<Self> {
        let (file, candidate) = match named.rsplit_once('#') {
            Some((file, candidate)) if !Path::new(named).exists() => (file, Some(candidate)),
            _ => (named, None),
        };
        let path = Path::new(file);
        let bytes = std::fs::read(path).map_err(|e| Error::io("read the rankings", path, e))?;
        Self::parse(named, file, candidate, bytes)
    }

    fn parse(name: &str, file: &str, candidate: Option<&str>, bytes: Vec<u8>) -> Result<Self> {
        let start = bytes.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(bytes.len());
        let json = bytes.get(start) == Some(&b'{');
        let first_line = bytes[start..].split(|&byte| byte == b'\n').next().unwrap_or_default();
        let first = serde_json::from_slice::<Value>(first_line).ok().filter(|_| json);
        let is_row = first.is_some_and(|row| row.get("schema_version").is_some());
        if candidate.is_some() && (is_row || !json) {
            return Err(Error::usage(format!("{name}: only an artefact of candidates has parts to choose"))
                .with_hint("leave out what follows the `#`"));
        }
        let (lists, knows_stages) = if is_row {
            (captured_lists(file, &bytes)?, false)
        } else if json {
            let text = String::from_utf8(bytes)
                .map_err(|_| Error::input(format!("{file}: the file is not UTF-8")))?;
            (of_artefact(&text, candidate).map_err(|e| e.context(file))?, true)
        } else {
            (run_lists(file, bytes)?, false)
        };
        Ok(Self { name: name.into(), knows_stages, captured: is_row, lists })
    }

    /// The rankings of one candidate of an artefact. Fails when it failed.
    pub fn of(name: &str, artefact: &Artefact, candidate: &Candidate) -> Result<Self> {
        let lists = candidate_lists(artefact, candidate)?;
        Ok(Self { name: name.into(), knows_stages: true, captured: false, lists })
    }
}

fn captured_lists(file: &str, bytes: &[u8]) -> Result<Vec<List>> {
    let mut lists = Vec::new();
    let mut seen = HashSet::new();
    for row in captured::parse(file, bytes) {
        let (_, row) = row?;
        let collection = row.asked.collection.as_ref().map(|name| format!(" in {name}")).unwrap_or_default();
        let limit = row.asked.limit.map(|limit| format!(", {limit} at most")).unwrap_or_default();
        let id = format!("{}{collection}{limit}: {}", row.tool_name.name(), row.query);
        // Of searches that occur more than once the first counts: the newest of an export.
        if seen.insert(id.clone()) {
            let docids = first(row.retrieved_slugs.into_iter());
            lists.push(List { id: Some(id), text: Some(row.query), docids, ..List::default() });
        }
    }
    Ok(lists)
}

fn run_lists(file: &str, bytes: Vec<u8>) -> Result<Vec<List>> {
    let run = Run::parse(file, bytes).map_err(|e| {
        let what = format!("{} (and the file is no artefact and no captured searches)", e.report());
        Error::input(what).with_hint("name an artefact, a TREC run, or captured searches")
    })?;
    let list = |id: &str| List {
        id: Some(id.into()),
        docids: first(run.ranking(id).into_iter().flatten().map(|(docid, _)| docid.to_owned())),
        ..List::default()
    };
    Ok(run.queries().map(list).collect())
}

fn of_artefact(text: &str, candidate: Option<&str>) -> Result<Vec<List>> {
    let artefact = Artefact::parse(text)?;
    let candidate = match (candidate, artefact.candidates.as_slice()) {
        (Some(id), _) => artefact.candidate(id)?,
        (None, [only]) => only,
        (None, _) => {
            let ids: Vec<&str> = artefact.candidates.iter().map(|candidate| candidate.id.as_str()).collect();
            let what = format!("the artefact has {} candidates", ids.len());
            return Err(Error::usage(what).with_hint(format!("name one as FILE#ID: {}", ids.join(", "))));
        }
    };
    candidate_lists(&artefact, candidate)
}

fn candidate_lists(artefact: &Artefact, candidate: &Candidate) -> Result<Vec<List>> {
    if let Some(why) = &candidate.failed {
        return Err(Error::input(format!("candidate `{}` failed, and has no rankings: {why}", candidate.id)));
    }
    let texts: HashMap<&str, &str> = artefact
        .sets
        .iter()
        .flat_map(|set| &set.cases)
        .map(|case| (case.id.as_str(), case.query.as_str()))
        .collect();
    let list = |case: &CaseResult| List {
        text: texts.get(case.id.as_str()).map(|text| text.to_string()),
        id: Some(case.id.clone()),
        docids: first(case.ranking.iter().cloned()),
        lost: lost(case),
    };
    Ok(candidate.cases.iter().map(list).collect())
}

fn first(docids: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = HashSet::new();
    docids.filter(|docid| seen.insert(docid.clone())).take(DEPTH).collect()
}

/// Which stage put the documents below the ranking there, as far as their places tell.
fn lost(case: &CaseResult) -> HashMap<String, Lost> {
    let place =
        |stage: &str, at: usize| case.places.get(stage).and_then(|places| places.get(at)).copied().flatten();
    let stage = |(at, docid): (usize, &String)| {
        let ranked = place("ranked", at)?;
        let lanes = ["bm25", "vector", "graph"];
        let lanes = lanes
            .iter()
            .filter_map(|stage| Some(Place { stage: stage.to_string(), rank: place(stage, at)? }));
        Some((
            docid.clone(),
            match place("fused", at) {
                Some(before) if before <= DEPTH => Lost::Rerank { before, after: ranked },
                fused => Lost::Fusion { rank: fused.unwrap_or(ranked), lanes: lanes.collect() },
            },
        ))
    };
    (case.ranking.len()..).zip(&case.below).filter_map(stage).collect()
}

/// Two files of rankings, query by query. Also what `rankgate bench diff --json` prints.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "rankgate bench diff")]
pub struct Changes {
    /// Version of this format.
    pub version: u32,
    /// The first file.
    pub a: String,
    /// The second file.
    pub b: String,
    /// Documents of each ranking that were compared.
    pub depth: usize,
    /// Queries that both files have.
    pub compared: usize,
    /// Those whose rankings are the same.
    pub unchanged: usize,
    /// Queries that only the first file has.
    pub only_a: Vec<String>,
    /// Queries that only the second file has.
    pub only_b: Vec<String>,
    /// Mean share of common documents.
    pub mean_jaccard: f64,
    /// Mean rank-biased overlap, p = 0.9.
    pub mean_rank_biased_overlap: f64,
    /// Whether the second file says which stage lost a document.
    pub knows_stages: bool,
    /// The queries that changed: those with the fewest common documents first.
    pub changed: Vec<Changed>,
}

/// A query whose ranking changed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Changed {
    /// What it is called: its id, else its text.
    pub query: String,
    /// What was searched for, where that is known beside the id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Share of common documents.
    pub jaccard: f64,
    /// Rank-biased overlap, p = 0.9.
    pub rank_biased_overlap: f64,
    /// The documents that left, entered and moved.
    pub diff: RankedDiff,
}

/// Compares two files of rankings, of all queries or, where some are named, of those.
///
/// Queries are matched by their ids: captured searches by command, collection, limit and text. Beside a file of another
/// kind captured searches are matched by their texts, of which the first counts. Fails when nothing matches,
/// and when a query that is named is in neither file.
///
/// ```
/// # let dir = tempfile::tempdir().expect("a temporary folder");
/// # let file = |name: &str, text: &str| {
/// #     std::fs::write(dir.path().join(name), text).expect("writes");
/// #     dir.path().join(name).display().to_string()
/// # };
/// use rankgate::benchmarks::rankings::{Rankings, compare};
/// let a = Rankings::read(&file("a.run", "q1 Q0 x 1 2 t\nq1 Q0 y 2 1 t\nq2 Q0 x 1 1 t\n"))?;
/// let b = Rankings::read(&file("b.run", "q1 Q0 y 1 2 t\nq1 Q0 x 2 1 t\nq2 Q0 x 1 1 t\n"))?;
/// let changes = compare(&a, &b, &[])?;
/// assert_eq!((changes.compared, changes.unchanged, changes.mean_jaccard), (2, 1, 1.0));
/// assert_eq!(changes.changed[0].diff.to_string(), "moved    y  2 → 1\nmoved    x  1 → 2\n");
/// # Ok::<(), rankgate::Error>(())
/// ```
pub fn compare(a: &Rankings, b: &Rankings, wanted: &[String]) -> Result<Changes> {
    let by_id = a.captured == b.captured;
    let key = |list: &List| if by_id { list.id.clone() } else { list.text.clone() };
    let keyed = |rankings: &'_ Rankings| -> BTreeMap<String, usize> {
        // Of several with one key the first counts, which is put in last.
        let keys = rankings.lists.iter().enumerate().rev();
        keys.filter_map(|(at, list)| Some((key(list)?, at))).collect()
    };
    let (first, second) = (keyed(a), keyed(b));
    if let Some(absent) = wanted.iter().find(|id| !first.contains_key(*id) && !second.contains_key(*id)) {
        let what = format!("neither {} nor {} has a query `{absent}`", a.name, b.name);
        return Err(Error::not_found(what).with_hint(match by_id {
            true => "name it by its id, a captured search as `query: its text`",
            false => "name it by its text: captured searches have no ids that others know",
        }));
    }
    let chosen = |key: &&String| wanted.is_empty() || wanted.contains(key);
    let without = |keys: &BTreeMap<String, usize>, other: &BTreeMap<String, usize>| {
        keys.keys().filter(chosen).filter(|key| !other.contains_key(*key)).cloned().collect()
    };
    let mut changes = Changes {
        version: 1,
        a: a.name.clone(),
        b: b.name.clone(),
        depth: DEPTH,
        only_a: without(&first, &second),
        only_b: without(&second, &first),
        knows_stages: b.knows_stages,
        ..Changes::default()
    };
    let (mut common, mut alike) = (Vec::new(), Vec::new());
    for (key, &at) in first.iter().filter(|(key, _)| chosen(key)) {
        let Some(&other) = second.get(key) else { continue };
        let changed = change(key, &a.lists[at], &b.lists[other]);
        common.push(changed.jaccard);
        alike.push(changed.rank_biased_overlap);
        if !changed.diff.is_empty() {
            changes.changed.push(changed);
        }
    }
    if common.is_empty() {
        return Err(Error::input(format!("{} and {} have no query in common", a.name, b.name))
            .with_hint("runs and artefacts are matched by query id, captured searches by text"));
    }
    changes.compared = common.len();
    changes.unchanged = common.len() - changes.changed.len();
    changes.mean_jaccard = stats::mean(&common).unwrap_or_default();
    changes.mean_rank_biased_overlap = stats::mean(&alike).unwrap_or_default();
    changes.changed.sort_by(|a, b| {
        let alike = a.rank_biased_overlap.total_cmp(&b.rank_biased_overlap);
        a.jaccard.total_cmp(&b.jaccard).then(alike).then_with(|| a.query.cmp(&b.query))
    });
    Ok(changes)
}

fn change(key: &str, a: &List, b: &List) -> Changed {
    let of = |list: &'_ List| -> Vec<String> { list.docids.clone() };
    let (was, now) = (of(a), of(b));
    let (was, now) = (|| was.iter().map(String::as_str), || now.iter().map(String::as_str));
    let mut diff = RankedDiff::between(was(), now());
    for Left { docid, lost, .. } in &mut diff.left {
        *lost = b.lost.get(docid).cloned();
    }
    let text = a.text.as_ref().or(b.text.as_ref()).filter(|text| *text != key).cloned();
    Changed {
        query: key.into(),
        text,
        jaccard: jaccard(was(), now()),
        rank_biased_overlap: rank_biased_overlap(was(), now(), PERSISTENCE).expect("0.9 is in range"),
        diff,
    }
}
