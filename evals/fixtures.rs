//! What the evals have in common: the judged queries and the pipeline over the fixture corpus.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use once_cell::sync::OnceCell;
use rankgate::corpus::queries::check_docids;
use rankgate::models::{Embedder, presets};
use rankgate::pipeline::Sampling;
use rankgate::pipeline::index::names_hash;
use rankgate::prelude::*;
use rankgate::settings::{LOCAL_PRESET, ModelSettings, Settings};
use rankgate::store::cache::Cache;
use rankgate::store::history::data_dir;

pub fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn corpus() -> PathBuf {
    project().join("fixtures/corpus")
}

fn read() -> Result<Vec<JudgedQuery>> {
    rankgate::corpus::queries::read(&project().join("fixtures/queries.json"))
}

/// The judged queries whose category `wanted` takes.
pub fn queries(wanted: impl Fn(&str) -> bool) -> Result<Vec<JudgedQuery>> {
    let mut cases = read()?;
    // Only a short hash needs the index: listing cases opens nothing.
    if cases.iter().any(names_hash) {
        cases = pipeline()?.index().resolve_hashes(cases)?;
    }
    cases.retain(|case| wanted(case.query.category.as_deref().unwrap_or_default()));
    Ok(cases)
}

/// How long a trial with a language model may take. It answers one prompt at a time, and a slow or busy machine must
/// not change a result.
pub const PATIENCE: Duration = Duration::from_secs(1800);

/// Every fourth query: those that meet a language model. Parts of the request would take the place of its answer.
pub fn some_queries() -> Result<Vec<JudgedQuery>> {
    let plain = queries(|_| true)?.into_iter().filter(|case| case.query.modes.is_empty());
    Ok(plain.step_by(4).collect())
}

/// A request whose expansion is drawn anew in each trial.
pub fn sampled(query: &Query, trial: u32) -> Request {
    let mut request = Request::from(query);
    request.sampling = Sampling { temperature: 0.7, trial, ..Sampling::default() };
    request.expand_within = Some(PATIENCE);
    request
}

/// The documents that answer a query or help much, grades 2 and 3; grade 1 only touches the subject.
pub fn answers(judgments: &Judgments) -> Judgments {
    judgments.iter().filter(|(_, grade)| **grade >= 2).map(|(docid, grade)| (docid.clone(), *grade)).collect()
}

/// A baseline: one docid a line. Scores are left out, as their last digits differ between processors.
pub fn docids(ranking: &Ranking) -> String {
    ranking.docids().collect::<Vec<_>>().join("\n")
}

/// The pipeline over the fixture corpus, with the models of the settings, the same for all evals of a process.
///
/// The first run of a machine fetches the models and embeds the corpus; after that only what changed is read in.
pub fn pipeline() -> Result<&'static Pipeline> {
    static PIPELINE: OnceCell<Pipeline> = OnceCell::new();
    PIPELINE.get_or_try_init(|| {
        let data = data_dir(project());
        let settings = Settings::load(project())?;
        let cache = Arc::new(Cache::open(&data.join("cache.db"))?);
        let pipeline = Pipeline::over(&corpus(), &data.join("fixtures-index"), &settings, Some(cache), true)?;
        check_judgments(&pipeline)?;
        Ok(pipeline)
    })
}

/// The pipeline over the fixture corpus with the generator of `preset`.
pub fn pipeline_with(preset: &str) -> Result<Pipeline> {
    let data = data_dir(project());
    let mut settings = Settings::load(project())?;
    settings.models.preset = preset.into();
    let cache = Arc::new(Cache::open(&data.join("cache.db"))?);
    let generator = rankgate::models::generator(&settings.models, Some(cache.clone()))?;
    // Made, and checked, by the one without a generator.
    pipeline()?;
    Ok(Pipeline::open(&data.join("fixtures-index"), &settings, Some(cache))?.with_generator(generator))
}

/// The embedder of the settings.
pub fn embedder() -> Result<Option<Arc<dyn Embedder>>> {
    let cache = Arc::new(Cache::open(&data_dir(project()).join("cache.db"))?);
    rankgate::models::embedder(&Settings::load(project())?.models, Some(cache)).map(Some)
}

/// The presets on servers, each with the reason why it cannot be asked, if there is one.
///
/// Servers are only looked for where the settings name one: listing evals asks nobody.
pub fn server_presets() -> Result<Vec<(String, Option<String>)>> {
    let models = Settings::load(project())?.models;
    let default = ModelSettings::default();
    let named = models.server != default.server || !models.presets.is_empty();
    let known: BTreeMap<String, Option<String>> = match named {
        true => presets(&models)?.into_iter().map(|preset| (preset.name, preset.why_not)).collect(),
        false => BTreeMap::new(),
    };
    let on_servers = models.preset_names().into_iter().filter(|name| *name != LOCAL_PRESET);
    let why = |name: &str| known.get(name).cloned().unwrap_or(Some("the settings name no server".into()));
    Ok(on_servers.map(|name| (name.to_string(), why(name))).collect())
}

/// Judgments must name documents of the corpus: a typing error would look like a bad ranking.
pub fn check_judgments(pipeline: &Pipeline) -> Result<()> {
    let docids = pipeline.index().docids()?;
    let known = |docid: &str| docids.iter().any(|known| known == docid);
    let check = || check_docids(&pipeline.index().resolve_hashes(read()?)?, known, || docids.clone());
    check().map_err(|e| e.context("fixtures/queries.json"))
}
