//! A captured search as a row of the table.

use std::time::SystemTime;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, ToSql, params_from_iter};
use serde_json::{Map, Value};

use super::MAX_QUERY;
use crate::error::{Error, Result};
use crate::record::captured::VERSION;
use crate::record::{Captured, MAX_LINE, utc};

/// The columns behind `id`, in the order of the table; each is the key of the same name of a row.
const COLUMNS: [&str; 26] = [
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
    "limit",
    "collection",
    "thoroughness",
    "fusion",
    "rerank",
    "graph",
    "parts",
    "lang",
    "stages",
    "expansion",
    "fingerprints",
];
/// Columns that hold true or false.
const FLAGS: [&str; 6] =
    ["expand_enabled", "vector_enabled", "expansion_applied", "remote", "rerank", "graph"];
/// Columns that hold JSON.
const LISTS: [&str; 7] =
    ["retrieved_slugs", "retrieved_chunk_ids", "source_ids", "parts", "stages", "expansion", "fingerprints"];

/// Adds a row, with a new id, and the moment of now unless it has one.
pub(super) fn insert(connection: &Connection, row: &Captured) -> rusqlite::Result<()> {
    let not_json = |e: serde_json::Error| rusqlite::Error::ToSqlConversionFailure(e.into());
    let text = serde_json::to_string(row).map_err(not_json)?;
    // `length` of the table's check stops at a NUL.
    if text.len() > MAX_LINE || row.query.chars().count() > MAX_QUERY {
        let violation = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CONSTRAINT_CHECK);
        return Err(rusqlite::Error::SqliteFailure(violation, None));
    }
    let Value::Object(mut object) = serde_json::to_value(row).map_err(not_json)? else {
        return Err(rusqlite::Error::InvalidQuery); // a struct is an object
    };
    object.shift_remove("schema_version");
    object.shift_remove("id");
    if row.created_at.is_none() {
        object.insert("created_at".into(), utc(SystemTime::now()).into());
    }
    let mut values: Vec<Box<dyn ToSql>> = Vec::with_capacity(COLUMNS.len() + 1);
    for column in COLUMNS {
        values.push(match object.shift_remove(column) {
            None | Some(Value::Null) => Box::new(None::<String>),
            Some(Value::Bool(flag)) => Box::new(flag),
            Some(Value::String(text)) => Box::new(text),
            Some(Value::Number(number)) => match number.as_i64() {
                Some(whole) => Box::new(whole),
                None => Box::new(number.as_f64()),
            },
            Some(json) => Box::new(json.to_string()),
        });
    }
    values.push(Box::new(Value::Object(object).to_string()));
    let names: String = COLUMNS.iter().map(|column| format!("\"{column}\", ")).collect();
    let marks = "?, ".repeat(COLUMNS.len());
    let sql = format!("insert into eval_candidates ({names}extra) values ({marks}?)");
    connection.prepare_cached(&sql)?.execute(params_from_iter(values)).map(drop)
}

/// The row of a statement that selects all columns.
pub(super) fn read(row: &Row<'_>) -> Result<Captured> {
    let bad = |e: rusqlite::Error| Error::input("cannot be read").with_source(e);
    let json = |column: &str, text: &str| -> Result<Value> {
        serde_json::from_str(text).map_err(|e| Error::input(format!("`{column}` is not JSON: {e}")))
    };
    let text = |column: &str| -> Result<Option<String>> { row.get(column).map_err(bad) };
    let mut object = Map::new();
    object.insert("schema_version".into(), VERSION.into());
    object.insert("id".into(), row.get::<_, i64>("id").map_err(bad)?.into());
    for column in COLUMNS {
        let value = if LISTS.contains(&column) {
            match text(column)? {
                Some(text) => json(column, &text)?,
                None => continue,
            }
        } else {
            match row.get_ref(column).map_err(bad)? {
                ValueRef::Null => continue,
                ValueRef::Integer(number) if FLAGS.contains(&column) => (number != 0).into(),
                ValueRef::Integer(number) => number.into(),
                ValueRef::Real(number) => number.into(),
                ValueRef::Text(_) => text(column)?.into(),
                ValueRef::Blob(_) => return Err(Error::input(format!("`{column}` holds bytes"))),
            }
        };
        object.insert(column.into(), value);
    }
    if let Value::Object(extra) = json("extra", &text("extra")?.unwrap_or_default())? {
        // A later version may know a key as a column: the column counts.
        extra.into_iter().for_each(|(key, value)| _ = object.entry(key).or_insert(value));
    }
    Captured::from_object(object)
}
