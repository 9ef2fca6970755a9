//! The real embedder's weights under conventions of one's own, and the proof that nothing else differs.

use std::sync::Arc;

use rankgate::models::{self, Embedder, Embeddings, TextRole, TokenVectors};
use rankgate::prelude::*;
use rankgate::settings::{CustomModel, ModelRole, Pooling, Settings};
use rankgate::store::cache::Cache;

/// The name under which the settings have the weights; `tests/faults.rs` puts them there.
const NAME: &str = "own-e5";

/// What may be wrong about an embedder although its weights are right.
#[derive(Clone, Copy)]
pub struct Conventions {
    pub pooling: Pooling,
    pub query_prefix: &'static str,
    pub passage_prefix: &'static str,
}

impl Conventions {
    pub const RIGHT: Self =
        Self { pooling: Pooling::Mean, query_prefix: "query: ", passage_prefix: "passage: " };
}

/// The settings of the project, as its evals have them.
pub fn settings() -> Result<Settings> {
    Settings::load(env!("CARGO_MANIFEST_DIR").as_ref())
}

/// The weights of the default embedder, used as `conventions` say.
pub fn embedder(conventions: Conventions, cache: Option<Arc<Cache>>) -> Result<Arc<dyn Embedder>> {
    let mut settings = settings()?.models;
    settings.embedder = NAME.into();
    let model = CustomModel {
        repo: "local/e5".into(),
        revision: "main".into(),
        file: "model.onnx".into(),
        role: ModelRole::Embedder,
        pooling: conventions.pooling,
        query_prefix: conventions.query_prefix.into(),
        passage_prefix: conventions.passage_prefix.into(),
        max_tokens: 512,
    };
    settings.custom.insert(NAME.into(), model);
    Ok(Arc::new(Neutral(models::embedder(&settings, cache)?)))
}

/// An embedder without what tells languages apart, which the default one takes out too.
struct Neutral(Arc<dyn Embedder>);

impl Neutral {
    fn neutral(&self, data: &mut [f32]) {
        let directions = include_bytes!("../../src/models/e5-small-languages.f32").as_chunks::<4>().0;
        let directions: Vec<f32> = directions.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        for vector in data.chunks_exact_mut(self.dims()) {
            for direction in directions.chunks_exact(vector.len()) {
                let share = dot(vector, direction);
                vector.iter_mut().zip(direction).for_each(|(x, d)| *x -= share * d);
            }
            let norm = dot(vector, vector).sqrt();
            vector.iter_mut().for_each(|x| *x /= norm);
        }
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl Embedder for Neutral {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn fingerprint(&self) -> &str {
        self.0.fingerprint()
    }

    fn dims(&self) -> usize {
        self.0.dims()
    }

    fn embed(&self, texts: &[&str], role: TextRole) -> Result<Embeddings> {
        let mut embeddings = self.0.embed(texts, role)?;
        self.neutral(&mut embeddings.data);
        Ok(embeddings)
    }

    fn embed_tokens(&self, texts: &[&str], role: TextRole) -> Result<Vec<TokenVectors>> {
        let mut tokens = self.0.embed_tokens(texts, role)?;
        tokens.iter_mut().for_each(|tokens| self.neutral(&mut tokens.data));
        Ok(tokens)
    }
}

/// With the right conventions the weights give the vectors of the default embedder: when an eval fails with
/// others, they are to blame. With them, the same texts are elsewhere.
pub fn register(suite: &mut Suite) {
    let conventions = [
        ("right", Conventions::RIGHT),
        ("cls", Conventions { pooling: Pooling::Cls, ..Conventions::RIGHT }),
        ("plain", Conventions { query_prefix: "", passage_prefix: "", ..Conventions::RIGHT }),
    ];
    let cosine = |conventions: Conventions| -> Result<f32> {
        let vector = |embedder: Arc<dyn Embedder>| {
            embedder.embed(&["Wer kündigt, zahlt bis zum Ende der Frist."], TextRole::Passage)
        };
        let real = vector(models::embedder(&settings()?.models, None)?)?;
        Ok(dot(&real.data, &vector(embedder(conventions, None)?)?.data))
    };
    suite
        .eval("conventions")
        .cases(move || conventions.map(|(name, conventions)| Example::new(name, conventions)).to_vec())
        .subject(move |case, _| cosine(case.input))
        .score_with("equal when right", |case, cosine| (*cosine > 0.9999) == (case.id() == "right"))
        .threshold(1.0)
        .columns(|_, cosine| [("cosine", format!("{cosine:.4}"))]);
}
