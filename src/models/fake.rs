//! Stand-ins for models, for tests and hermetic evals.

use sha2::{Digest, Sha256};

use super::{Embedder, Embeddings, Generated, Generator, Prompt, TextRole, TokenVectors};
use crate::error::Result;

/// The name of [`HashEmbedder`] in settings.
pub const HASH: &str = "hash";

/// Hashes words into vectors: each word has a fixed pseudo-random vector, a text has the sum of its words'.
///
/// Texts that share words are alike, and that is all it knows: no synonyms, no languages, no order. Its
/// scores say something about the machinery around it, nothing about retrieval quality.
///
/// ```
/// use rankgate::models::{Embedder, HashEmbedder, TextRole};
///
/// let texts = ["the cat sat", "The cat, sat!", "quite another thing"];
/// let vectors = HashEmbedder::new(64).embed(&texts, TextRole::Passage)?;
/// let rows: Vec<&[f32]> = vectors.rows().collect();
/// assert_eq!(rows[0], rows[1]);
/// assert_ne!(rows[0], rows[2]);
/// # Ok::<(), rankgate::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct HashEmbedder {
    dims: usize,
    fingerprint: String,
}

impl HashEmbedder {
    /// An embedder of vectors with `dims` components, at least 8.
    pub fn new(dims: usize) -> Self {
        let dims = dims.max(8);
        Self { dims, fingerprint: format!("hash-v1-{dims}") }
    }

    /// Adds the vector of `word` to `sum`.
    fn add(&self, word: &str, sum: &mut [f32]) {
        for (block, components) in sum.chunks_mut(32).enumerate() {
            let hash = Sha256::new().chain_update(word).chain_update(block.to_le_bytes()).finalize();
            for (component, byte) in components.iter_mut().zip(hash) {
                *component += f32::from(byte) - 127.5;
            }
        }
    }
}

impl Default for HashEmbedder {
    fn default() -> Self {
        Self::new(256)
    }
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

fn normalise(vector: &mut [f32]) {
    let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    vector.iter_mut().for_each(|x| *x /= norm);
}

impl Embedder for HashEmbedder {
    fn name(&self) -> &str {
        HASH
    }

    fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    fn dims(&self) -> usize {
        self.dims
    }

    fn embed(&self, texts: &[&str], _: TextRole) -> Result<Embeddings> {
        let mut data = vec![0.0; texts.len() * self.dims];
        for (text, row) in texts.iter().zip(data.chunks_mut(self.dims)) {
            let mut any = false;
            for word in words(text) {
                any = true;
                self.add(&word, row);
            }
            if !any {
                self.add("", row); // a text without words has a direction too
            }
            normalise(row);
        }
        Ok(Embeddings { dims: self.dims, data, truncated: 0 })
    }

    fn embed_tokens(&self, texts: &[&str], _: TextRole) -> Result<Vec<TokenVectors>> {
        let vectors = texts.iter().map(|text| {
            let mut data = Vec::new();
            for word in words(text) {
                let start = data.len();
                data.resize(start + self.dims, 0.0);
                self.add(&word, &mut data[start..]);
                normalise(&mut data[start..]);
            }
            TokenVectors { dims: self.dims, data }
        });
        Ok(vectors.collect())
    }
}

/// A generator that answers as it is told, for tests of what surrounds a model. It looks at no schema and no time
/// limit; each word counts as a token.
///
/// ```
/// use rankgate::models::{Generator, Prompt, ScriptedGenerator};
///
/// let echo = ScriptedGenerator::new("echo", |prompt| Ok(prompt.user.to_uppercase()));
/// let prompt = Prompt { user: "hello".into(), ..Prompt::default() };
/// assert_eq!(echo.generate(&prompt)?.text, "HELLO");
/// # Ok::<(), rankgate::Error>(())
/// ```
pub struct ScriptedGenerator {
    name: String,
    script: Box<Script>,
}

type Script = dyn Fn(&Prompt) -> Result<String> + Send + Sync;

impl ScriptedGenerator {
    /// A generator called `name`, which is also its fingerprint: scripts that answer differently need different
    /// names where a cache is involved.
    pub fn new(
        name: impl Into<String>,
        script: impl Fn(&Prompt) -> Result<String> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), script: Box::new(script) }
    }
}

impl Generator for ScriptedGenerator {
    fn name(&self) -> &str {
        &self.name
    }

    fn fingerprint(&self) -> &str {
        &self.name
    }

    fn generate(&self, prompt: &Prompt) -> Result<Generated> {
        let text = (self.script)(prompt)?;
        let examples = prompt.examples.iter().flat_map(|(asked, answered)| [asked, answered]);
        let read = [&prompt.system, &prompt.user].into_iter().chain(examples);
        Ok(Generated {
            prompt_tokens: read.map(|text| text.split_whitespace().count() as u64).sum(),
            output_tokens: text.split_whitespace().count() as u64,
            cost: None,
            cut: false,
            text,
        })
    }
}
