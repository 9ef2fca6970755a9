//! What benchmarks have kept is whole, is all there, and still true.

use rankgate::benchmarks::artefact;
use rankgate::benchmarks::candidates::{Artefact, Kind, folder};
use rankgate::prelude::*;
use rankgate::record::diff::RankedDiff;

use crate::fixtures::project;

/// The artefacts of one kind.
#[derive(Clone)]
struct Kept(Kind);

impl Case for Kept {
    fn id(&self) -> &str {
        self.0.name()
    }
}

pub fn register(suite: &mut Suite) {
    suite
        .eval("artefacts")
        .describe("artefacts of benchmarks are whole and all there; the latest hybrid baseline has today's rankings")
        .cases(|| [Kind::Candidates, Kind::HybridBaseline].map(Kept).to_vec())
        .subject(|case, _| {
            let found = kept(case.0)?;
            if case.0 == Kind::HybridBaseline {
                up_to_date()?;
            }
            Ok::<_, Error>(found)
        })
        .score_with("is there", |_, found: &String| f64::from(u8::from(!found.is_empty())))
        .threshold(1.0)
        .snapshot(|_, found| found.clone());
}

/// Name and fingerprint of each, which is checked to be that of its content: no artefact changes or goes unnoticed.
fn kept(kind: Kind) -> Result<String> {
    let folder = folder(project(), kind);
    let entries = folder.read_dir().map_err(|e| Error::io("read the artefacts", &folder, e))?;
    let mut lines = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| Error::io("read the artefacts", &folder, e))?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let name = path.file_name().unwrap_or_default().display().to_string();
            lines.push(format!("{name} {}", Artefact::read(&path)?.fingerprint));
        }
    }
    lines.sort();
    Ok(lines.join("\n"))
}

/// Compares the latest baseline with the accepted snapshots of the evals `query` and `multilingual`, which are what
/// the pipeline gives: nothing has to be searched for it.
fn up_to_date() -> Result<()> {
    let folder = folder(project(), Kind::HybridBaseline);
    let Some(path) = artefact::latest(&folder)? else { return Ok(()) };
    let baseline = Artefact::read(&path)?;
    let mut moved = String::new();
    for case in &baseline.candidate(&baseline.default)?.cases {
        let eval = if case.id.starts_with('x') { "multilingual" } else { "query" };
        let file = project().join(format!("snapshots/{eval}__{}.snap", case.id));
        let accepted = std::fs::read_to_string(&file).map_err(|e| Error::io("read the snapshot", &file, e))?;
        // A header between two lines of dashes stands before the ranking.
        let accepted = accepted.splitn(3, "---\n").last().unwrap_or_default().lines();
        let diff = RankedDiff::between(case.ranking.iter().map(String::as_str), accepted);
        if !diff.is_empty() {
            moved += &format!("\n{}\n{diff}", case.id);
        }
    }
    if moved.is_empty() {
        return Ok(());
    }
    let what = format!("{}: rankings have moved since:{moved}", path.display());
    Err(Error::input(what).with_hint("keep a new one with `rankgate bench hybrid-baseline --write`"))
}
