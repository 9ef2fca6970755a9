//! The proof that a converted model is right: known texts get the vectors of the original implementation.

use std::path::Path;

use serde::Deserialize;

use super::catalogue::{Conventions, Entry, Use};
use super::embedder;
use super::onnx::Files;
use super::resolve::Resolved;
use super::{Embedder, TextRole};
use crate::error::{Error, ErrorKind, Result};
use crate::settings::ModelSettings;

/// Nine texts in several scripts, with their vectors (times 10⁵).
const EXPECTED: &str = include_str!("e5s1-check.json");

/// The least cosine of a vector with its expectation.
const LEAST_COSINE: f32 = 0.999;

#[derive(Deserialize)]
struct Expected {
    query: bool,
    text: String,
    vector: Vec<i32>,
}

/// Embeds the known texts with the model in `folder` and compares.
///
/// Fails, naming the text, when a cosine is below 0.999.
pub(super) fn vectors(folder: &Path, entry: &'static Entry, settings: &ModelSettings) -> Result<()> {
    let Use::Embedder(conventions) = entry.role else { return Ok(()) };
    let files = Files {
        name: entry.name.into(),
        model: folder.join("model.onnx"),
        tokenizer: folder.join("tokenizer.json"),
        max_tokens: conventions.max_tokens,
    };
    let model = embedder::open(files, settings)?;
    // The known vectors are the model's own, with everything in them.
    let resolved = Resolved::pinned(entry, Conventions { languages: None, ..conventions });
    against_expected(&embedder::OnnxEmbedder::with_model(resolved, settings, model)?)
}

/// Compares what `embedder` gives for the known texts.
pub(super) fn against_expected(embedder: &dyn Embedder) -> Result<()> {
    let expected: Vec<Expected> = serde_json::from_str(EXPECTED)
        .map_err(|e| Error::new(ErrorKind::Internal, "e5s1-check.json").with_source(e))?;
    for case in &expected {
        let role = if case.query { TextRole::Query } else { TextRole::Passage };
        let found = embedder.embed(&[&case.text], role)?;
        let norm = case.vector.iter().map(|&x| (x as f32).powi(2)).sum::<f32>().sqrt();
        let cosine = found.data.iter().zip(&case.vector).map(|(x, &y)| x * y as f32).sum::<f32>() / norm;
        if cosine.is_nan() || cosine < LEAST_COSINE {
            return Err(Error::new(
                ErrorKind::Model,
                format!("`{}` gives a wrong vector for {:?}: cosine {cosine}", embedder.name(), case.text),
            )
            .with_hint("the runtime's arithmetic differs from the pinned one: unset ORT_DYLIB_PATH"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::catalogue;

    /// The conversion from E5S1 keeps what the original implementation computes.
    #[test]
    fn the_converted_model_gives_the_reference_vectors() {
        let entry = catalogue::find("multilingual-e5-small").expect("is in the catalogue");
        let Use::Embedder(conventions) = entry.role else { panic!("is an embedder") };
        let plain = Conventions { languages: None, ..conventions };
        let settings = ModelSettings::default();
        let model = embedder::OnnxEmbedder::new(Resolved::pinned(entry, plain), &settings).expect("opens");
        against_expected(&model).expect("agrees");
        let neutral =
            embedder::OnnxEmbedder::new(Resolved::pinned(entry, conventions), &settings).expect("opens");
        assert!(against_expected(&neutral).is_err(), "the check sees a changed vector");
    }
}
