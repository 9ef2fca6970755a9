//! Baselines: captured searches frozen into a file that a gate compares with.
//!
//! The first line is the header; each further line is a row as captured, with its `query_hash`. The header states how
//! many rows there are and hashes of their queries and of their text, and whoever opens a baseline checks them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom};
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::captured::{self, Captured, Fingerprints, is_header};
use super::ndjson::{Line, Lines};
use crate::corpus::{hex, open_file};
use crate::error::{Error, Result};

mod publish;

pub use publish::{PublishOptions, publish};

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

/// All fingerprints that the rows of a baseline carry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AllFingerprints {
    /// Of the documents.
    pub corpus: BTreeSet<String>,
    /// Of the index.
    pub index: BTreeSet<String>,
    /// Of the models, by stage.
    pub models: BTreeMap<String, BTreeSet<String>>,
    /// Versions of the code.
    pub code: BTreeSet<String>,
}

impl AllFingerprints {
    /// Adds those of one row.
    pub fn add(&mut self, row: &Fingerprints) {
        self.corpus.extend(row.corpus.clone());
        self.index.extend(row.index.clone());
        self.code.extend(row.code.clone());
        for (stage, model) in &row.models {
            self.models.entry(stage.clone()).or_default().insert(model.clone());
        }
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

/// A baseline whose header was found to be true of its rows.
#[derive(Debug)]
pub struct Baseline {
    /// The header.
    pub header: Header,
    name: String,
    file: File,
}

impl Baseline {
    /// Opens a baseline and checks all of it: every row, their number, their hashes. Memory is 8 bytes a row.
    ///
    /// Fails, naming the line where there is one, on a file that is none or that was changed after it was published.
    pub fn open(path: &Path) -> Result<Self> {
        let (name, mut file) = (path.display().to_string(), reread(path)?);
        let mut lines = Lines::new(BufReader::new(&mut file), &name);
        let header = match lines.next() {
            Some(line) => {
                let line = line?;
                header(&line).map_err(|e| e.context(format!("{name}:{}", line.number)))?
            }
            None => return Err(Error::input(format!("{name}: the file is empty")).with_hint(PUBLISH)),
        };
        let (mut hashes, mut hasher) = (Vec::new(), Sha256::new());
        let mut fingerprints = AllFingerprints::default();
        for line in lines {
            let line = line?;
            hasher.update(&line.bytes);
            hasher.update(b"\n");
            let (row, hash) = row(&name, line)?;
            hashes.push(number(&hash));
            fingerprints.add(&row.fingerprints);
        }
        verify(&header, hashes, &hex(&hasher.finalize())).map_err(|e| e.context(&name))?;
        if fingerprints != header.fingerprints {
            let what = format!("{name}: the header's `fingerprints` are not those of the rows");
            return Err(Error::input(what).with_hint("publish the baseline anew"));
        }
        Ok(Self { header, name, file })
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
    Ok(header)
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
    // Baselines of other programs have none.
    if header.rows_hash.as_deref().is_some_and(|stated| stated != rows_hash) {
        return Err(changed("the rows are not those of the header's `rows_hash`".into()));
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
