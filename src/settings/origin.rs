//! Where each setting's value comes from.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{PROJECT_FILE, Settings, home, read_table};
use crate::error::{Error, Result};

/// One setting in force.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Origin {
    /// Its key: `search.fusion`.
    pub key: String,
    /// Its value; null where it has none.
    pub value: Value,
    /// `default`, the file, or the variable that set it.
    pub origin: String,
}

/// The variables that set a setting, and which one. `Settings::apply_variables` reads them.
pub(super) const VARIABLES: [(&str, &str); 10] = [
    ("RANKGATE_EMBEDDER", "models.embedder"),
    ("RANKGATE_RERANKER", "models.reranker"),
    ("RANKGATE_PRESET", "models.preset"),
    ("RANKGATE_SERVER", "models.server"),
    ("RANKGATE_THREADS", "models.threads"),
    ("RANKGATE_OFFLINE", "models.offline"),
    ("RANKGATE_MODELS_FROM", "models.local_folder"),
    ("ORT_DYLIB_PATH", "models.runtime"),
    ("RANKGATE_FUSION", "search.fusion"),
    ("RANKGATE_THOROUGHNESS", "search.thoroughness"),
];

impl Settings {
    /// Every setting in force for a project in `project`, in the order of the schema, and what set it. Fails like
    /// [`load`](Self::load).
    pub fn origins(project: &Path) -> Result<Vec<Origin>> {
        let settings = Self::load(project)?;
        let files = [project.join(PROJECT_FILE), home()?.join("config.toml")];
        let layers = files
            .iter()
            .map(|file| Ok((file, read_table(file)?.unwrap_or_default())))
            .collect::<Result<Vec<_>>>()?;
        let values = serde_json::to_value(&settings)
            .map_err(|e| Error::input("the settings cannot be shown").with_source(e))?;
        let mut leaves = Vec::new();
        flatten(String::new(), values, &mut leaves);
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let origin = |key: &str| {
            if let Some((name, _)) = VARIABLES.iter().find(|(name, sets)| *sets == key && set(name)) {
                return name.to_string();
            }
            let file = layers.iter().find(|(_, table)| has(table, key));
            file.map_or("default".into(), |(file, _)| file.display().to_string())
        };
        Ok(leaves.into_iter().map(|(key, value)| Origin { origin: origin(&key), key, value }).collect())
    }
}

/// The values that are no tables, each with its dotted key.
fn flatten(key: String, value: Value, leaves: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(table) => {
            for (name, value) in table {
                let key = if key.is_empty() { name } else { format!("{key}.{name}") };
                flatten(key, value, leaves);
            }
        }
        value => leaves.push((key, value)),
    }
}

/// Whether a table of a file sets `key`. Names of models may hold dots, so the longest name that fits is taken.
fn has(table: &toml::Table, key: &str) -> bool {
    table.iter().any(|(name, value)| {
        key == name
            || key
                .strip_prefix(name.as_str())
                .and_then(|rest| rest.strip_prefix('.'))
                .is_some_and(|rest| matches!(value, toml::Value::Table(below) if has(below, rest)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_in_its_table_alone() {
        let table: toml::Table =
            toml::from_str("[models]\nthreads = 2\n[models.custom.\"a.b\"]\nrepo = \"x/y\"").expect("parses");
        assert!(has(&table, "models.threads") && has(&table, "models.custom.a.b.repo"));
        assert!(
            !has(&table, "threads") && !has(&table, "models.offline") && !has(&table, "models.threads.x")
        );
    }

    #[test]
    fn every_variable_that_is_read_is_listed_with_a_setting_that_is_there() {
        let asked = std::cell::RefCell::new(Vec::new());
        let mut settings = Settings::default();
        let read = |name: &str| {
            asked.borrow_mut().push(name.to_string());
            None
        };
        settings.apply_variables(read).expect("sets nothing");
        assert_eq!(*asked.borrow(), VARIABLES.map(|(name, _)| name));
        let mut leaves = Vec::new();
        flatten(String::new(), serde_json::to_value(Settings::default()).expect("is JSON"), &mut leaves);
        for (name, key) in VARIABLES {
            assert!(leaves.iter().any(|(leaf, _)| leaf == key), "{name}: {key}");
        }
    }
}
