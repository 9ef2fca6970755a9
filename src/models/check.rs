//! The proof that a converted model is right: known texts get the vectors of the original implementation.

use std::path::Path;

use serde::Deserialize;

use super::catalogue::{Conventions, Entry, Use};
use super::onnx::{Files, Model};
use super::vectors::{open, pooled};
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

/// Embeds the known texts with the model in `folder` and compares, before anything is taken out of the vectors.
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
    against_expected(&open(files, settings)?, entry.name, conventions)
}

/// Compares what `model` gives for the known texts.
fn against_expected(model: &Model, name: &str, conventions: Conventions<'_>) -> Result<()> {
    let expected: Vec<Expected> = serde_json::from_str(EXPECTED)
        .map_err(|e| Error::new(ErrorKind::Internal, "e5s1-check.json").with_source(e))?;
    for case in &expected {
        let prefix = if case.query { conventions.query_prefix } else { conventions.passage_prefix };
        let tokens = model.tokens(&format!("{prefix}{}", case.text), None)?;
        let found = pooled(model, &[tokens], conventions.pooling, conventions.dims)?;
        let expected: Vec<f32> = case.vector.iter().map(|&x| x as f32).collect();
        let cosine = dot(&found, &expected) / (dot(&found, &found) * dot(&expected, &expected)).sqrt();
        if cosine.is_nan() || cosine < LEAST_COSINE {
            return Err(Error::new(
                ErrorKind::Model,
                format!("`{name}` gives a wrong vector for {:?}: cosine {cosine}", case.text),
            )
            .with_hint("the runtime's arithmetic differs from the pinned one: unset ORT_DYLIB_PATH"));
        }
    }
    Ok(())
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::catalogue;
    use crate::models::fetch::{Trust, ensure};

    /// The conversion from E5S1 keeps what the original implementation computes.
    #[test]
    fn the_converted_model_gives_the_reference_vectors() {
        let entry = catalogue::find("multilingual-e5-small").expect("is in the catalogue");
        let Use::Embedder(conventions) = entry.role else { panic!("is an embedder") };
        let settings = ModelSettings::default();
        let folder = ensure(entry, &settings, Trust::Size, vectors).expect("is fetched");
        vectors(&folder, entry, &settings).expect("agrees");
        let files = Files {
            name: entry.name.into(),
            model: folder.join("model.onnx"),
            tokenizer: folder.join("tokenizer.json"),
            max_tokens: conventions.max_tokens,
        };
        let model = open(files, &settings).expect("opens");
        let bare = Conventions { query_prefix: "", ..conventions };
        assert!(against_expected(&model, "bare", bare).is_err(), "a missing prefix is seen");
    }
}
