//! What a ranking depends on beside what is asked.

use super::Pipeline;
use crate::error::Result;
use crate::record::Fingerprints;

impl Pipeline {
    /// The fingerprints of the documents, of the rules that indexed them, of the models by the stage that they run in,
    /// and the version of this program: what a captured search carries, and what a gate compares before it replays.
    ///
    /// The same documents, indexed elsewhere by the same program, have the same fingerprints. Search settings are no
    /// part of them: a change of those is what a gate is for. Fails when the index cannot be read.
    pub fn fingerprints(&self) -> Result<Fingerprints> {
        let embedder = self.embedder().map(|embedder| embedder.fingerprint());
        let reranker = self.reranker.as_ref().map(|reranker| reranker.fingerprint());
        let models = [
            ("vector", embedder),
            // Without a reranker the embedder's tokens decide.
            ("rerank", reranker.or(embedder)),
            ("expansion", self.expander.model()),
            ("evidence", embedder),
            ("answer", self.generator.as_ref().map(|generator| generator.fingerprint())),
        ];
        let models =
            models.into_iter().filter_map(|(stage, model)| Some((stage.to_string(), model?.to_string())));
        Ok(Fingerprints {
            corpus: Some(self.index.documents_hash()?.to_string()),
            index: Some(self.index.rules_hash()),
            models: models.collect(),
            code: Some(env!("CARGO_PKG_VERSION").into()),
        })
    }
}
