//! Makes a baseline from captured searches.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{AllFingerprints, Floors, Header, Search, number, query_hash, reread, source_hash};
use crate::corpus::{create_file, hex, write_file};
use crate::error::{Error, ErrorKind, Result};
use crate::record::captured::{self, Captured, HEADER_KIND, is_header};
use crate::record::ndjson::{Lines, object};
use crate::text::{find_pii, one_line};

/// How many faults of a kind an error lists.
const LISTED: usize = 5;

/// How a baseline is made.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PublishOptions {
    /// What people call it; the file's name without its ending where nothing is given.
    pub label: Option<String>,
    /// Replace a file that is there.
    pub force: bool,
    /// Keep rows in which personal data was found.
    pub allow_pii: bool,
    /// Of searches that occur more than once keep the first: the newest of an export.
    pub dedupe: bool,
    /// Leave out searches that cannot be run again as they were.
    pub skip_unreplayable: bool,
    /// What a gate shall demand.
    pub floors: Floors,
}

/// What was made.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// The header of the baseline.
    pub header: Header,
    /// How many rows were left out, because they cannot be run again as they were.
    pub left_out: usize,
}

/// A row of the source: what it is sorted by, and where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    search: Search,
    start: u64,
    length: u64,
}

impl Place {
    fn asks_the_same(&self, other: &Self) -> bool {
        self.search == other.search
    }
}

#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    captured: &'a Captured,
    query_hash: &'a str,
}

/// Makes a baseline at `to` from the captured searches in `from`.
///
/// Rows are sorted by command and query hash, so the same rows give the same bytes, in whatever order they come and
/// whenever. The file appears whole or not at all. Memory is 64 bytes a row: the rows themselves stay on disk.
///
/// Fails when `to` is there (without `force`) or is `from`; on a row that is none, that can nowhere be
/// [run again](Captured::unreplayable) as it was (without `skip_unreplayable`), or that holds personal data (without
/// `allow_pii`); on searches that occur more than once (without `dedupe`); on a source without rows or that is a
/// baseline already; on a label without text. Two searches are the same when command, query, collections and
/// everything else that was asked agree.
pub fn publish(from: &Path, to: &Path, options: &PublishOptions) -> Result<Published> {
    options.floors.check()?;
    let label = options.label.clone().unwrap_or_else(|| label(to));
    if label.trim().is_empty() {
        return Err(Error::usage("the label is empty").with_hint("name the baseline with --label"));
    }
    check_target(from, to, options.force)?;
    let name = from.display().to_string();
    let mut file = reread(from)?;
    let (mut places, left_out) = scan(&mut file, &name, options)?;
    places.sort_unstable();
    if options.dedupe {
        places.dedup_by(|second, first| second.asks_the_same(first));
    }
    let mut source = Source { file, name };
    refuse_repetitions(&mut source, &places)?;

    let failed = |e| Error::io("write a temporary copy of", to, e);
    let mut copy = tempfile::tempfile().map_err(failed)?;
    let told = write_rows(&mut source, &places, &mut copy, to)?;
    let header = Header {
        schema_version: captured::VERSION,
        kind: HEADER_KIND.into(),
        label,
        published_at: told.newest,
        source_hash: source_hash(places.iter().map(|place| place.search.query).collect()),
        thresholds: options.floors,
        row_count: places.len() as u64,
        baseline_mean_latency_ms: (told.timed > 0).then(|| told.latency_ms / told.timed as f64),
        rows_hash: Some(told.rows_hash),
        tool_version: Some(env!("CARGO_PKG_VERSION").into()),
        fingerprints: told.fingerprints,
        header_hash: None,
    }
    .sealed();
    copy.seek(SeekFrom::Start(0)).map_err(failed)?;
    let write = |out: &mut BufWriter<&File>| {
        serde_json::to_writer(&mut *out, &header)?;
        out.write_all(b"\n")?;
        io::copy(&mut BufReader::new(copy), out).map(drop)
    };
    if options.force {
        write_file(to, "baseline", write)?;
    } else {
        // Between the look at the target and here another process may have published.
        create_file(to, "baseline", write).map_err(|e| if to.exists() { taken(to) } else { e })?;
    }
    Ok(Published { header, left_out })
}

fn check_target(from: &Path, to: &Path, force: bool) -> Result<()> {
    let real = |path: &Path| path.canonicalize().ok();
    let there = real(to);
    if there.is_some() && there == real(from) {
        return Err(Error::usage(format!(
            "{}: the baseline would replace what it is made from",
            to.display()
        )));
    }
    // A device or a pipe has nothing to lose.
    if to.is_file() && !force {
        return Err(taken(to));
    }
    Ok(())
}

fn taken(to: &Path) -> Error {
    Error::usage(format!("{}: there is a file already", to.display()))
        .with_hint("replace it with --force, or choose another name")
}

/// The file's name without `.baseline.ndjson` or `.ndjson`.
fn label(to: &Path) -> String {
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".ndjson").unwrap_or(&name);
    name.strip_suffix(".baseline").unwrap_or(name).to_string()
}

/// Reads the source once: checks each row and notes where it is; also counts the rows left out.
fn scan(file: &mut File, name: &str, options: &PublishOptions) -> Result<(Vec<Place>, usize)> {
    let (mut places, mut personal, mut lost) = (Vec::new(), Listing::default(), Listing::default());
    for line in Lines::new(BufReader::new(file), name) {
        let line = line?;
        let at = format!("{name}:{}", line.number);
        if is_header(&line.object) {
            return Err(Error::input(format!("{at}: this is a baseline already"))
                .with_hint("publish from captured searches"));
        }
        let row = Captured::from_object(line.object).map_err(|e| e.context(&at))?;
        if let Some(reason) = row.unreplayable() {
            lost.add(|| format!("line {} `{}`: {reason}", line.number, brief(&row.query)));
            continue;
        }
        if !options.allow_pii {
            for (key, text) in row.texts() {
                for found in find_pii(text) {
                    personal.add(|| format!("line {}: {} in `{key}`", line.number, found.family.words()));
                }
            }
        }
        places.push(Place { search: Search::of(&row), start: line.start, length: line.length });
    }
    if let Some(list) = personal.text() {
        return Err(Error::input(format!("{name}: rows hold personal data: {list}"))
            .with_hint("remove them, or pass --allow-pii"));
    }
    let left_out = lost.count;
    if let Some(list) = lost.text().filter(|_| !options.skip_unreplayable || places.is_empty()) {
        let (what, hint) = if places.is_empty() {
            ("no search in it", "capture searches whose rows say all that was asked")
        } else {
            ("not every search", "leave those out with --skip-unreplayable")
        };
        return Err(
            Error::input(format!("{name}: {what} can be run again as it was: {list}")).with_hint(hint)
        );
    }
    if places.is_empty() {
        return Err(Error::input(format!("{name}: there are no rows in it"))
            .with_hint("each line is one captured search"));
    }
    Ok((places, left_out))
}

fn brief(query: &str) -> String {
    one_line(query).chars().take(60).collect()
}

/// Counts faults and describes the first few.
#[derive(Default)]
struct Listing {
    count: usize,
    shown: String,
}

impl Listing {
    fn add(&mut self, describe: impl FnOnce() -> String) {
        if self.count < LISTED {
            // Writing to a String cannot fail.
            let _ = write!(self.shown, "{}{}", if self.count > 0 { "; " } else { "" }, describe());
        }
        self.count += 1;
    }

    fn text(self) -> Option<String> {
        let more = self.count.saturating_sub(LISTED);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        (self.count > 0).then(|| self.shown + &more)
    }
}

fn refuse_repetitions(source: &mut Source, places: &[Place]) -> Result<()> {
    let mut repeated = Listing::default();
    for group in places.chunk_by(Place::asks_the_same).filter(|group| group.len() > 1) {
        let row = source.row(&group[0])?;
        repeated.add(|| format!("{} `{}` {} times", row.tool_name.name(), brief(&row.query), group.len()));
    }
    match repeated.text() {
        None => Ok(()),
        Some(list) => Err(Error::input(format!("{}: searches occur more than once: {list}", source.name))
            .with_hint("keep the first of each with --dedupe")),
    }
}

struct Source {
    file: File,
    name: String,
}

impl Source {
    /// Reads a row again.
    fn row(&mut self, place: &Place) -> Result<Captured> {
        let mut bytes = vec![0; usize::try_from(place.length).unwrap_or(usize::MAX)];
        let read =
            self.file.seek(SeekFrom::Start(place.start)).and_then(|_| self.file.read_exact(&mut bytes));
        read.map_err(|e| Error::io("read again", Path::new(&self.name), e))?;
        let line = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
        let row = object(line.trim_ascii()).and_then(Captured::from_object);
        let same = row.ok().filter(|row| number(&query_hash(&row.query)) == place.search.query);
        same.ok_or_else(|| {
            let what = format!("{}: the file was changed while it was read", self.name);
            Error::new(ErrorKind::Busy, what).with_hint("run it again")
        })
    }
}

/// What the rows say together.
#[derive(Default)]
struct Told {
    newest: Option<String>,
    latency_ms: f64,
    timed: u64,
    fingerprints: AllFingerprints,
    rows_hash: String,
}

fn write_rows(source: &mut Source, places: &[Place], copy: &mut File, to: &Path) -> Result<Told> {
    let failed = |e| Error::io("write a temporary copy of", to, e);
    let (mut told, mut hasher) = (Told::default(), Sha256::new());
    let mut out = BufWriter::new(copy);
    for place in places {
        let mut row = source.row(place)?;
        row.extra.shift_remove("query_hash");
        let query_hash = format!("{:016x}", place.search.query);
        let mut line = serde_json::to_vec(&Row { captured: &row, query_hash: &query_hash })
            .expect("a row is plain data with text keys");
        line.push(b'\n');
        hasher.update(&line);
        out.write_all(&line).map_err(failed)?;
        if let Some(latency) = row.latency_ms {
            (told.latency_ms, told.timed) = (told.latency_ms + latency, told.timed + 1);
        }
        // Moments in UTC have the order of their texts; other offsets do not.
        told.newest = told.newest.max(row.created_at.clone().filter(|moment| moment.ends_with('Z')));
        told.fingerprints.add(&row);
    }
    out.flush().map_err(failed)?;
    drop(out);
    told.rows_hash = hex(&hasher.finalize());
    Ok(told)
}
