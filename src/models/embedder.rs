//! Embedders on ONNX Runtime: pooling, normalisation, token vectors.

use once_cell::sync::OnceCell;

use super::languages::Directions;
use super::onnx::{Files, Model, Output, Tokens};
use super::resolve::Resolved;
use super::{Embedder, Embeddings, TextRole, TokenVectors};
use crate::error::{Error, ErrorKind, Result};
use crate::settings::{ModelSettings, Pooling};

/// An embedder that loads, and if need be fetches, its model at the first text.
pub(super) struct OnnxEmbedder {
    resolved: Resolved,
    settings: ModelSettings,
    fingerprint: String,
    directions: Directions,
    model: OnceCell<Model>,
}

impl OnnxEmbedder {
    /// Nothing is loaded yet, nor fetched.
    pub(super) fn new(resolved: Resolved, settings: &ModelSettings) -> Result<Self> {
        let fingerprint = resolved.fingerprint(settings)?;
        let directions = Directions::decode(resolved.languages.unwrap_or_default(), resolved.dims);
        Ok(Self { resolved, settings: settings.clone(), fingerprint, directions, model: OnceCell::new() })
    }

    /// An embedder whose model is loaded already.
    pub(super) fn with_model(resolved: Resolved, settings: &ModelSettings, model: Model) -> Result<Self> {
        Ok(Self { model: OnceCell::with_value(model), ..Self::new(resolved, settings)? })
    }

    fn model(&self) -> Result<&Model> {
        self.model.get_or_try_init(|| {
            let files = self.resolved.files(&self.settings)?;
            open(files, &self.settings)
        })
    }

    fn prefix(&self, role: TextRole) -> &str {
        match role {
            TextRole::Query => &self.resolved.query_prefix,
            TextRole::Passage => &self.resolved.passage_prefix,
        }
    }

    fn tokens(&self, texts: &[&str], role: TextRole) -> Result<Vec<Tokens>> {
        let (model, prefix) = (self.model()?, self.prefix(role));
        texts.iter().map(|text| model.tokens(&format!("{prefix}{text}"), None)).collect()
    }
}

impl Embedder for OnnxEmbedder {
    fn name(&self) -> &str {
        &self.resolved.name
    }

    fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    fn dims(&self) -> usize {
        self.resolved.dims
    }

    fn embed(&self, texts: &[&str], role: TextRole) -> Result<Embeddings> {
        let dims = self.dims();
        let tokens = self.tokens(texts, role)?;
        let mut data = vec![0.0; texts.len() * dims];
        let model = self.model()?;
        model.run_all(&tokens, |batch, output| {
            for (row, &i) in batch.iter().enumerate() {
                let vector = &mut data[i * dims..(i + 1) * dims];
                if !pool(&output, row, tokens[i].len(), self.resolved.pooling, vector) {
                    return Err(model.unexpected(output.shape));
                }
                self.normalise(vector)?;
            }
            Ok(())
        })?;
        Ok(Embeddings { dims, data, truncated: tokens.iter().filter(|text| text.truncated).count() })
    }

    /// Beside special tokens, those of the role's prefix are left out: every text has them.
    fn embed_tokens(&self, texts: &[&str], role: TextRole) -> Result<Vec<TokenVectors>> {
        let (model, dims) = (self.model()?, self.dims());
        let tokens = self.tokens(texts, role)?;
        let of_prefix = match self.prefix(role).trim() {
            "" => 0,
            prefix => model.tokens(prefix, None)?.special.iter().filter(|&&special| !special).count(),
        };
        let mut vectors = vec![TokenVectors { dims, data: Vec::new() }; texts.len()];
        model.run_all(&tokens, |batch, output| {
            let [_, length, width] = *output.shape else { return Err(model.unexpected(output.shape)) };
            if width != dims {
                return Err(model.unexpected(output.shape));
            }
            for (row, &i) in batch.iter().enumerate() {
                if texts[i].trim().is_empty() {
                    continue; // the space after a prefix can be a token of its own
                }
                let words = (0..tokens[i].len()).filter(|&t| !tokens[i].special[t]).skip(of_prefix);
                for token in words {
                    let from = (row * length + token) * dims;
                    let data = &mut vectors[i].data;
                    data.extend_from_slice(&output.data[from..from + dims]);
                    let start = data.len() - dims;
                    self.normalise(&mut data[start..])?;
                }
            }
            Ok(())
        })?;
        Ok(vectors)
    }
}

impl OnnxEmbedder {
    /// Takes out what tells languages apart, and brings the vector to length 1.
    fn normalise(&self, vector: &mut [f32]) -> Result<()> {
        self.directions.remove_from(vector);
        let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        if !(norm.is_finite() && norm > 0.0) {
            return Err(Error::new(
                ErrorKind::Model,
                format!("model `{}`: gave a vector of norm {norm}", self.resolved.name),
            )
            .with_hint("its weights are damaged, or it is no embedder"));
        }
        vector.iter_mut().for_each(|x| *x /= norm);
        Ok(())
    }
}

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
