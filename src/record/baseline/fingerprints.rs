//! The fingerprints of many rows.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::Captured;

type Sets = BTreeMap<String, BTreeSet<String>>;

/// All fingerprints that the rows of a baseline carry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AllFingerprints {
    /// Of the documents.
    pub corpus: BTreeSet<String>,
    /// Of the index.
    pub index: BTreeSet<String>,
    /// Of the models, by stage.
    pub models: Sets,
    /// Versions of the code.
    pub code: BTreeSet<String>,
    /// The documents of each collection; one entry for each state that rows were captured with.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub collections: BTreeSet<BTreeMap<String, u64>>,
    /// The rules for words and passages, and the model of the vectors.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub rules: Sets,
    /// Names of the models, by stage.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub model_names: Sets,
    /// Search settings.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: Sets,
    /// How many rows there are, and what they do not state: counted from the rows, never written.
    #[serde(skip)]
    pub silent: Silent,
}

/// How many rows state no fingerprint of something that they depend on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Silent {
    /// All rows.
    pub rows: usize,
    /// Those without one of the documents.
    pub corpus: usize,
    /// Those without one of the index.
    pub index: usize,
    /// Those searched by meaning without one of the embedder.
    pub model: usize,
    /// The collections of all hits: all that is known of them where rows do not state `collections`.
    pub sources: BTreeSet<String>,
}

impl AllFingerprints {
    /// Adds those of one row.
    pub fn add(&mut self, row: &Captured) {
        let Self { silent, .. } = self;
        let own = &row.fingerprints;
        silent.rows += 1;
        silent.corpus += usize::from(own.corpus.is_none());
        silent.index += usize::from(own.index.is_none());
        let by_meaning = row.vector_enabled == Some(true) || row.stages.iter().any(|stage| stage == "vector");
        silent.model += usize::from(by_meaning && !own.models.contains_key("vector"));
        row.source_ids.iter().filter(|source| !source.is_empty()).for_each(|source| {
            if !silent.sources.contains(source) {
                silent.sources.insert(source.clone());
            }
        });

        self.corpus.extend(own.corpus.clone());
        self.index.extend(own.index.clone());
        self.code.extend(own.code.clone());
        if !own.collections.is_empty() && !self.collections.contains(&own.collections) {
            self.collections.insert(own.collections.clone());
        }
        for (all, own) in [
            (&mut self.models, &own.models),
            (&mut self.rules, &own.rules),
            (&mut self.model_names, &own.model_names),
            (&mut self.settings, &own.settings),
        ] {
            for (key, value) in own {
                all.entry(key.clone()).or_default().insert(value.clone());
            }
        }
    }
}

impl<'a> FromIterator<&'a Captured> for AllFingerprints {
    fn from_iter<I: IntoIterator<Item = &'a Captured>>(rows: I) -> Self {
        let mut all = Self::default();
        rows.into_iter().for_each(|row| all.add(row));
        all
    }
}
