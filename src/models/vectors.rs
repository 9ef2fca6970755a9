//! Vectors from a loaded model: opening it, pooling, length.

use super::onnx::{Files, Model, Output, Tokens};
use crate::error::{Error, ErrorKind, Result};
use crate::settings::{ModelSettings, Pooling};

/// Loads an embedder's files.
pub(super) fn open(files: Files, settings: &ModelSettings) -> Result<Model> {
    Model::open(files, settings, &["last_hidden_state", "token_embeddings", "sentence_embedding"])
}

/// Loads an embedder, runs one text and returns the vector's length: proves that it is one.
pub(super) fn probe(files: Files, settings: &ModelSettings) -> Result<usize> {
    let model = open(files, settings)?;
    let mut dims = 0;
    model.run_all(&[model.tokens("text", None)?], |_, output| match *output.shape {
        [1, width] | [1, _, width] if width > 1 => {
            dims = width;
            Ok(())
        }
        _ => Err(model.unexpected(output.shape)),
    })?;
    Ok(dims)
}

/// One vector of row `row`, whose text has `tokens` tokens: the mean over them or the first, or what the
/// graph pooled itself (an output of two dimensions). False when the shape is neither.
fn pool(output: &Output<'_>, row: usize, tokens: usize, pooling: Pooling, vector: &mut [f32]) -> bool {
    let dims = vector.len();
    let (length, used) = match *output.shape {
        [_, width] if width == dims => (1, 1),
        [_, length, width] if width == dims => match pooling {
            Pooling::Mean => (length, tokens),
            Pooling::Cls => (length, 1),
        },
        _ => return false,
    };
    let start = row * length * dims;
    for token in output.data[start..start + used * dims].chunks_exact(dims) {
        vector.iter_mut().zip(token).for_each(|(sum, x)| *sum += x);
    }
    // The mean's divisor falls out of the normalisation that follows.
    true
}

/// One pooled vector a text, row-major; not yet of length 1.
pub(super) fn pooled(model: &Model, texts: &[Tokens], pooling: Pooling, dims: usize) -> Result<Vec<f32>> {
    let mut data = vec![0.0; texts.len() * dims];
    model.run_all(texts, |batch, output| {
        for (row, &i) in batch.iter().enumerate() {
            if !pool(&output, row, texts[i].len(), pooling, &mut data[i * dims..(i + 1) * dims]) {
                return Err(model.unexpected(output.shape));
            }
        }
        Ok(())
    })?;
    Ok(data)
}

/// Brings a vector of model `name` to length 1. Fails when it has none.
pub(super) fn normalise(name: &str, vector: &mut [f32]) -> Result<()> {
    let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if !(norm.is_finite() && norm > 0.0) {
        return Err(Error::new(ErrorKind::Model, format!("model `{name}`: gave a vector of norm {norm}"))
            .with_hint("its weights are damaged, or it is no embedder"));
    }
    vector.iter_mut().for_each(|x| *x /= norm);
    Ok(())
}
