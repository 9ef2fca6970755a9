use proptest::prelude::*;

use super::*;
use crate::corpus::Mode;

const KEYS: [&str; 17] = [
    "schema_version",
    "id",
    "tool_name",
    "query",
    "retrieved_slugs",
    "retrieved_chunk_ids",
    "source_ids",
    "expand_enabled",
    "detail",
    "detail_resolved",
    "vector_enabled",
    "expansion_applied",
    "latency_ms",
    "remote",
    "job_id",
    "subagent_id",
    "created_at",
];

fn written(row: &Captured) -> String {
    let mut out = Vec::new();
    row.write(&mut out).expect("memory takes it");
    String::from_utf8(out).expect("JSON is UTF-8")
}

fn first(text: &str) -> Result<Captured> {
    parse("f", text.as_bytes()).next().expect("has a line").map(|(_, row)| row)
}

#[test]
fn the_agreed_keys_come_first_and_in_order() {
    let row = Captured { latency_ms: Some(12.0), ..Captured::new(Tool::Vsearch, "x", vec!["a".into()]) };
    let text = written(&row);
    let object: Map<String, Value> = serde_json::from_str(&text).expect("is JSON");
    assert_eq!(object.keys().collect::<Vec<_>>(), KEYS);
    assert!(text.contains(r#""latency_ms":12,"#) && text.contains(r#""tool_name":"vsearch""#), "{text}");
    assert_eq!(text.matches('\n').count(), 1);
}

#[test]
fn rows_of_other_programs_keep_their_keys() {
    let text = r#"{"schema_version":1,"zeta":[1,{"b":2,"a":1}],"id":7,"tool_name":"query","query":"acme\ndeal","retrieved_slugs":["a","b"],"source_ids":["default"],"detail":"low","latency_ms":1.25,"limit":3,"as_of_ts":null}"#;
    let row = first(text).expect("is a row");
    assert_eq!(row.extra.keys().collect::<Vec<_>>(), ["zeta", "as_of_ts"]);
    assert_eq!((row.asked.limit, row.latency_ms, row.detail.as_deref()), (Some(3), Some(1.25), Some("low")));
    assert_eq!(first(&written(&row)).expect("is a row"), row);
}

#[test]
fn written_by_hand() {
    let file = concat!(
        "\u{feff}{\"_kind\":\"baseline_metadata\",\"schema_version\":99}\r\n\r\n",
        "{\"schema_version\":1,\"id\":1,\"tool_name\":\"query\",\"query\":\"who is alice\",\"retrieved_slugs\":[\"people/alice\"],",
        "\"expand_enabled\":false,\"detail\":null,\"latency_ms\":0,\"remote\":false}\r\n",
        "{\"schema_version\":1.0,\"id\":1,\"tool_name\":\"search\",\"query\":\"\",\"retrieved_slugs\":[]}",
    );
    let rows: Vec<_> = parse("f", file.as_bytes()).collect::<Result<_>>().expect("are rows");
    assert_eq!(
        rows.iter().map(|(line, row)| (*line, row.tool_name)).collect::<Vec<_>>(),
        [(3, Tool::Query), (4, Tool::Search)]
    );
}

#[test]
fn errors_name_file_line_and_key() {
    for (row, wanted) in [
        (r#"{"tool_name":"query","query":"x","retrieved_slugs":[]}"#, "f:1: `schema_version` is null"),
        (r#"{"schema_version":"1"}"#, "f:1: `schema_version` is a string"),
        (r#"{"schema_version":2}"#, "f:1: `schema_version` is 2, this program reads 1 (update rankgate"),
        (r#"{"schema_version":0}"#, "f:1: `schema_version` is 0"),
        (r#"{"schema_version":1,"query":"x","retrieved_slugs":[]}"#, "f:1: `tool_name` is missing"),
        (r#"{"schema_version":1,"tool_name":"query","query":null}"#, "f:1: `query` is missing"),
        (r#"{"schema_version":1,"tool_name":"grep"}"#, "f:1: `tool_name`: unknown variant `grep`"),
        (
            r#"{"schema_version":1,"tool_name":"query","query":"x","retrieved_slugs":"a"}"#,
            "f:1: `retrieved_slugs`: invalid type",
        ),
        (r#"{"schema_version":1,"latency_ms":"fast"}"#, "f:1: `latency_ms`: invalid type: string"),
        (
            r#"{"schema_version":1,"tool_name":"query","query":"x","retrieved_slugs":[],"latency_ms":-1}"#,
            "f:1: `latency_ms` is negative",
        ),
        ("7", "f:1: a number where an object belongs"),
    ] {
        let error = first(row).expect_err(row).to_string();
        assert!(error.starts_with(wanted), "{error}");
    }
    assert_eq!(first(r#"{"schema_version":2}"#).expect_err("is newer").kind(), ErrorKind::Version);
}

#[test]
fn personal_data_may_be_in_any_text() {
    let mut row = Captured::new(Tool::Ask, "q", vec!["slug".into()]);
    row.asked.parts = vec![QueryMode { mode: Mode::Hyde, text: "part".into() }];
    row.expansion = Some(Expansion { hyde: Some("hyde".into()), ..Expansion::default() });
    row.extra = serde_json::from_str(r#"{"note":{"by":["me"]}}"#).expect("is JSON");
    let texts: Vec<_> = row.texts().into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["q", "part", "hyde", "slug", "note", "by", "me"]);
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a\\\\\"\u{e9}\u{2028}\n]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::btree_map("[a-c]", inner, 0..3).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

/// Objects that are nearly rows: right and wrong values at the keys that matter.
fn nearly_a_row() -> impl Strategy<Value = Map<String, Value>> {
    let key = prop_oneof![
        proptest::sample::select(KEYS.to_vec()).prop_map(str::to_string),
        proptest::sample::select(vec![
            "limit",
            "collection",
            "thoroughness",
            "parts",
            "stages",
            "expansion",
            "fingerprints",
            "_kind"
        ])
        .prop_map(str::to_string),
        "[x-z]{1,2}",
    ];
    let base = r#"{"schema_version":1,"id":3,"tool_name":"query","query":"q","retrieved_slugs":["a"],"latency_ms":1.5}"#;
    proptest::collection::vec((key, value()), 0..6).prop_map(move |changes| {
        let mut object: Map<String, Value> = serde_json::from_str(base).expect("is JSON");
        object.extend(changes);
        object
    })
}

/// The number of cases is part of the promise, whatever PROPTEST_CASES says.
fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(50_000))]

    #[test]
    fn what_is_read_and_written_is_read_again(object in nearly_a_row()) {
        if let Ok(row) = Captured::from_object(object) {
            let again = first(&written(&row)).map_err(|e| TestCaseError::fail(e.to_string()))?;
            prop_assert_eq!(again, row);
        }
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..60),
        "(\\{\"schema_version\":1|\"query\":|\"x\"|,|\\}|\\[|\n|\r\n|null|1e999|\u{feff}|\\\\u){0,12}".prop_map(String::into_bytes),
    ]) {
        for row in parse("f", bytes.as_slice()) {
            if let Err(e) = row {
                prop_assert!(e.to_string().starts_with("f:"), "{}", e);
            }
        }
    }
}
