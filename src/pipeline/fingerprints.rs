//! What a ranking depends on beside what is asked.

use std::collections::BTreeMap;

use serde_json::json;

use super::Pipeline;
use super::request::Request;
use crate::error::Result;
use crate::record::Fingerprints;
use crate::settings::Fusion;

/// The version of this program and the hash of the sources that rank, which the build script computes: two builds of
/// different ranking code differ, whether or not anything was committed, and an edit elsewhere changes nothing.
pub(super) const CODE: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("RANKGATE_RANKING_SOURCES"));

impl Pipeline {
    /// The fingerprints of the documents, of the rules that indexed them, of the models by the stage that they run in,
    /// and the code: what a captured search carries, and what a gate compares before it replays.
    ///
    /// The same documents, indexed elsewhere by the same program, have the same fingerprints. Search settings stand
    /// beside them and make no baseline stale: a change of those is what a gate is for. Fails when the index cannot
    /// be read.
    pub fn fingerprints(&self) -> Result<Fingerprints> {
        let by_stage = self.models();
        let by = |model: &Model<'_>, part: &str| (model.stage.to_string(), part.to_string());
        Ok(Fingerprints {
            corpus: Some(self.index.documents_hash()?.to_string()),
            index: Some(self.index.rules_hash()),
            models: by_stage.iter().map(|model| by(model, model.fingerprint)).collect(),
            code: Some(CODE.into()),
            collections: self.index.collections()?.into_iter().collect(),
            rules: self.index.rules(),
            model_names: by_stage.iter().map(|model| by(model, model.name)).collect(),
            settings: self.ranking_settings(),
        })
    }

    /// The name of the model with this fingerprint in a stage.
    pub(super) fn model_name(&self, stage: &str, fingerprint: &str) -> Option<String> {
        let by_stage = self.models();
        let found = by_stage.iter().find(|model| model.stage == stage && model.fingerprint == fingerprint)?;
        Some(found.name.into())
    }

    fn models(&self) -> Vec<Model<'_>> {
        let embedder = self.embedder().map(|embedder| (embedder.fingerprint(), embedder.name()));
        let reranker = self.reranker.as_ref().map(|reranker| (reranker.fingerprint(), reranker.name()));
        let generator = self.generator.as_ref().map(|generator| (generator.fingerprint(), generator.name()));
        let expander = self.expander.model().map(|fingerprint| {
            let name = generator.filter(|(own, _)| *own == fingerprint).map(|(_, name)| name);
            (fingerprint, name.unwrap_or(self.expander.name()))
        });
        [
            ("vector", embedder),
            // Without a reranker the embedder's tokens decide.
            ("rerank", reranker.or(embedder)),
            ("expansion", expander),
            ("evidence", embedder),
            ("answer", generator),
        ]
        .into_iter()
        .filter_map(|(stage, model)| {
            let (fingerprint, name) = model?;
            Some(Model { stage, fingerprint, name })
        })
        .collect()
    }

    /// The settings that the rankings of hybrid searches depend on.
    fn ranking_settings(&self) -> BTreeMap<String, String> {
        let settings = &self.settings;
        [
            ("fusion", json!(settings.fusion).as_str().unwrap_or_default().to_string()),
            ("rrf_k", settings.rrf_k.to_string()),
            ("candidates", settings.candidates.to_string()),
            ("rerank_depth", settings.rerank_depth.to_string()),
            ("graph", settings.graph.to_string()),
            ("thoroughness", json!(settings.thoroughness).as_str().unwrap_or_default().to_string()),
        ]
        .map(|(name, value)| (name.to_string(), value))
        .into()
    }

    /// Those of them that a hybrid search with this request is left to.
    pub(super) fn settings_of(&self, request: &Request) -> BTreeMap<String, String> {
        let by_ranks = request.fusion.unwrap_or(self.settings.fusion) == Fusion::Rrf;
        let mut settings = self.ranking_settings();
        settings.retain(|name, _| match name.as_str() {
            "fusion" => request.fusion.is_none(),
            "rrf_k" => by_ranks,
            "rerank_depth" => request.rerank,
            "graph" => request.graph.is_none(),
            "thoroughness" => request.thoroughness.is_none(),
            _ => true,
        });
        settings
    }
}

struct Model<'a> {
    stage: &'static str,
    fingerprint: &'a str,
    name: &'a str,
}
