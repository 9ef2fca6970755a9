//! What differs, in words that a person can act on.

use std::collections::{BTreeMap, BTreeSet};

use crate::record::Fingerprints;
use crate::record::baseline::{AllFingerprints, Silent};

/// Which collections came, went or changed.
pub(super) fn corpus(baseline: &AllFingerprints, current: &Fingerprints) -> Vec<String> {
    let now = &current.collections;
    let then: Vec<&BTreeMap<String, u64>> = baseline.collections.iter().collect();
    let [then] = then[..] else {
        if then.len() > 1 {
            return vec![format!("its rows were captured with {} different corpora", then.len())];
        }
        // Older rows only name the collections of their hits.
        let gone = baseline.silent.sources.iter().filter(|name| !now.is_empty() && !now.contains_key(*name));
        return gone.map(|name| format!("collection `{name}` is gone")).collect();
    };
    let mut found = Vec::new();
    for (name, count) in then {
        match now.get(name) {
            None => found.push(format!("collection `{name}` ({count} documents) is gone")),
            Some(now) if now != count => {
                found.push(format!("collection `{name}` had {count} documents, has {now}"));
            }
            Some(_) => {}
        }
    }
    let new = now.iter().filter(|(name, _)| !then.contains_key(*name));
    found.extend(new.map(|(name, count)| format!("collection `{name}` ({count} documents) is new")));
    if found.is_empty() {
        let all: Vec<String> = now.iter().map(|(name, count)| format!("`{name}` ({count})")).collect();
        found.push(format!("documents changed, their number did not: {}", all.join(", ")));
    }
    found
}

/// The values that are not what they were: `setting `fusion` was adaptive, is rrf`.
pub(super) fn changed(
    then: &BTreeMap<String, BTreeSet<String>>,
    now: &BTreeMap<String, String>,
    name: impl Fn(&str) -> String,
) -> Vec<String> {
    let changed = then.iter().filter(|(key, then)| then.len() != 1 || then.first() != now.get(*key));
    changed
        .map(|(key, then)| {
            let now = now.get(key).map_or("absent", String::as_str);
            format!("{} was {}, is {now}", name(key), list(then))
        })
        .collect()
}

/// A rule of the index as people call it.
pub(super) fn rule(name: &str) -> &str {
    match name {
        "words" => "the rule for words",
        "passages" => "the rule for passages",
        "vectors" => "the model of the vectors",
        other => other,
    }
}

/// Another model by name. One name with two fingerprints is another revision or runtime of it.
pub(super) fn model(
    then: Option<&BTreeSet<String>>,
    now: Option<&String>,
    fingerprint: Option<&String>,
) -> Vec<String> {
    let Some(then) = then else { return Vec::new() };
    vec![match now {
        None if fingerprint.is_none() => format!("was `{}`, and there is none", list(then)),
        None => return Vec::new(),
        Some(now) if then.len() == 1 && then.contains(now) => {
            format!("`{now}`, in another revision or with another runtime")
        }
        Some(now) => format!("was `{}`, is `{now}`", list(then)),
    }]
}

/// What rows do not state, with how many of them.
pub(super) fn silent(silent: &Silent) -> Vec<String> {
    let note = |(count, what): (usize, &str)| {
        let rows = match silent.rows {
            all if count == all => "no row of the baseline states a".to_string(),
            all => format!("{count} of {all} rows state no"),
        };
        (count > 0).then(|| format!("{rows} fingerprint of the {what}: it may be stale"))
    };
    [(silent.corpus, "corpus"), (silent.index, "index"), (silent.model, "model of vector")]
        .into_iter()
        .filter_map(note)
        .collect()
}

fn list(values: &BTreeSet<String>) -> String {
    values.iter().map(String::as_str).collect::<Vec<_>>().join(" and ")
}
