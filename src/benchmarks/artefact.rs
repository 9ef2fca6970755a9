//! Results that are kept: JSON for programs and Markdown for people, named after the day, never overwritten.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::Value;

use crate::corpus::create_file;
use crate::error::{Error, Result};
use crate::record::{json, utc};

/// Writes an artefact into `dir`, which is made if need be, and returns the path of its JSON.
///
/// It is called after the day, `2026-01-31.json` and `2026-01-31.md`, the second of a day `2026-01-31-2`: nothing that
/// is there is touched. A list of `cases` has one case a line, so that the difference of two artefacts shows which
/// changed. Fails when the folder cannot be made or written.
pub fn write(dir: &Path, artefact: &Value, page: &str) -> Result<PathBuf> {
    std::fs::create_dir_all(dir).map_err(|e| Error::io("create the folder", dir, e))?;
    let day = utc(SystemTime::now())[..10].to_owned();
    let text = lines(artefact, 0) + "\n";
    let mut number = 1;
    loop {
        let name = if number == 1 { day.clone() } else { format!("{day}-{number}") };
        let (data, read) = (dir.join(format!("{name}.json")), dir.join(format!("{name}.md")));
        number += 1;
        if data.symlink_metadata().is_ok() || read.symlink_metadata().is_ok() {
            continue;
        }
        // The page first: what stops here leaves no artefact that reads as one.
        match create_file(&read, "artefact", |out| out.write_all(page.as_bytes())) {
            // Another process was quicker.
            Err(_) if read.exists() => continue,
            made => made?,
        }
        if let Err(error) = create_file(&data, "artefact", |out| out.write_all(text.as_bytes())) {
            let _ = std::fs::remove_file(&read);
            return Err(error);
        }
        return Ok(data);
    }
}

/// JSON with one value a line, and one case.
fn lines(value: &Value, depth: usize) -> String {
    let indent = "  ".repeat(depth + 1);
    let block = |open: &str, close: &str, items: Vec<String>| match items.is_empty() {
        true => format!("{open}{close}"),
        false => format!("{open}\n{}\n{}{close}", items.join(",\n"), "  ".repeat(depth)),
    };
    match value {
        Value::Object(map) => {
            let item = |(key, value): (&String, &Value)| {
                let text = match value {
                    Value::Array(cases) if key == "cases" => cases_lines(cases, depth + 1),
                    value => lines(value, depth + 1),
                };
                format!("{indent}{}: {text}", Value::from(key.as_str()))
            };
            block("{", "}", map.iter().map(item).collect())
        }
        Value::Array(items) => {
            block("[", "]", items.iter().map(|item| format!("{indent}{}", lines(item, depth + 1))).collect())
        }
        other => other.to_string(),
    }
}

fn cases_lines(cases: &[Value], depth: usize) -> String {
    if cases.is_empty() {
        return "[]".into();
    }
    let indent = "  ".repeat(depth + 1);
    let items: Vec<String> = cases.iter().map(|case| format!("{indent}{case}")).collect();
    format!("[\n{}\n{}]", items.join(",\n"), "  ".repeat(depth))
}

/// The newest artefact in `dir`, by its name; `None` when there is none. Fails when the folder cannot be read.
pub fn latest(dir: &Path) -> Result<Option<PathBuf>> {
    let failed = |e| Error::io("read the folder", dir, e);
    let mut newest = None;
    for entry in dir.read_dir().map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        newest = newest.max(age(&path).map(|age| (age, path)));
    }
    Ok(newest.map(|(_, path)| path))
}

/// Day and number in an artefact's name; `None` for any other file.
fn age(path: &Path) -> Option<(String, u32)> {
    let name = path.file_name()?.to_str()?.strip_suffix(".json")?;
    let (day, rest) = name.split_at_checked(10)?;
    let digits = |at: usize, c: char| if matches!(at, 4 | 7) { c == '-' } else { c.is_ascii_digit() };
    let number = if rest.is_empty() { 1 } else { rest.strip_prefix('-')?.parse().ok()? };
    day.chars().enumerate().all(|(at, c)| digits(at, c)).then(|| (day.to_owned(), number))
}

/// SHA-256 of what two runs of the same program over the same files have in common: the canonical JSON of `artefact`
/// without the keys `generated_at`, `machine` and `fingerprint`, and those that end in `_ms` or `_rss_bytes`.
///
/// ```
/// use rankgate::benchmarks::artefact::fingerprint;
/// use serde_json::json;
/// let one = fingerprint(&json!({"ndcg": 0.5, "p95_ms": 3.1}));
/// assert_eq!(one, fingerprint(&json!({"p95_ms": 2.9, "ndcg": 0.5})));
/// assert_ne!(one, fingerprint(&json!({"p95_ms": 2.9, "ndcg": 0.6})));
/// ```
pub fn fingerprint(artefact: &Value) -> String {
    json::fingerprint(&stable(artefact))
}

fn stable(value: &Value) -> Value {
    let volatile = |key: &str| {
        matches!(key, "generated_at" | "machine" | "fingerprint")
            || key.ends_with("_ms")
            || key.ends_with("_rss_bytes")
    };
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, _)| !volatile(key));
            Value::Object(kept.map(|(key, value)| (key.clone(), stable(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(stable).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_second_artefact_of_a_day_stands_beside_the_first() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let folder = dir.path().join("made/for/it");
        let first = write(&folder, &json!({"n": 1}), "# 1\n").expect("writes");
        let second = write(&folder, &json!({"n": 2}), "# 2\n").expect("writes");
        assert_ne!(first, second);
        assert_eq!(std::fs::read_to_string(&first).expect("is there"), "{\n  \"n\": 1\n}\n");
        assert_eq!(std::fs::read_to_string(second.with_extension("md")).expect("is there"), "# 2\n");
        assert_eq!(latest(&folder).expect("reads"), Some(second));
    }

    #[test]
    fn a_case_is_a_line_and_all_of_it_is_read_again() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let artefact = json!({
            "empty": {}, "none": [], "sets": [{"cases": [], "na\"me": null}],
            "candidates": [{"cases": [{"id": "q1", "ranking": ["a", "b"]}, {"id": "q2"}], "p": [1, 2.5]}],
        });
        let text =
            std::fs::read_to_string(write(dir.path(), &artefact, "").expect("writes")).expect("is there");
        assert!(
            text.contains(
                "\n        {\"id\":\"q1\",\"ranking\":[\"a\",\"b\"]},\n        {\"id\":\"q2\"}\n      ],"
            ),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Value>(&text).expect("is JSON"), artefact);
    }

    #[test]
    fn a_page_that_is_there_is_not_replaced() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let page = dir.path().join(format!("{}.md", &utc(SystemTime::now())[..10]));
        std::fs::write(&page, "mine").expect("writes");
        let made = write(dir.path(), &json!({}), "theirs").expect("writes");
        assert_eq!(std::fs::read_to_string(page).expect("is there"), "mine");
        assert_eq!(std::fs::read_to_string(made.with_extension("md")).expect("is there"), "theirs");
    }

    #[test]
    fn the_latest_is_the_tenth_of_a_day_and_no_other_file() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        assert_eq!(latest(dir.path()).expect("reads"), None);
        for name in
            ["2026-01-31.json", "2026-01-31-2.json", "2026-01-31-10.json", "queries.json", "2027-01-01.md"]
        {
            std::fs::write(dir.path().join(name), "{}").expect("writes");
        }
        let found = latest(dir.path()).expect("reads").expect("is there");
        assert_eq!(found.file_name().and_then(|name| name.to_str()), Some("2026-01-31-10.json"));
        assert!(latest(&dir.path().join("absent")).is_err());
    }
}
