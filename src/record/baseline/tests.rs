use std::collections::BTreeSet;
use std::path::PathBuf;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::error::ErrorKind;

const THREE: [&str; 3] = [
    r#"{"schema_version":1,"id":3,"tool_name":"search","query":"acme deal","retrieved_slugs":["b"],"source_ids":["x","w"],"latency_ms":8,"created_at":"2026-05-03T00:00:00.000Z","fingerprints":{"index":"i1","models":{"vector":"m1"}}}"#,
    r#"{"schema_version":1,"id":2,"tool_name":"query","query":"Who  is alice","retrieved_slugs":["a"],"source_ids":["w"],"latency_ms":4,"note":"kept","created_at":"2026-05-04T00:00:00.000Z"}"#,
    r#"{"schema_version":1,"id":1,"tool_name":"query","query":"acme deal","retrieved_slugs":["b"],"source_ids":["w"],"latency_ms":3,"created_at":"2026-05-02T23:00:00.5+05:30"}"#,
];

struct Folder(TempDir);

impl Folder {
    fn with(rows: &[&str]) -> Self {
        let folder = Self(tempfile::tempdir().expect("a temporary folder"));
        std::fs::write(folder.from(), rows.join("\n")).expect("writes");
        folder
    }

    fn from(&self) -> PathBuf {
        self.0.path().join("captured.ndjson")
    }

    fn to(&self) -> PathBuf {
        self.0.path().join("team.baseline.ndjson")
    }

    fn publish(&self, options: &PublishOptions) -> Result<Header> {
        publish(&self.from(), &self.to(), options).map(|published| published.header)
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.to()).expect("is there")
    }
}

fn forced() -> PublishOptions {
    PublishOptions { force: true, ..PublishOptions::default() }
}

#[test]
fn header_and_rows_by_hand() {
    let folder = Folder::with(&THREE);
    let header = folder.publish(&PublishOptions::default()).expect("publishes");
    assert_eq!((header.label.as_str(), header.row_count), ("team", 3));
    assert_eq!(header.baseline_mean_latency_ms, Some(5.0));
    assert_eq!(header.published_at.as_deref(), Some("2026-05-04T00:00:00.000Z"), "the newest moment");
    assert_eq!(header.fingerprints.models["vector"], BTreeSet::from(["m1".to_string()]));
    let text = folder.text();
    let lines: Vec<serde_json::Map<_, _>> =
        text.lines().map(|line| serde_json::from_str(line).expect("is JSON")).collect();
    let keys: Vec<_> = lines[0].keys().map(String::as_str).take(8).collect();
    let agreed =
        ["schema_version", "_kind", "label", "published_at", "source_hash", "thresholds", "row_count"];
    assert_eq!(keys[..7], agreed);
    assert_eq!(keys[7], "baseline_mean_latency_ms");
    let order: Vec<_> =
        lines[1..].iter().map(|row| (row["id"].as_i64(), row["query_hash"].as_str())).collect();
    let (alice, acme) = (query_hash("who is alice"), query_hash("acme deal"));
    let mut queries = [(Some(2), Some(alice.as_str())), (Some(1), Some(acme.as_str()))];
    queries.sort_by_key(|(_, hash)| *hash);
    assert_eq!(order, [queries[0], queries[1], (Some(3), Some(acme.as_str()))]);
    let kept = lines[1..].iter().find(|row| row["id"] == 2).expect("is there");
    assert_eq!(
        (&kept["note"], kept.keys().next_back().map(String::as_str)),
        (&"kept".into(), Some("query_hash"))
    );
    assert!(text.ends_with('\n') && text.lines().count() == 4);

    let mut sorted = [alice, acme.clone(), acme];
    sorted.sort();
    assert_eq!(header.source_hash, hex(&Sha256::digest(sorted.join("\n"))));
}

#[test]
fn the_same_rows_give_the_same_bytes_in_any_order() {
    let first = Folder::with(&THREE);
    first.publish(&forced()).expect("publishes");
    let second = Folder::with(&[THREE[2], "", THREE[0], THREE[1]]);
    second.publish(&forced()).expect("publishes");
    assert_eq!(first.text(), second.text());
    let before = first.text();
    first.publish(&forced()).expect("publishes again");
    assert_eq!(first.text(), before);
}

#[test]
fn a_published_file_opens_and_a_changed_one_does_not() {
    let folder = Folder::with(&THREE);
    let header = folder.publish(&forced()).expect("publishes");
    let mut baseline = Baseline::open(&folder.to()).expect("opens");
    assert_eq!(baseline.header, header);
    for _ in 0..2 {
        let rows: Vec<_> = baseline.rows().expect("reads").collect::<Result<_>>().expect("are rows");
        assert_eq!(rows.len(), 3);
        assert!(
            rows.iter()
                .all(|(row, hash)| *hash == query_hash(&row.query) && !row.extra.contains_key("query_hash"))
        );
    }

    let text = folder.text();
    let last = text.trim_end().rfind('\n').expect("has lines") + 1;
    for (changed, wanted) in [
        (text[..last].to_string(), "the header states 3 rows, there are 2"),
        (text.clone() + &text[last..], ":5: the same search as in line 4"),
        (text.replace("\"a\"", "\"z\""), "the rows are not those"),
        (text.replace("Who  is", "Who was"), "`query_hash` is"),
        (
            text.replace(&format!(",\"query_hash\":\"{}\"", query_hash("acme deal")), ""),
            "`query_hash` is missing",
        ),
        (unsealed(&text).replace(&header.source_hash, &"0".repeat(64)), "the queries are not those"),
        (text.replace("\"jaccard\":0.85", "\"jaccard\":8.5"), "threshold `jaccard` is 8.5"),
        (text.replace("\"jaccard\":0.85", "\"jaccard\":0.1"), "not that of its `header_hash`"),
        (unsealed(&text).replace("\"jaccard\":0.85", "\"jaccard\":0.1"), "`header_hash` was taken out"),
        (text.replace("\"label\":\"team\"", "\"label\":\"main\""), "not that of its `header_hash`"),
        (text.replace("\"published_at\":\"2026-05-04T", "\"published_at\":\"2026-05-44T"), "no moment"),
        (
            unsealed(&text).replace(&format!("\"{}\"", header.rows_hash.clone().expect("is hashed")), "null"),
            "was taken out",
        ),
        (text.replace("\"row_count\":3,", ""), "missing field `row_count`"),
        (text.replacen("\"schema_version\":1", "\"schema_version\":2", 1), "`schema_version` is 2"),
        (text.lines().skip(1).collect::<Vec<_>>().join("\n"), "not a baseline: these are captured"),
        (text[..text.len() - 9].to_string(), "not JSON"),
        (String::new(), "the file is empty"),
    ] {
        std::fs::write(folder.to(), changed).expect("writes");
        let error = Baseline::open(&folder.to()).expect_err(wanted).to_string();
        assert!(error.contains(wanted) && error.contains("team.baseline.ndjson"), "{error}");
    }
    // A version control system may have changed the line ends; nothing else is different.
    std::fs::write(folder.to(), text.replace('\n', "\r\n")).expect("writes");
    Baseline::open(&folder.to()).expect("opens");
}

/// The baseline without the hash of its header.
fn unsealed(text: &str) -> String {
    let start = text.find(",\"header_hash\":").expect("has one");
    let end = start + text[start..].find('}').expect("is the last key");
    text[..start].to_string() + &text[end..]
}

#[test]
fn a_baseline_of_another_program_has_fewer_keys() {
    let hash = query_hash("x");
    let header = format!(
        r#"{{"schema_version":1,"_kind":"baseline_metadata","label":"l","published_at":"2026-01-01T00:00:00Z","source_hash":"{}","thresholds":{{"jaccard":0.9,"top1":0.9,"latency_multiplier":3}},"row_count":1,"baseline_mean_latency_ms":2}}"#,
        hex(&Sha256::digest(&hash)),
    );
    let row = format!(
        r#"{{"tool_name":"query","query":"x","query_hash":"{hash}","retrieved_slugs":[],"schema_version":1}}"#
    );
    let folder = Folder::with(&[&header, &row]);
    let baseline = Baseline::open(&folder.from()).expect("opens");
    assert_eq!(baseline.notes().len(), 2, "neither header nor rows have a hash");
    assert_eq!((baseline.header.thresholds.latency_multiplier, baseline.header.rows_hash), (3.0, None));
    let none = header
        .replace("\"row_count\":1", "\"row_count\":0")
        .replace(&hex(&Sha256::digest(&hash)), &hex(&Sha256::digest("")));
    Baseline::open(&Folder::with(&[&none]).from()).expect("a header without rows is whole");
}

#[test]
fn what_was_there_stays_unless_it_is_to_be_replaced() {
    let folder = Folder::with(&THREE);
    std::fs::write(folder.to(), "old").expect("writes");
    let error = folder.publish(&PublishOptions::default()).expect_err("is there");
    assert!(error.kind() == ErrorKind::Usage && error.to_string().contains("--force"), "{error}");
    let error = publish(&folder.from(), &folder.from(), &forced()).expect_err("is the source");
    assert_eq!(error.kind(), ErrorKind::Usage);
    std::fs::write(folder.from(), "{").expect("writes");
    folder.publish(&forced()).expect_err("is no row");
    assert_eq!(folder.text(), "old");
    assert_eq!(folder.0.path().read_dir().expect("lists").count(), 2, "nothing is left beside");
    let nowhere = folder.0.path().join("no/folder/x.ndjson");
    std::fs::write(folder.from(), THREE[0]).expect("writes");
    assert_eq!(
        publish(&folder.from(), &nowhere, &forced()).expect_err("no folder").kind(),
        ErrorKind::NotFound
    );
}

#[test]
fn repeated_searches_are_refused_or_the_first_kept() {
    let again = THREE[2].replace("acme deal", " ACME\\u00a0deal ").replace("\"id\":1", "\"id\":9");
    let other_limit = THREE[2].replace("\"id\":1", "\"id\":10,\"limit\":50");
    let folder = Folder::with(&[THREE[2], &again, THREE[0], &other_limit]);
    let error = folder.publish(&forced()).expect_err("repeats").to_string();
    assert!(error.contains("query `acme deal` 2 times (keep the first of each with --dedupe)"), "{error}");
    let header = folder.publish(&PublishOptions { dedupe: true, ..forced() }).expect("publishes");
    assert_eq!(header.row_count, 3, "another limit or other collections are another search");
    assert!(folder.text().contains("\"id\":1,") && !folder.text().contains("\"id\":9,"));
    let many: Vec<String> = (0..14).map(|i| THREE[1].replace("alice", &format!("p{}", i / 2))).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let error = Folder::with(&many).publish(&forced()).expect_err("repeats").to_string();
    assert!(error.matches(" 2 times").count() == 5 && error.contains("; and 2 more"), "{error}");
}

#[test]
fn personal_data_is_refused_with_line_and_family() {
    let personal = THREE[1].replace("kept", "jane@example.com");
    let folder = Folder::with(&[THREE[0], "", &personal]);
    let error = folder.publish(&forced()).expect_err("holds an address").to_string();
    assert!(error.contains("line 3: e-mail address in `note`") && error.contains("--allow-pii"), "{error}");
    folder.publish(&PublishOptions { allow_pii: true, ..forced() }).expect("publishes");
}

/// What a replay leaves out would make every gate fail, or show nothing.
#[test]
fn what_can_nowhere_be_run_again_is_refused_or_left_out() {
    let with = |keys: &str| THREE[1].replace("\"latency_ms\":4", keys);
    for (row, reason) in [
        (THREE[1].replace("alice", "[REDACTED]"), "personal data was taken out of its text"),
        (with("\"expansion_applied\":true"), "the query was expanded, and the row does not say to what"),
        (with("\"expand_enabled\":true"), "an expansion was asked for, and the row does not say"),
        (with("\"detail\":\"high\""), "detail `high` was asked for"),
        (with("\"limit\":0"), "its limit is 0"),
        (
            THREE[0].replace("\"latency_ms\":8", "\"vector_enabled\":true"),
            "`search` was by words and meaning",
        ),
    ] {
        let folder = Folder::with(&[THREE[2], "", &row]);
        let error = folder.publish(&forced()).expect_err(reason).to_string();
        assert!(error.contains("not every search can be run again as it was: line 3 `"), "{error}");
        assert!(
            error.contains(reason) && error.ends_with("(leave those out with --skip-unreplayable)"),
            "{error}"
        );
        let options = PublishOptions { skip_unreplayable: true, ..forced() };
        let published = publish(&folder.from(), &folder.to(), &options).expect("publishes");
        assert_eq!((published.left_out, published.header.row_count), (1, 1));
        let error = Folder::with(&[&row]).publish(&options).expect_err("nothing is left").to_string();
        assert!(error.contains("no search in it can be run again as it was"), "{error}");
    }
}

#[test]
fn bad_sources_are_refused() {
    let blank = THREE[0].replace("acme deal", " \u{3000}");
    let nameless = THREE[0].replace("[\"b\"]", "[\"\"]");
    let twice = THREE[0].replace("[\"b\"]", "[\"b\",\"a\",\"b\"]");
    let someday = THREE[0].replace("2026-05-03T00:00:00.000Z", "someday");
    for (rows, wanted) in [
        (vec![], "there are no rows"),
        (vec![THREE[0], "{}"], "captured.ndjson:2: `schema_version` is null"),
        (vec![blank.as_str()], "no search in it can be run again as it was: line 1 ` \u{3000}`: empty query"),
        (vec![&nameless], "captured.ndjson:1: `retrieved_slugs` has a document without a name"),
        (vec![THREE[1], &twice], "captured.ndjson:2: `retrieved_slugs` has `b` twice"),
        (vec![&someday], "captured.ndjson:1: `created_at` is `someday`, which is no moment"),
    ] {
        let error = Folder::with(&rows).publish(&forced()).expect_err(wanted).to_string();
        assert!(error.contains(wanted), "{error}");
    }
    let folder = Folder::with(&THREE);
    folder.publish(&forced()).expect("publishes");
    let error = publish(&folder.to(), &folder.0.path().join("again"), &forced()).expect_err("is a baseline");
    assert!(error.to_string().contains(":1: this is a baseline already"), "{error}");
    let label = Some(" ".to_string());
    let error = folder.publish(&PublishOptions { label, ..forced() }).expect_err("is no name").to_string();
    assert_eq!(error, "the label is empty (name the baseline with --label)");
    for floors in [
        Floors { jaccard: f64::NAN, ..Floors::default() },
        Floors { top1: 1.01, ..Floors::default() },
        Floors { latency_multiplier: 0.0, ..Floors::default() },
        Floors { latency_multiplier: f64::INFINITY, ..Floors::default() },
    ] {
        let error = folder.publish(&PublishOptions { floors, ..forced() }).expect_err("is no threshold");
        assert_eq!(error.kind(), ErrorKind::Usage);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_changed_byte_never_opens_as_something_else(at in 0usize..2000, byte: u8) {
        let folder = Folder::with(&THREE);
        folder.publish(&forced()).expect("publishes");
        let rows = Baseline::open(&folder.to()).expect("opens").rows().expect("reads").collect::<Result<Vec<_>>>().expect("are rows");
        let mut bytes = std::fs::read(folder.to()).expect("is there");
        let at = at % bytes.len();
        bytes[at] = byte;
        std::fs::write(folder.to(), bytes).expect("writes");
        if let Ok(mut baseline) = Baseline::open(&folder.to()) {
            let found = baseline.rows().expect("reads").collect::<Result<Vec<_>>>().expect("was checked");
            prop_assert_eq!(found, rows);
        }
    }
}
