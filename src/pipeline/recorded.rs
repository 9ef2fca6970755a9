//! The one entry of every search: it is traced, and recorded where someone asked for that.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;

use super::fingerprints::CODE;
use super::found::Found;
use super::query::Pipeline;
use super::request::Request;
use crate::error::Result;
use crate::record::captured::Asked;
use crate::record::{Captured, Fingerprints, Tool};
use crate::settings::Thoroughness;
use crate::store::captures::Recorder;
use crate::trace::{Trace, capture};

/// The stages whose models a ranking depends on, as [`Pipeline::fingerprints`] names them. Stages inside of them carry
/// the same models again.
const STAGES_WITH_MODELS: [&str; 5] = ["vector", "rerank", "expansion", "evidence", "answer"];

impl Pipeline {
    /// The same pipeline, whose every search from now on is handed to `recorder`: what was asked and what came. A
    /// search that fails is not; of an answer its search is, and not its text.
    #[must_use]
    pub fn with_recorder(mut self, recorder: Arc<Recorder>) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// Runs one of the entries: what `work` returns, with the stages that ran.
    pub(super) fn entry<T>(
        &self,
        tool: Tool,
        request: &Request,
        work: impl FnOnce() -> Result<(Found, T)>,
    ) -> Result<(Found, T, Trace)> {
        let started = Instant::now();
        let (value, trace) = capture(work);
        let took = started.elapsed();
        let (found, more) = value?;
        if let Some(recorder) = &self.recorder {
            // Whole microseconds are as exact as it gets.
            let latency_ms = took.as_micros() as f64 / 1e3;
            let row =
                Captured { latency_ms: Some(latency_ms), ..self.captured(tool, request, &found, &trace) };
            let index = self.index.clone();
            recorder.record_with(move || {
                // Reads all documents' hashes the first time: not while someone waits for an answer.
                let corpus = index.documents_hash().ok().map(String::from);
                let collections = index.counts().cloned().unwrap_or_default();
                let (rules, index) = (index.rules(), Some(index.rules_hash()));
                let fingerprints =
                    Fingerprints { corpus, index, collections, rules, ..row.fingerprints.clone() };
                Captured { fingerprints, ..row }
            });
        }
        Ok((found, more, trace))
    }

    /// The row of a search, without its latency and the fingerprints of the documents.
    fn captured(&self, tool: Tool, request: &Request, found: &Found, trace: &Trace) -> Captured {
        let docids = distinct(found.ranking.hits.iter().map(|hit| hit.docid.as_str()));
        // Only these two choose how much is searched.
        let level = matches!(tool, Tool::Query | Tool::Ask).then(|| match (tool, &self.embedder) {
            (Tool::Ask, None) => Thoroughness::Fast,
            _ => self.level(request),
        });
        let hybrid = level.is_some_and(|level| level != Thoroughness::Fast);
        let ran: Vec<_> = trace.stages.iter().filter(|stage| stage.ran()).collect();
        let models = ran.iter().filter(|stage| STAGES_WITH_MODELS.contains(&stage.name.as_str()));
        let models: BTreeMap<String, String> =
            models.filter_map(|stage| Some((stage.name.clone(), stage.model()?.to_string()))).collect();
        let names = models.iter();
        let names = names.filter_map(|(stage, model)| Some((stage.clone(), self.model_name(stage, model)?)));
        let mut seen = HashSet::new();
        let firsts = found.ranking.hits.iter().filter(|hit| seen.insert(&hit.docid));
        let chunks: Option<Vec<i64>> = firsts.map(|hit| hit.chunk.map(i64::from)).collect();
        let mut row = Captured {
            retrieved_chunk_ids: chunks.unwrap_or_default(),
            source_ids: distinct(found.ranking.hits.iter().map(|hit| hit.collection.as_str())),
            expand_enabled: Some(hybrid && self.expands(request)),
            vector_enabled: Some(trace.ran("vector")),
            expansion_applied: Some(found.expansion.is_some()),
            remote: Some(false),
            asked: Asked {
                limit: Some(request.limit),
                collection: request.collection.clone(),
                thoroughness: level,
                fusion: request.fusion.filter(|_| hybrid),
                rerank: hybrid.then_some(request.rerank),
                graph: request.graph.filter(|_| hybrid),
                parts: request.modes.clone(),
                lang: request.lang.clone(),
            },
            stages: distinct(ran.iter().map(|stage| stage.name.as_str())),
            expansion: found.expansion.clone(),
            fingerprints: Fingerprints {
                model_names: names.collect(),
                models,
                code: Some(CODE.into()),
                settings: if hybrid { self.settings_of(request) } else { BTreeMap::new() },
                ..Fingerprints::default()
            },
            ..Captured::new(tool, &request.text, docids)
        };
        let expander = trace.stage("expansion").and_then(|stage| stage.fields.get("expander"));
        if let Some(expander @ Value::String(_)) = expander {
            row.extra.insert("expander".into(), expander.clone());
        }
        row.extra.insert("tool_version".into(), concat!("rankgate ", env!("CARGO_PKG_VERSION")).into());
        row
    }
}

/// Each text once, where it comes first.
fn distinct<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut seen = HashSet::new();
    texts.filter(|text| seen.insert(*text)).map(String::from).collect()
}
