//! TREC files: judgments (`qrels`) and runs, read as `trec_eval` 10 reads them.
//!
//! Columns are separated by blanks or tabs. Blank lines, lines that begin with `#` and a byte order mark are
//! skipped. What `trec_eval` would read as a zero (a score or a grade that is no number) is an error here,
//! with file and line.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Write;
use std::path::Path;

use super::{Judgments, Qrels, Ranking, write_file};
use crate::error::{Error, Result};

/// The largest grade, and minus the smallest, that a file of judgments may hold.
pub const MAX_GRADE: i64 = 1000;

/// Where a name lies in the text of a run.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: usize,
    len: usize,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    docid: Span,
    score: f64,
}

#[derive(Debug, Clone)]
struct Ranked {
    query: Span,
    entries: Vec<Entry>,
}

/// Rankings by query, and the tag that names the system which made them.
///
/// Names are slices of one text, so a run of a million lines costs a few dozen allocations. Queries are
/// ordered by the bytes of their id.
///
/// ```
/// use rankgate::corpus::trec::Run;
///
/// let file = b"q1 Q0 b 1 0.5 bm25\nq1 Q0 c 2 0.5 bm25\nq1 Q0 a 3 0.9 bm25\n";
/// let run = Run::parse("run.txt", file.to_vec())?;
/// assert_eq!(run.tag(), "bm25");
/// // Scores decide, not the rank column; equal scores are ordered by docid, backwards.
/// let docids: Vec<_> = run.ranking("q1").expect("is there").map(|(docid, _)| docid).collect();
/// assert_eq!(docids, ["a", "c", "b"]);
/// # Ok::<(), rankgate::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Run {
    text: String,
    tag: Span,
    rankings: Vec<Ranked>,
}

impl Run {
    /// Reads the bytes of a run file: `query Q0 docid rank score tag`, further columns ignored.
    ///
    /// `name` stands for the file in errors. The rank column is ignored: hits are ordered by score, highest
    /// first, equal scores by the bytes of the docid, last first, as `trec_eval` does. The tag is that of the
    /// last line. A document that occurs twice under one query is kept twice; the metrics count it where it
    /// ranks best.
    ///
    /// Fails on text that is not UTF-8, a line of fewer than six columns, a score that is no number, and on a
    /// file without a ranking.
    pub fn parse(name: &str, bytes: Vec<u8>) -> Result<Self> {
        let text = utf8(name, bytes)?;
        let mut rankings: Vec<Ranked> = Vec::new();
        let mut known: HashMap<&str, usize> = HashMap::new();
        let (mut current, mut at) = ("", 0);
        let mut tag = None;
        let span =
            |part: &str| Span { start: part.as_ptr() as usize - text.as_ptr() as usize, len: part.len() };
        for (number, line) in lines(&text) {
            let (query, docid, score, last) = run_columns(name, number, line)?;
            if query != current || rankings.is_empty() {
                at = *known.entry(query).or_insert_with(|| {
                    // Rankings of one run tend to be of one length.
                    let entries = Vec::with_capacity(rankings.last().map_or(0, |last| last.entries.len()));
                    rankings.push(Ranked { query: span(query), entries });
                    rankings.len() - 1
                });
                current = query;
            }
            rankings[at].entries.push(Entry { docid: span(docid), score });
            tag = Some(span(last));
        }
        drop(known);
        let tag = tag.ok_or_else(|| {
            Error::input(format!("{name}: holds no ranking"))
                .with_hint("write `query Q0 docid rank score tag`")
        })?;
        for ranked in &mut rankings {
            ranked.entries.sort_unstable_by(|a, b| by_score(&text, a, b));
        }
        rankings.sort_unstable_by(|a, b| a.query.of(&text).cmp(b.query.of(&text)));
        Ok(Self { text, tag, rankings })
    }

    /// A run from rankings in memory, in the order that they have there.
    ///
    /// Fails when a query occurs twice or a score is not a number.
    pub fn from_rankings<'a>(
        tag: &str,
        rankings: impl IntoIterator<Item = (&'a str, &'a Ranking)>,
    ) -> Result<Self> {
        let mut text = String::new();
        let mut keep = |part: &str| {
            text.push_str(part);
            Span { start: text.len() - part.len(), len: part.len() }
        };
        let tag = keep(tag);
        let mut kept = Vec::new();
        for (query, ranking) in rankings {
            if let Some(hit) = ranking.hits.iter().find(|hit| hit.score.is_nan()) {
                return Err(Error::input(format!(
                    "query `{query}`: the score of `{}` is not a number",
                    hit.docid
                )));
            }
            let query = keep(query);
            let entries = ranking.hits.iter();
            let entries = entries.map(|hit| Entry { docid: keep(&hit.docid), score: hit.score }).collect();
            kept.push(Ranked { query, entries });
        }
        kept.sort_unstable_by(|a, b| a.query.of(&text).cmp(b.query.of(&text)));
        if let Some(pair) = kept.windows(2).find(|pair| pair[0].query.of(&text) == pair[1].query.of(&text)) {
            return Err(Error::input(format!(
                "query `{}` is ranked twice in one run",
                pair[0].query.of(&text)
            )));
        }
        Ok(Self { text, tag, rankings: kept })
    }

    /// The name of the system that made the run.
    pub fn tag(&self) -> &str {
        self.tag.of(&self.text)
    }

    /// The ids of the queries that have a ranking, in byte order.
    pub fn queries(&self) -> impl Iterator<Item = &str> {
        self.rankings.iter().map(|ranked| ranked.query.of(&self.text))
    }

    /// The docids and scores of one query, best first, repetitions included; `None` when it has no ranking.
    pub fn ranking(&self, query: &str) -> Option<impl Iterator<Item = (&str, f64)>> {
        let at = self.rankings.binary_search_by(|ranked| ranked.query.of(&self.text).cmp(query)).ok()?;
        Some(self.rankings[at].entries.iter().map(|entry| (entry.docid.of(&self.text), entry.score)))
    }
}

impl Span {
    fn of(self, text: &str) -> &str {
        &text[self.start..self.start + self.len]
    }
}

/// Query, docid, score and tag of a line.
fn run_columns<'a>(name: &str, number: usize, line: &'a str) -> Result<(&'a str, &'a str, f64, &'a str)> {
    let mut columns = line.split_ascii_whitespace();
    let mut next = || columns.next();
    let (Some(query), Some(_), Some(docid), Some(_), Some(score), Some(tag)) =
        (next(), next(), next(), next(), next(), next())
    else {
        let found = line.split_ascii_whitespace().count();
        return Err(Error::input(format!("{name}:{number}: {found} columns where a run has six"))
            .with_hint("write `query Q0 docid rank score tag`"));
    };
    match score.parse::<f64>() {
        Ok(value) if !value.is_nan() => Ok((query, docid, value, tag)),
        _ => Err(Error::input(format!("{name}:{number}: score {} is no number", shown(score)))
            .with_hint("write a decimal such as 12.5 in column five")),
    }
}

/// The order of `trec_eval`: score descending, then docid descending.
fn by_score(text: &str, a: &Entry, b: &Entry) -> Ordering {
    // Scores are never NaN here.
    b.score
        .partial_cmp(&a.score)
        .unwrap_or(Ordering::Equal)
        .then_with(|| b.docid.of(text).cmp(a.docid.of(text)))
}

/// Reads a run file; see [`Run::parse`].
pub fn read_run(path: &Path) -> Result<Run> {
    Run::parse(&path.display().to_string(), read(path, "read the run")?)
}

/// Writes a run file of six columns, whole or not at all: a temporary file beside `path`, then renamed over
/// it.
///
/// A reader orders hits by score and docid. Where that would not give the order of the ranking (equal
/// scores), the query's scores are written as n, n − 1 … 1. A repeated document is written once. A query
/// without hits leaves no line: evaluate such a run with `-c`, so that it counts as zero.
///
/// Fails when an id or the tag is empty, holds a blank or would read as a comment, or when the disk refuses.
pub fn write_run(path: &Path, run: &Run) -> Result<()> {
    check_name("the tag", run.tag())?;
    let mut wrong_name = None;
    let written = write_file(path, "run", |out| {
        for ranked in &run.rankings {
            match write_ranking(out, run, ranked) {
                Ok(written) => written?,
                Err(e) => {
                    wrong_name = Some(e);
                    return Err(std::io::ErrorKind::InvalidInput.into());
                }
            }
        }
        Ok(())
    });
    wrong_name.map_or(written, Err)
}

/// The outer result is about the names, the inner one about the disk.
fn write_ranking(out: &mut impl Write, run: &Run, ranked: &Ranked) -> Result<std::io::Result<()>> {
    let (text, tag) = (&run.text, run.tag());
    let query = ranked.query.of(text);
    check_name("query", query)?;
    let mut seen = HashSet::new();
    let entries: Vec<&Entry> =
        ranked.entries.iter().filter(|entry| seen.insert(entry.docid.of(text))).collect();
    let ordered = entries.windows(2).all(|pair| by_score(text, pair[0], pair[1]).is_le());
    for (index, entry) in entries.iter().enumerate() {
        let docid = entry.docid.of(text);
        check_name("docid", docid)?;
        let score = if ordered { entry.score } else { (entries.len() - index) as f64 };
        if let Err(e) = writeln!(out, "{query} Q0 {docid} {} {score} {tag}", index + 1) {
            return Ok(Err(e));
        }
    }
    Ok(Ok(()))
}

/// A TREC file has no way to quote, so a name must be one word.
fn check_name(role: &str, name: &str) -> Result<()> {
    if name.is_empty() || name.starts_with('#') || name.contains(|c: char| c.is_ascii_whitespace()) {
        return Err(Error::input(format!("{role} {} cannot stand in a TREC file", shown(name)))
            .with_hint("use a name without blanks that does not begin with `#`"));
    }
    Ok(())
}

/// Reads a file of judgments; see [`parse_qrels`].
pub fn read_qrels(path: &Path) -> Result<Qrels> {
    parse_qrels(&path.display().to_string(), read(path, "read the judgments")?)
}

/// Reads judgments: TREC's `query iteration docid grade`, or BEIR's tab-separated `query docid grade` when
/// the first line is its header, `query-id corpus-id score`.
///
/// `name` stands for the file in errors. A grade is a whole number (`2` or `2.0`) from −[`MAX_GRADE`] to
/// [`MAX_GRADE`]; below zero means that the document was in the pool and nobody judged it.
///
/// Fails on text that is not UTF-8, a wrong number of columns, a grade that is no such number, a document
/// judged twice for one query, and on a file without a judgment.
///
/// ```
/// let qrels = rankgate::corpus::trec::parse_qrels("qrels.txt", b"# made by hand\nq1 0 d1 2\n".to_vec())?;
/// assert_eq!(qrels["q1"]["d1"], 2);
/// # Ok::<(), rankgate::Error>(())
/// ```
pub fn parse_qrels(name: &str, bytes: Vec<u8>) -> Result<Qrels> {
    let text = utf8(name, bytes)?;
    let mut lines = lines(&text).peekable();
    let beir = lines
        .next_if(|(_, line)| line.split_ascii_whitespace().eq(["query-id", "corpus-id", "score"]))
        .is_some();
    let mut judged: HashMap<&str, Vec<(&str, i64, usize)>> = HashMap::new();
    for (number, line) in lines {
        let (query, docid, grade) =
            if beir { beir_columns(line) } else { trec_columns(line) }.ok_or_else(|| {
                let (what, hint) = match beir {
                    true => {
                        ("three tab-separated columns", "write `query docid grade`, a tab between each two")
                    }
                    false => (
                        "four columns",
                        "write `query 0 docid grade`; a BEIR file begins with `query-id corpus-id score`",
                    ),
                };
                Error::input(format!("{name}:{number}: not {what}: {}", shown(line))).with_hint(hint)
            })?;
        let grade = parse_grade(grade).ok_or_else(|| {
            let what = format!("{name}:{number}: grade {} is not a whole number", shown(grade));
            Error::input(what).with_hint(format!("grades go from -{MAX_GRADE} to {MAX_GRADE}"))
        })?;
        judged.entry(query).or_default().push((docid, grade, number));
    }
    if judged.is_empty() {
        return Err(
            Error::input(format!("{name}: holds no judgment")).with_hint("write `query 0 docid grade`")
        );
    }
    judged.into_iter().map(|(query, list)| Ok((query.to_string(), collect(name, query, list)?))).collect()
}

/// The judgments of one query, refused when a document occurs twice.
fn collect(name: &str, query: &str, mut list: Vec<(&str, i64, usize)>) -> Result<Judgments> {
    list.sort_unstable_by(|a, b| a.0.cmp(b.0).then(a.2.cmp(&b.2)));
    if let Some(pair) = list.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let (docid, _, first) = pair[0];
        let what = format!("{name}:{}: query `{query}` judges docid `{docid}` a second time", pair[1].2);
        return Err(Error::input(what).with_hint(format!("keep one; the first is in line {first}")));
    }
    Ok(list.into_iter().map(|(docid, grade, _)| (docid.to_string(), grade)).collect())
}

fn trec_columns(line: &str) -> Option<(&str, &str, &str)> {
    let mut columns = line.split_ascii_whitespace();
    let (query, _, docid, grade) = (columns.next()?, columns.next()?, columns.next()?, columns.next()?);
    columns.next().is_none().then_some((query, docid, grade))
}

fn beir_columns(line: &str) -> Option<(&str, &str, &str)> {
    let mut columns = line.split('\t').map(str::trim_ascii);
    let found = (columns.next()?, columns.next()?, columns.next()?);
    let named = !found.0.is_empty() && !found.1.is_empty();
    (named && columns.next().is_none()).then_some(found)
}

fn parse_grade(text: &str) -> Option<i64> {
    let whole = || text.parse::<f64>().ok().filter(|value| value.fract() == 0.0).map(|value| value as i64);
    text.parse().ok().or_else(whole).filter(|grade| (-MAX_GRADE..=MAX_GRADE).contains(grade))
}

fn read(path: &Path, doing: &str) -> Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let opened = File::open(path).and_then(|mut file| {
        // One byte more than the file has, so that its end is seen without growing the buffer.
        bytes.reserve_exact(file.metadata().map_or(0, |data| data.len() as usize) + 1);
        file.read_to_end(&mut bytes)
    });
    opened.map_err(|e| Error::io(doing, path, e))?;
    Ok(bytes)
}

fn utf8(name: &str, bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|e| {
        let good = &e.as_bytes()[..e.utf8_error().valid_up_to()];
        let number = 1 + good.iter().filter(|byte| **byte == b'\n').count();
        Error::input(format!("{name}:{number}: not UTF-8")).with_hint("save the file as UTF-8 text")
    })
}

/// The lines that say something, numbered from one.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.split('\n').zip(1..).filter_map(|(line, number)| {
        let first = line.trim_ascii_start().bytes().next();
        first.is_some_and(|byte| byte != b'#').then_some((number, line))
    })
}

/// A piece of input, quoted and cut to a length that an error can hold.
fn shown(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((cut, _)) => format!("`{}…`", &text[..cut]),
        None => format!("`{text}`"),
    }
}
