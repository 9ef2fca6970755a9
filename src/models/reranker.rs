//! Cross-encoders: query and passage through one transformer, one score out.

use once_cell::sync::OnceCell;

use super::onnx::Model;
use super::resolve::Resolved;
use super::{Reranker, logits};
use crate::error::Result;
use crate::settings::ModelSettings;

/// A cross-encoder that loads its model at the first pair.
pub(super) struct CrossEncoder {
    resolved: Resolved,
    settings: ModelSettings,
    fingerprint: String,
    model: OnceCell<Model>,
}

impl CrossEncoder {
    /// Nothing is loaded yet.
    pub(super) fn new(resolved: Resolved, settings: &ModelSettings) -> Result<Self> {
        let fingerprint = resolved.fingerprint(settings)?;
        Ok(Self { resolved, settings: settings.clone(), fingerprint, model: OnceCell::new() })
    }
}

impl Reranker for CrossEncoder {
    fn name(&self) -> &str {
        &self.resolved.name
    }

    fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    fn score(&self, query: &str, passages: &[&str]) -> Result<Vec<f32>> {
        let Resolved { query_prefix, passage_prefix, .. } = &self.resolved;
        let model = self
            .model
            .get_or_try_init(|| logits::open(self.resolved.files(&self.settings)?, &self.settings))?;
        let query = format!("{query_prefix}{query}");
        let pairs = passages.iter().map(|passage| format!("{passage_prefix}{passage}"));
        logits::score(model, &query, &pairs.collect::<Vec<_>>())
    }
}
