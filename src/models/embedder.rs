//! Embedders on ONNX Runtime: prefixes, language-neutral vectors, token vectors.

use once_cell::sync::OnceCell;

use super::languages::Directions;
use super::onnx::{Model, Tokens};
use super::resolve::Resolved;
use super::{Embedder, Embeddings, TextRole, TokenVectors, vectors};
use crate::error::Result;
use crate::settings::ModelSettings;

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

    fn model(&self) -> Result<&Model> {
        self.model.get_or_try_init(|| {
            let files = self.resolved.files(&self.settings)?;
            vectors::open(files, &self.settings)
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
        let mut data = vectors::pooled(self.model()?, &tokens, self.resolved.pooling, dims)?;
        data.chunks_exact_mut(dims).try_for_each(|vector| self.normalise(vector))?;
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
        vectors::normalise(&self.resolved.name, vector)
    }
}
