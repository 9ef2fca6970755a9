//! Baselines: captured searches frozen into a file that a gate compares with.
//!
//! The first line is the header; each further line is a row as captured, with its `query_hash`. The header states how
//! many rows there are, hashes of their queries and of their text, and one of itself: whoever opens a baseline checks
//! them, so neither a row nor a threshold changes unnoticed.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::captured::{self, Captured, is_header};
use super::moment::is_moment;
use super::ndjson::{Line, Lines};
use super::{FileKind, json};
use crate::corpus::{hex, open_file};
use crate::error::{Error, Result};

mod fingerprints;
mod publish;

pub use fingerprints::{AllFingerprints, Silent};
pub use publish::{PublishOptions, Published, publish};

/// What a gate demands of a replay unless it is told otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Floors {
    /// Least mean Jaccard coefficient, from 0 to 1.
    pub jaccard: f64,
    /// Least share of searches whose first document stayed, from 0 to 1.
    pub top1: f64,
    /// Most that the mean latency may be, as a multiple of the captured one.
    pub latency_multiplier: f64,
}

impl Default for Floors {
    fn default() -> Self {
        Self { jaccard: 0.85, top1: 0.80, latency_multiplier: 2.0 }
    }
}

impl Floors {
    /// Fails on a share outside 0 to 1, and on a multiplier that is not above 0 and finite: such a floor would hold
    /// always or never.
    pub fn check(&self) -> Result<()> {
        for (name, share) in [("jaccard", self.jaccard), ("top1", self.top1)] {
            if !(0.0..=1.0).contains(&share) {
                return Err(Error::usage(format!("threshold `{name}` is {share}, not from 0 to 1")));
            }
        }
        let multiplier = self.latency_multiplier;
        if !(multiplier.is_finite() && multiplier > 0.0) {
            return Err(Error::usage(format!("threshold `latency_multiplier` is {multiplier}, not above 0")));
        }
        Ok(())
    }
}

/// The first line of a baseline. The first eight fields are agreed keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Header {
    /// The format's version, that of the rows.
    pub schema_version: u32,
    /// `baseline_metadata`.
    #[serde(rename = "_kind")]
    pub kind: String,
    /// What people call the baseline.
    pub label: String,
    /// When the newest row was captured: the same rows give the same file, whenever they are published.
    pub published_at: Option<String>,
    /// SHA-256 of the sorted query hashes, joined by line feeds.
    pub source_hash: String,
    /// What a gate demands.
    pub thresholds: Floors,
    /// How many rows follow.
    pub row_count: u64,
    /// Mean latency of the rows that state one.
    pub baseline_mean_latency_ms: Option<f64>,
    /// SHA-256 of the rows, each followed by a line feed.
    #[serde(default)]
    pub rows_hash: Option<String>,
    /// The version of rankgate that published.
    #[serde(default)]
    pub tool_version: Option<String>,
    /// What the rows depend on.
    #[serde(default)]
    pub fingerprints: AllFingerprints,
    /// SHA-256 of the header's canonical JSON without this key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header_hash: Option<String>,
}

impl Header {
    /// The header with the hash of itself.
    fn sealed(mut self) -> Self {
        self.header_hash = None;
        // As a reader will see it: a number that was read may differ from the one that was written.
        let text = serde_json::to_string(&self).expect("plain data is JSON");
        let value = json::from_str(&text).expect("was just written");
        self.header_hash = Some(json::fingerprint(&value));
        self
    }
}

/// The first 16 hexadecimal digits of the SHA-256 of a query in lower case, its blanks made single.
///
/// ```
/// use rankgate::record::baseline::query_hash;
/// assert_eq!(query_hash(" Hello\u{3000}\n WORLD"), "b94d27b9934d3e08");
/// assert_eq!(query_hash(""), "e3b0c44298fc1c14");
/// ```
pub fn query_hash(query: &str) -> String {
    // The white space of the format's origin: without NEL, with the byte order mark.
    let blank = |c: char| (c.is_whitespace() && c != '\u{85}') || c == '\u{feff}';
    let lower = query.to_lowercase();
    let words: Vec<&str> = lower.split(blank).filter(|word| !word.is_empty()).collect();
    let mut hash = hex(&Sha256::digest(words.join(" ")));
    hash.truncate(16);
    hash
}

fn source_hash(mut query_hashes: Vec<u64>) -> String {
    query_hashes.sort_unstable();
    let mut hasher = Sha256::new();
    for (index, hash) in query_hashes.iter().enumerate() {
        hasher.update(format!("{}{hash:016x}", if index > 0 { "\n" } else { "" }));
    }
    hex(&hasher.finalize())
}

/// A query hash as a number, which takes a sixth of the memory.
fn number(query_hash: &str) -> u64 {
    u64::from_str_radix(query_hash, 16).expect("a query hash is 16 hexadecimal digits")
}

/// What a search asks, whatever it returned and in whatever text it is written; two rows with one are the same search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Search {
    tool: captured::Tool,
    query: u64,
    /// Hash of the collections and of what was asked beside the text.
    rest: u64,
}

impl Search {
    fn of(row: &Captured) -> Self {
        let mut sources = row.source_ids.clone();
        sources.sort_unstable();
        let rest = serde_json::to_vec(&(sources, &row.asked)).expect("plain data is JSON");
        let rest = Sha256::digest(rest)[..8].iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        Self { tool: row.tool_name, query: number(&query_hash(&row.query)), rest }
    }
}

/// A baseline whose header was found to be true of its rows.
#[derive(Debug)]
pub struct Baseline {
    /// The header.
    pub header: Header,
    name: String,
    file: File,
}

impl Baseline {
    /// Opens a baseline and checks all of it: the header, every row, their number, their hashes. It keeps 32
    /// bytes a row.
    ///
    /// Fails, naming the line where there is one, on a file that is none or that was changed after it was published,
    /// and on a search that occurs twice.
    pub fn open(path: &Path) -> Result<Self> {
        let (name, mut file) = (path.display().to_string(), reread(path)?);
        let mut lines = Lines::new(BufReader::new(&mut file), &name);
        let first = match lines.next() {
            Some(line) => {
                line.and_then(|line| header(&line).map_err(|e| e.context(format!("{name}:{}", line.number))))
            }
            None => return Err(Error::input(format!("{name}: the file is empty")).with_hint(PUBLISH)),
        };
        let header = match first {
            Ok(header) => header,
            Err(error) => {
                drop(lines);
                return Err(taken_for(&mut file, &name).unwrap_or(error));
            }
        };
        let (mut searches, mut hasher) = (Vec::new(), Sha256::new());
        let mut fingerprints = AllFingerprints::default();
        for line in lines {
            let line = line?;
            hasher.update(&line.bytes);
            hasher.update(b"\n");
            let number = line.number;
            let (row, _) = row(&name, line)?;
            fingerprints.add(&row);
            searches.push((Search::of(&row), number));
        }
        searches.sort_unstable();
        if let Some(same) = searches.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let (first, second) = (same[0].1, same[1].1);
            return Err(Error::input(format!("{name}:{second}: the same search as in line {first}"))
                .with_hint("publish the baseline anew with --dedupe, or take one of them out"));
        }
        let hashes = searches.iter().map(|(search, _)| search.query).collect();
        verify(&header, hashes, &hex(&hasher.finalize())).map_err(|e| e.context(&name))?;
        let silent = std::mem::take(&mut fingerprints.silent);
        if fingerprints != header.fingerprints {
            let what = format!("{name}: the header's `fingerprints` are not those of the rows");
            return Err(Error::input(what).with_hint("publish the baseline anew"));
        }
        let header = Header { fingerprints: AllFingerprints { silent, ..fingerprints }, ..header };
        Ok(Self { header, name, file })
    }

    /// What cannot be checked, because the header does not state it.
    pub fn notes(&self) -> Vec<String> {
        let missing = [
            (self.header.header_hash.is_none(), "header_hash", "thresholds and label"),
            (self.header.rows_hash.is_none(), "rows_hash", "captured documents"),
        ];
        let missing = missing.into_iter().filter(|(missing, ..)| *missing);
        missing
            .map(|(_, key, what)| {
                format!("the baseline has no `{key}`: whether its {what} were changed is not known")
            })
            .collect()
    }

    /// The rows, read one at a time, each with its query hash.
    ///
    /// Fails when the file cannot be read again; yields an error for a row that was changed meanwhile.
    pub fn rows(&mut self) -> Result<impl Iterator<Item = Result<(Captured, String)>>> {
        self.file.seek(SeekFrom::Start(0)).map_err(|e| Error::io("read again", Path::new(&self.name), e))?;
        let name = self.name.clone();
        let lines = Lines::new(BufReader::new(&mut self.file), &name);
        Ok(lines.skip(1).map(move |line| row(&name, line?)))
    }
}

/// Bytes of a file that show what it is.
const BEGINNING: u64 = 1 << 16;

const PUBLISH: &str = "make a baseline with `rankgate bench publish`";

fn header(line: &Line) -> Result<Header> {
    if !is_header(&line.object) {
        return Err(Error::input("not the header of a baseline").with_hint(PUBLISH));
    }
    captured::check_version(&line.object)?;
    let mut object = line.object.clone();
    object.insert("schema_version".into(), captured::VERSION.into());
    let header: Header =
        serde_json::from_value(object.into()).map_err(|e| Error::input(format!("header: {e}")))?;
    header.thresholds.check().map_err(|e| Error::input(format!("header: {e}")))?;
    if let Some(text) = header.published_at.as_deref().filter(|text| !is_moment(text)) {
        return Err(Error::input(format!("header: `published_at` is `{text}`, which is no moment"))
            .with_hint("publish the baseline anew"));
    }
    let mut stated = line.object.clone();
    let hash = stated.shift_remove("header_hash");
    let hash = hash.filter(|hash| !hash.is_null());
    if hash.is_some_and(|hash| hash.as_str() != Some(&json::fingerprint(&stated.into()))) {
        return Err(Error::input(
            "the header is not that of its `header_hash`: thresholds or label were changed",
        )
        .with_hint("publish the baseline anew; thresholds for one gate are given with --threshold-…"));
    }
    Ok(header)
}

/// The error for a file of another kind; `None` where it is not known for one.
fn taken_for(file: &mut File, name: &str) -> Option<Error> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0)).ok()?;
    file.take(BEGINNING).read_to_end(&mut bytes).ok()?;
    let kind = FileKind::of(&String::from_utf8_lossy(&bytes)).filter(|kind| *kind != FileKind::Baseline)?;
    let (what, hint) = kind.words();
    Some(Error::usage(format!("{name}: not a baseline: {what}")).with_hint(hint))
}

/// The row of a line, with its query hash, which has to be right.
fn row(name: &str, line: Line) -> Result<(Captured, String)> {
    let row = || {
        let mut row = Captured::from_object(line.object)?;
        let hash = query_hash(&row.query);
        match row.extra.shift_remove("query_hash") {
            Some(stated) if stated.as_str() == Some(&hash) => Ok((row, hash)),
            Some(stated) => {
                let what = format!("`query_hash` is {stated}, that of the query is `{hash}`");
                Err(Error::input(what).with_hint("the row was changed: publish the baseline anew"))
            }
            None => Err(Error::input("`query_hash` is missing").with_hint(PUBLISH)),
        }
    };
    row().map_err(|e| e.context(format!("{name}:{}", line.number)))
}

fn verify(header: &Header, hashes: Vec<u64>, rows_hash: &str) -> Result<()> {
    let changed = |what: String| {
        Error::input(what).with_hint("the file was cut or changed: restore it, or publish the baseline anew")
    };
    if header.row_count != hashes.len() as u64 {
        return Err(changed(format!(
            "the header states {} rows, there are {}",
            header.row_count,
            hashes.len()
        )));
    }
    if header.source_hash != source_hash(hashes) {
        return Err(changed("the queries are not those of the header's `source_hash`".into()));
    }
    // Baselines of other programs have none; this one has always written it, beside its version.
    if header.rows_hash.is_none() && header.tool_version.is_some() {
        return Err(changed("the header's `rows_hash` was taken out".into()));
    }
    if header.rows_hash.as_deref().is_some_and(|stated| stated != rows_hash) {
        return Err(changed("the rows are not those of the header's `rows_hash`".into()));
    }
    if header.header_hash.is_none() && header.tool_version.is_some() {
        return Err(changed("the header's `header_hash` was taken out".into()));
    }
    Ok(())
}

/// A file that can be read twice: itself, or what a pipe delivered in a temporary one.
fn reread(path: &Path) -> Result<File> {
    let failed = |e| Error::io("read the records", path, e);
    let mut file = open_file(path, "records")?;
    if file.metadata().map_err(failed)?.is_file() {
        return Ok(file);
    }
    let mut copy = tempfile::tempfile().map_err(failed)?;
    std::io::copy(&mut file, &mut copy).map_err(failed)?;
    copy.seek(SeekFrom::Start(0)).map_err(failed)?;
    Ok(copy)
}

#[cfg(test)]
mod tests;
