//! What a candidate benchmark leaves behind.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::cases::{CorpusFacts, Set};
use super::recommend::{RESAMPLES, Recommendation, SEED, Scored, recommend};
use super::{Rerank, Spec};
use crate::benchmarks::artefact::fingerprint;
use crate::corpus::Judgments;
use crate::error::{Error, ErrorKind, Result};
use crate::metrics::{self, stats};
use crate::record::{json, utc};
use crate::settings::Fusion;

/// Version of the format.
pub(super) const VERSION: u32 = 1;

/// What an artefact is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Ways to search, compared.
    Candidates,
    /// The product's way alone.
    HybridBaseline,
}

impl Kind {
    /// As in the artefact, and its folder's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Candidates => "candidates",
            Self::HybridBaseline => "hybrid-baseline",
        }
    }
}

/// The result of a candidate benchmark: `rankgate bench candidates` and `hybrid-baseline`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "rankgate bench candidates")]
pub struct Artefact {
    /// Version of this format.
    pub version: u32,
    /// What it is about.
    pub kind: Kind,
    /// When it was measured, in UTC.
    pub generated_at: String,
    /// Where.
    pub machine: Machine,
    /// The program that measured.
    pub program: String,
    /// The documents.
    pub corpus: CorpusFacts,
    /// The cases, with the texts that were searched for and what is right.
    pub sets: Vec<SetTexts>,
    /// The candidate that the settings name.
    pub default: String,
    /// Those compared: the default first, then by embedder, the control last.
    pub candidates: Vec<Candidate>,
    /// What the figures say; absent where there is nothing to compare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recommendation: Option<Recommendation>,
    /// SHA-256 of all that does not depend on time or place; see [`fingerprint`].
    pub fingerprint: String,
}

/// Where a benchmark ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// Operating system.
    pub os: String,
    /// Processor architecture.
    pub arch: String,
    /// Cores that the program may use.
    pub cores: usize,
}

/// The cases of a set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SetTexts {
    /// What the set is called.
    pub name: String,
    /// Its cases.
    pub cases: Vec<CaseText>,
}

/// What was asked, and what is right.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseText {
    /// The case.
    pub id: String,
    /// What was searched for.
    pub query: String,
    /// Grades of documents.
    pub judgments: Judgments,
}

/// One way to search and how it did. One that failed has neither figures nor cases.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Candidate {
    /// `embedder/fusion/rerank`, or `bm25`.
    pub id: String,
    /// The embedder; absent for words alone, and so is the fusion.
    pub embedder: Option<String>,
    /// How the lanes become one.
    pub fusion: Option<Fusion>,
    /// How the head is reranked.
    pub rerank: Rerank,
    /// Why it failed.
    pub failed: Option<String>,
    /// Fingerprints of the models that ran, by stage.
    pub models: BTreeMap<String, String>,
    /// What it costs before the first search.
    pub cost: Option<Cost>,
    /// Figures by set, and of all cases as `all`.
    pub figures: BTreeMap<String, Figures>,
    /// Milliseconds a search, as `total` and by stage; a stage that is entered twice counts with its sum.
    pub latency: BTreeMap<String, Latency>,
    /// Every case, in the order of the sets.
    pub cases: Vec<CaseResult>,
}

/// What an embedder costs: shared by its candidates, which are measured in one process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Milliseconds to the first vector; absent for words alone.
    pub load_ms: Option<f64>,
    /// Milliseconds to read, and embed, all documents.
    pub index_ms: f64,
    /// Most resident memory of the process, indexing included.
    pub peak_rss_bytes: Option<u64>,
    /// Why that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_memory: Option<String>,
}

/// Means over cases, each in [0, 1].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figures {
    /// How many cases.
    pub cases: usize,
    /// Share of relevant documents among the first 5.
    #[serde(rename = "recall@5")]
    pub recall_5: f64,
    /// The same among the first 10.
    #[serde(rename = "recall@10")]
    pub recall_10: f64,
    /// Normalised discounted cumulative gain of the first 10.
    #[serde(rename = "ndcg@10")]
    pub ndcg_10: f64,
    /// 95 % bootstrap interval of it over the cases.
    #[serde(rename = "ndcg@10_ci")]
    pub ndcg_10_ci: [f64; 2],
    /// One over the rank of the first relevant document among the first 10.
    pub mrr: f64,
}

/// Percentiles over cases.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Half of the searches take no longer.
    pub p50_ms: f64,
    /// 95 % of them.
    pub p95_ms: f64,
}

/// One case of a candidate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseResult {
    /// The case.
    pub id: String,
    /// The first ten documents.
    pub ranking: Vec<String>,
    /// Further documents whose places are known: those judged, first of all.
    pub below: Vec<String>,
    /// Places of the documents of `ranking`, then of `below`: in each stage, before reranking (`fused`) and in the end
    /// (`ranked`); null where the stage does not have the document.
    pub places: BTreeMap<String, Vec<Option<usize>>>,
    /// The stages that ran.
    pub ran: Vec<String>,
    /// nDCG of the first 10, rounded to six digits.
    #[serde(rename = "ndcg@10")]
    pub ndcg_10: f64,
    /// Milliseconds.
    pub took_ms: f64,
}

impl Candidate {
    /// A candidate that failed.
    pub fn failed(spec: &Spec, why: impl Into<String>) -> Self {
        Self { failed: Some(why.into()), ..Self::of(spec) }
    }

    pub(super) fn of(spec: &Spec) -> Self {
        Self {
            id: spec.id(),
            embedder: spec.embedder.clone(),
            fusion: spec.embedder.as_ref().map(|_| spec.fusion),
            rerank: spec.rerank,
            ..Self::default()
        }
    }

    /// The figures of all cases; `None` when it failed.
    pub fn all(&self) -> Option<&Figures> {
        self.figures.get("all")
    }
}

impl Figures {
    /// The figures of rankings, each with its judgments; every case has a relevant document.
    pub fn new<'a>(cases: impl IntoIterator<Item = (&'a [String], &'a Judgments)>) -> Self {
        let mut values: [Vec<f64>; 4] = Default::default();
        for (ranking, judgments) in cases {
            let ranking = || ranking.iter().map(String::as_str);
            let found = [
                metrics::recall_at(5, ranking(), judgments),
                metrics::recall_at(10, ranking(), judgments),
                metrics::ndcg_at(10, ranking(), judgments),
                metrics::reciprocal_rank(ranking().take(10), judgments),
            ];
            values.iter_mut().zip(found).for_each(|(values, found)| values.push(found.unwrap_or(0.0)));
        }
        let mean = |values: &[f64]| stats::mean(values).unwrap_or(0.0);
        let interval = stats::bootstrap_mean_ci(&values[2], 0.95, RESAMPLES, SEED);
        Self {
            cases: values[0].len(),
            recall_5: mean(&values[0]),
            recall_10: mean(&values[1]),
            ndcg_10: mean(&values[2]),
            ndcg_10_ci: interval.map_or([0.0; 2], |interval| [interval.low, interval.high]),
            mrr: mean(&values[3]),
        }
    }
}

/// Cuts every number to six digits behind the point.
fn round(value: &mut Value) {
    match value {
        Value::Object(map) => map.values_mut().for_each(round),
        Value::Array(items) => items.iter_mut().for_each(round),
        Value::Number(number) if number.is_f64() => {
            let exact = number.as_f64().unwrap_or_default();
            *value = Value::from((exact * 1e6).round() / 1e6);
        }
        _ => {}
    }
}

impl Artefact {
    /// The artefact of measured candidates, the default first; with several, what they recommend.
    pub fn new(kind: Kind, corpus: CorpusFacts, sets: &[Set], candidates: Vec<Candidate>) -> Self {
        let default = candidates.first().map(|first| first.id.clone()).unwrap_or_default();
        let texts = |set: &Set| SetTexts {
            name: set.name.clone(),
            cases: set
                .cases
                .iter()
                .map(|case| CaseText {
                    id: case.query.id.clone(),
                    query: case.query.text.clone(),
                    judgments: case.judgments.clone(),
                })
                .collect(),
        };
        let mut artefact = Self {
            version: VERSION,
            kind,
            generated_at: utc(SystemTime::now()),
            machine: Machine {
                os: std::env::consts::OS.into(),
                arch: std::env::consts::ARCH.into(),
                cores: std::thread::available_parallelism().map_or(1, usize::from),
            },
            program: concat!("rankgate ", env!("CARGO_PKG_VERSION")).into(),
            corpus,
            sets: sets.iter().map(texts).collect(),
            default,
            candidates,
            recommendation: None,
            fingerprint: String::new(),
        };
        if kind == Kind::Candidates {
            let scored: Vec<Scored> = artefact.scored();
            artefact.recommendation = Some(recommend(&artefact.default, &scored));
        }
        // With few digits a number is the same after it was written and read, and on another processor.
        let mut value = artefact.value();
        round(&mut value);
        let fingerprint = fingerprint(&value);
        Self { fingerprint, ..serde_json::from_value(value).expect("is an artefact with shorter numbers") }
    }

    /// What a recommendation rests on: the candidates that did not fail.
    fn scored(&self) -> Vec<Scored> {
        let good = self.candidates.iter().filter(|candidate| candidate.failed.is_none());
        good.map(|candidate| {
            let ndcg: BTreeMap<&str, f64> =
                candidate.cases.iter().map(|case| (case.id.as_str(), case.ndcg_10)).collect();
            let of = |set: &SetTexts| {
                let values = set.cases.iter().map(|case| ndcg.get(case.id.as_str()).copied().unwrap_or(0.0));
                (set.name.clone(), values.collect())
            };
            Scored {
                id: candidate.id.clone(),
                ndcg: self.sets.iter().map(of).collect(),
                p95_ms: candidate.latency.get("total").map_or(f64::INFINITY, |total| total.p95_ms),
            }
        })
        .collect()
    }

    /// As JSON.
    pub fn value(&self) -> Value {
        serde_json::to_value(self).expect("is plain data with text keys")
    }

    /// Reads an artefact and checks that its fingerprint is its content's.
    ///
    /// Fails on a file that is none, is cut, was changed, or is of another version.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|e| Error::io("read the artefact", path, e))?;
        Self::parse(&text).map_err(|e| e.context(path.display()))
    }

    /// The same from its text.
    pub fn parse(text: &str) -> Result<Self> {
        let value = json::from_str(text).map_err(|e| {
            let cut = if e.is_eof() { "the file is cut: " } else { "" };
            Error::input(format!("{cut}{e}")).with_hint("restore the artefact")
        })?;
        let names = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
        if ![Kind::Candidates, Kind::HybridBaseline].map(Kind::name).contains(&names("kind")) {
            return Err(Error::input(
                "it is no artefact of `rankgate bench candidates` or `hybrid-baseline`",
            ));
        }
        if value.get("version").and_then(Value::as_u64) != Some(VERSION.into()) {
            let found = value.get("version").unwrap_or(&Value::Null);
            return Err(Error::new(
                ErrorKind::Version,
                format!("an artefact of version {found}, this program reads {VERSION}"),
            )
            .with_hint("use the program that wrote it, or measure again with --write"));
        }
        if fingerprint(&value) != names("fingerprint") {
            return Err(Error::input("its fingerprint is not that of its content: it was changed")
                .with_hint("restore it; a new measurement is a new artefact"));
        }
        serde_json::from_value(value).map_err(|e| Error::input(e.to_string()))
    }

    /// The candidate called `id`.
    pub fn candidate(&self, id: &str) -> Result<&Candidate> {
        self.candidates.iter().find(|candidate| candidate.id == id).ok_or_else(|| {
            let known: Vec<&str> = self.candidates.iter().map(|candidate| candidate.id.as_str()).collect();
            Error::not_found(format!("there is no candidate `{id}`"))
                .with_hint(format!("known are {}", known.join(", ")))
        })
    }
}
