//! JSON that means one thing: no key stands twice in what is read, and what is fingerprinted has one form.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::corpus::hex;

/// Reads a JSON text; a key that an object has twice is an error like any other of its syntax.
///
/// ```
/// let error = rankgate::record::json::from_str(r#"{"a": 1, "b": {"c": 1, "c": 2}}"#).expect_err("is ambiguous");
/// assert!(error.to_string().starts_with("key `c` stands twice"));
/// ```
pub fn from_str(text: &str) -> serde_json::Result<Value> {
    serde_json::from_str::<Unique>(text).map(|unique| unique.0)
}

/// The SHA-256 of a value's canonical JSON, in hexadecimal: keys in the order of their characters, no white space.
///
/// ```
/// use serde_json::json;
/// let one = rankgate::record::json::fingerprint(&json!({"a": 1, "b": [true, null]}));
/// assert_eq!(one, rankgate::record::json::fingerprint(&json!({"b": [true, null], "a": 1})));
/// assert_eq!(one.len(), 64);
/// ```
pub fn fingerprint(value: &Value) -> String {
    let mut canonical = value.clone();
    canonical.sort_all_objects();
    hex(&Sha256::digest(canonical.to_string()))
}

struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue).map(Self)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Unique(value)) = list.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let Unique(value) = entries.next_value()?;
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!("key `{key}` stands twice")));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}
