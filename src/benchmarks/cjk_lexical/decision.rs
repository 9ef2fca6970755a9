//! Baseline, gates and decisions as files of the fixture.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::benchmarks::artefact;
use crate::corpus::{create_file, hex};
use crate::error::{Error, ErrorKind, Result};
use crate::record::json::{self as text, fingerprint};
use crate::record::utc;

use super::fixture::Fixture;
use super::gates::{Bound, ComparisonFiles, Decision, Fingerprints, PromotionGates};
use super::measure::{CoRun, Comparison, LIMIT, Measured};
use super::{NAME, page};

#[cfg(test)]
mod tests;

/// The file of the gates in a fixture.
pub const GATES: &str = "promotion-gates.json";

/// What to do about anything that was frozen and is not any more what it was.
const ANEW: &str = "restore it; to change it on purpose raise `version` in manifest.json, remove promotion-gates.json \
                    and freeze a new baseline with `rankgate bench cjk-lexical --write`";

/// The gates of a fixture, which must be the very one that they were derived from; `None` when there are none yet.
///
/// Fails when gates or baseline cannot be read or were changed, and when a file of the fixture was changed since the
/// baseline was frozen: the error names it.
pub fn gates(fixture: &Fixture) -> Result<Option<PromotionGates>> {
    let path = fixture.dir.join(GATES);
    if !path.exists() {
        return Ok(None);
    }
    let bad = |what: String| Error::input(format!("{}: {what}", path.display())).with_hint(ANEW);
    let gates: PromotionGates =
        text::from_str(&read(&path)?).and_then(serde_json::from_value).map_err(|e| bad(e.to_string()))?;
    if gates.version != 1 {
        return Err(bad(format!("version {} is unknown", gates.version)));
    }
    let baseline = fixture.dir.join(&gates.baseline.artefact);
    let frozen = read(&baseline)?;
    let changed = |what: String| Error::input(what).with_hint(ANEW);
    if hex(&Sha256::digest(&frozen)) != gates.baseline.sha256 {
        return Err(changed(format!("{}: was changed since it was frozen", baseline.display())));
    }
    let frozen = text::from_str(&frozen).map_err(|e| changed(format!("{}: {e}", baseline.display())))?;
    let files = frozen["fixture"]["files"].as_object().cloned().unwrap_or_default();
    let now = |name: &String| fixture.files.get(name).map(String::as_str);
    let names = files.keys().chain(fixture.files.keys());
    let different: Vec<&String> =
        names.filter(|name| files.get(*name).and_then(Value::as_str) != now(name)).collect();
    if let Some(name) = different.first() {
        let since = &gates.baseline.artefact;
        let what = format!("{}: differs from what {since} was made of", fixture.dir.join(name).display());
        return Err(changed(what));
    }
    if fixture.fingerprint() != gates.baseline.fingerprints.corpus {
        return Err(bad("the fingerprint of the corpus is not that of the baseline".into()));
    }
    // Whoever edits the floors and not the baseline is told so.
    let derived =
        PromotionGates::derive(gates.baseline.clone(), gates.comparison.clone(), &measured(&frozen)?)?;
    if rounded(json!(derived)) != rounded(json!(gates)) {
        return Err(bad("the gates are not those that follow from the baseline".into()));
    }
    Ok(Some(gates))
}

fn measured(frozen: &Value) -> Result<Measured> {
    serde_json::from_value(frozen["measured"].clone())
        .map_err(|e| Error::input(format!("the frozen baseline: {e}")).with_hint(ANEW))
}

/// The value with numbers of nine digits: reading JSON may change the last one of a float.
fn rounded(value: Value) -> Value {
    match value {
        Value::Number(number) => json!(format!("{:.9}", number.as_f64().unwrap_or(f64::NAN))),
        Value::Array(items) => items.into_iter().map(rounded).collect(),
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, rounded(value))).collect(),
        other => other,
    }
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|e| Error::io("read", path, e))
}

/// The comparison set that the gates name, or the project's own beside the fixture; `None` when it is not there.
pub fn comparison(fixture: &Fixture, gates: Option<&PromotionGates>) -> Result<Option<Comparison>> {
    let files = gates.map_or_else(own_comparison, |gates| gates.comparison.clone());
    let [corpus, judged, matrix] =
        [&files.corpus, &files.queries, &files.identifiers].map(|name| fixture.dir.join(name));
    match corpus.exists() && judged.exists() && matrix.exists() {
        true => Comparison::read(&corpus, &judged, &matrix).map(Some),
        false => Ok(None),
    }
}

fn own_comparison() -> ComparisonFiles {
    ComparisonFiles {
        corpus: "../corpus".into(),
        queries: "../queries.json".into(),
        identifiers: "../lexical.json".into(),
    }
}

/// What the baseline of a run was made from and found. Figures are no part of it: they follow from the documents
/// found, and their last digits depend on the machine.
fn fingerprints(fixture: &Fixture, baseline: &Measured) -> Fingerprints {
    let found: Vec<_> = baseline.bm25.cases.iter().map(|case| json!([case.id, case.found])).collect();
    let lanes = ["bm25", "substring-raw", "substring-nfc"];
    Fingerprints {
        corpus: fixture.fingerprint(),
        config: fingerprint(&json!({"benchmark": NAME, "version": 1, "limit": LIMIT, "lanes": lanes})),
        tokenizer: fingerprint(&json!({"name": baseline.tokenizer.name(), "version": baseline.version})),
        result: fingerprint(&json!(found)),
    }
}

/// Checks that the baseline of `run`, over all queries, is the one that the gates are bound to.
///
/// Fails when anything about it has changed: the gates would then compare with something else.
pub fn check(fixture: &Fixture, gates: &PromotionGates, run: &CoRun) -> Result<()> {
    let (frozen, now) = (&gates.baseline.fingerprints, fingerprints(fixture, &run.baseline));
    for (what, frozen, now) in [
        ("corpus", &frozen.corpus, &now.corpus),
        ("configuration", &frozen.config, &now.config),
        ("plain tokenizer", &frozen.tokenizer, &now.tokenizer),
        ("result of the plain tokenizer", &frozen.result, &now.result),
    ] {
        if frozen != now {
            let since = &gates.baseline.artefact;
            let what = format!("{}: the {what} is not that of {since} any more", fixture.dir.display());
            return Err(Error::new(ErrorKind::Version, what).with_hint(ANEW));
        }
    }
    Ok(())
}

/// Freezes the baseline of `run` in `baseline/` and derives `promotion-gates.json` from it.
///
/// Fails when there are gates already, and when the baseline leaves no room for them: then nothing is written.
pub fn freeze(fixture: &Fixture, run: &CoRun) -> Result<(PromotionGates, Vec<PathBuf>)> {
    let path = fixture.dir.join(GATES);
    if path.exists() {
        return Err(Error::usage(format!("{}: there are gates already", path.display())).with_hint(ANEW));
    }
    let fingerprints = fingerprints(fixture, &run.baseline);
    let unbound = Bound { artefact: String::new(), sha256: String::new(), fingerprints };
    let gates = PromotionGates::derive(unbound, own_comparison(), &run.baseline)?;
    let value = json!({
        "version": 1,
        "benchmark": NAME,
        "generated_at": utc(SystemTime::now()),
        "machine": machine(),
        "fixture": {
            "version": fixture.manifest.version,
            "documents": fixture.documents.len(),
            "queries": fixture.queries.len(),
            "files": fixture.files,
        },
        "fingerprints": gates.baseline.fingerprints,
        "measured": run.baseline,
        "diagnostics": run.diagnostics,
    });
    let written = artefact::write(&fixture.dir.join("baseline"), &value, &page::baseline(run))?;
    let name = written.file_name().unwrap_or_default().to_string_lossy();
    let bound = Bound {
        artefact: format!("baseline/{name}"),
        sha256: hex(&Sha256::digest(read(&written)?)),
        ..gates.baseline
    };
    let gates = PromotionGates { baseline: bound, ..gates };
    create_file(&path, "gates", |out| {
        serde_json::to_writer_pretty(&mut *out, &gates)?;
        std::io::Write::write_all(out, b"\n")
    })?;
    Ok((gates, vec![written, path]))
}

/// Keeps what was decided, beside the figures, in `decisions/`.
pub fn keep(fixture: &Fixture, gates: &PromotionGates, run: &CoRun, decision: &Decision) -> Result<PathBuf> {
    let value = json!({
        "version": 1,
        "benchmark": NAME,
        "generated_at": utc(SystemTime::now()),
        "machine": machine(),
        "inputs": {
            "baseline": gates.baseline,
            "gates": {"artefact": GATES, "sha256": hex(&Sha256::digest(read(&fixture.dir.join(GATES))?))},
        },
        "outcome": decision.outcome,
        "candidate": decision.candidate,
        "rollback": "text::Tokenizer::DEFAULT names the tokenizer and the version of indexes, which are then made anew; \
                     one index was made by both in turn in this run (gate rollback.differences)",
        "gates": decision.gates,
        "measured": {"baseline": run.baseline, "candidate": run.candidate},
    });
    artefact::write(&fixture.dir.join("decisions"), &value, &page::decision(gates, run, decision))
}

fn machine() -> Value {
    json!({
        "os": std::env::consts::OS,
        "arch": std::env::consts::ARCH,
        "rankgate": env!("CARGO_PKG_VERSION"),
        "debug_assertions": cfg!(debug_assertions),
    })
}
