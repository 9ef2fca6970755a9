//! A new measurement against an artefact.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::artefact::{Artefact, Candidate};
use crate::benchmarks::rankings::{Changes, Rankings, compare};
use crate::error::{Error, Result};

/// What changed since an artefact was made.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "rankgate bench hybrid-baseline --delta")]
pub struct Delta {
    /// Version of this format.
    pub version: u32,
    /// The artefact.
    pub baseline: String,
    /// By set, and `all`: how many points (hundredths) each figure rose.
    pub points: BTreeMap<String, Points>,
    /// p95 now over p95 then, as `total` and by stage; only for stages that both have.
    pub p95_ratio: BTreeMap<String, f64>,
    /// Why figures or latencies may differ that no change of the program explains.
    pub notes: Vec<String>,
    /// What became of the rankings.
    pub changes: Changes,
}

/// Changes of means, in hundredths.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Points {
    /// Of recall@5.
    #[serde(rename = "recall@5")]
    pub recall_5: f64,
    /// Of recall@10.
    #[serde(rename = "recall@10")]
    pub recall_10: f64,
    /// Of nDCG@10.
    #[serde(rename = "ndcg@10")]
    pub ndcg_10: f64,
    /// Of MRR.
    pub mrr: f64,
}

/// Compares the default candidate `now` with the one of `before`, which is called `name`.
///
/// Fails when either of them failed or is not there, or when they have no case in common.
pub fn delta(name: &str, before: &Artefact, now: &Artefact) -> Result<Delta> {
    let of = |artefact: &Artefact| artefact.candidate(&artefact.default).cloned();
    let (was, is) = (of(before)?, of(now)?);
    if let Some(why) = &is.failed {
        return Err(Error::input(format!("candidate `{}` failed: {why}", is.id)));
    }
    let changes = compare(&Rankings::of(name, before, &was)?, &Rankings::of("now", now, &is)?, &[])?;
    let points = is.figures.iter().filter_map(|(set, now)| {
        let was = was.figures.get(set)?;
        let points = |was: f64, now: f64| 100.0 * (now - was);
        let points = Points {
            recall_5: points(was.recall_5, now.recall_5),
            recall_10: points(was.recall_10, now.recall_10),
            ndcg_10: points(was.ndcg_10, now.ndcg_10),
            mrr: points(was.mrr, now.mrr),
        };
        Some((set.clone(), points))
    });
    let ratios = is.latency.iter().filter_map(|(stage, now)| {
        let was = was.latency.get(stage)?.p95_ms;
        (was > 0.0).then(|| (stage.clone(), now.p95_ms / was))
    });
    Ok(Delta {
        version: 1,
        baseline: name.into(),
        points: points.collect(),
        p95_ratio: ratios.collect(),
        notes: notes(before, now, &was, &is),
        changes,
    })
}

fn notes(before: &Artefact, now: &Artefact, was: &Candidate, is: &Candidate) -> Vec<String> {
    let mut notes = Vec::new();
    let mut differs = |differ: bool, what: &str| {
        if differ {
            notes.push(what.to_owned());
        }
    };
    differs(before.corpus != now.corpus, "the documents are others");
    differs(before.sets != now.sets, "the cases or their judgments are others");
    differs(was.id != is.id, "the settings name another way to search");
    differs(was.models != is.models, "the models are others");
    differs(before.machine != now.machine, "the machine is another: latencies cannot be compared");
    notes
}
