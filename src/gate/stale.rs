//! Does a baseline belong to the corpus, index and models that are there now?

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::record::Fingerprints;
use crate::record::baseline::AllFingerprints;

mod words;

/// One thing that is no longer what it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// `corpus`, `index`, or the model of a stage: `model of vector`.
    pub what: String,
    /// The fingerprints in the baseline.
    pub baseline: BTreeSet<String>,
    /// The fingerprint now; absent when there is none.
    pub current: Option<String>,
    /// The same in words: which collections, rules or models; empty where the baseline does not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

/// What a comparison of fingerprints found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Staleness {
    /// What makes the baseline stale; empty for a fresh one.
    pub differences: Vec<Difference>,
    /// What a reader should know and is no reason to refuse.
    pub notes: Vec<String>,
}

/// Compares what a baseline was captured with to what is there now.
///
/// Other documents, another index or another model make it stale: the results would differ without any change of
/// the code. Other settings and other code do not, since those are what a gate is for; they are noted. Only models of
/// stages that the baseline used count. Rows that state nothing cannot be told to be stale, which is noted too.
pub fn stale(baseline: &AllFingerprints, current: &Fingerprints) -> Staleness {
    let mut differences = Vec::new();
    let mut compare = |what: String, then: &BTreeSet<String>, now: Option<&String>, words: &dyn Fn() -> _| {
        let same = then.len() == 1 && now.is_some_and(|now| then.contains(now));
        if !then.is_empty() && !same {
            let (baseline, current) = (then.clone(), now.cloned());
            differences.push(Difference { what, baseline, current, details: words() });
        }
    };
    let corpus = || words::corpus(baseline, current);
    compare("corpus".into(), &baseline.corpus, current.corpus.as_ref(), &corpus);
    let rules = || words::changed(&baseline.rules, &current.rules, |name| words::rule(name).into());
    compare("index".into(), &baseline.index, current.index.as_ref(), &rules);
    for (stage, then) in &baseline.models {
        let now = current.models.get(stage);
        let named = || words::model(baseline.model_names.get(stage), current.model_names.get(stage), now);
        compare(format!("model of {stage}"), then, now, &named);
    }
    let mut notes = words::changed(&baseline.settings, &current.settings, |name| format!("setting `{name}`"));
    notes.extend(words::silent(&baseline.silent));
    if let Some(now) = current.code.as_ref().filter(|now| baseline.code.iter().any(|then| then != *now)) {
        let then: Vec<&str> = baseline.code.iter().map(String::as_str).collect();
        notes.push(format!("captured with the code {}, replayed with {now}", then.join(", ")));
    }
    Staleness { differences, notes }
}

impl Staleness {
    /// The error that refuses a stale baseline, saying what differs; `name` is the baseline's. `None` for a fresh one.
    pub fn refusal(&self, name: &str) -> Option<Error> {
        let list: Vec<String> = self.differences.iter().map(Difference::words).collect();
        let error = || Error::input(format!("{name}: the baseline is stale: {}", list.join("; ")));
        (!list.is_empty()).then(|| {
            error().with_hint("capture and publish it anew, compare all the same with --allow-stale, or, where documents changed, gate by known \
                 answers with --qrels")
        })
    }

    /// Everything that a reader should know, for a comparison that is made all the same.
    pub fn all_notes(&self) -> Vec<String> {
        let stale = self.differences.iter().map(|difference| format!("stale: {}", difference.words()));
        stale.chain(self.notes.iter().cloned()).collect()
    }
}

impl Difference {
    /// ``corpus: collection `wiki` (12 documents) is new``; `index was 1a2b3c4d5e6f, is 6f5e4d3c2b1a` where no more is
    /// known.
    pub fn words(&self) -> String {
        if !self.details.is_empty() {
            return format!("{}: {}", self.what, self.details.join(", "));
        }
        // As much of a fingerprint as tells two apart.
        let short = |fingerprint: &String| fingerprint.chars().take(12).collect::<String>();
        let then: Vec<String> = self.baseline.iter().map(short).collect();
        let now = self.current.as_ref().map_or("absent".into(), short);
        format!("{} was {}, is {now}", self.what, then.join(" and "))
    }
}

#[cfg(test)]
mod tests;
