//! What the evals have in common: the judged queries and the pipeline over the fixture corpus.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use once_cell::sync::OnceCell;
use rankgate::corpus::queries::check_docids;
use rankgate::pipeline::Sampling;
use rankgate::pipeline::index::names_hash;
use rankgate::prelude::*;
use rankgate::settings::Settings;
use rankgate::store::cache::Cache;
use rankgate::store::history::data_dir;

fn project() -> &'static Path {
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

/// Judgments must name documents of the corpus: a typing error would look like a bad ranking.
pub fn check_judgments(pipeline: &Pipeline) -> Result<()> {
    let docids = pipeline.index().docids()?;
    let known = |docid: &str| docids.iter().any(|known| known == docid);
    let check = || check_docids(&pipeline.index().resolve_hashes(read()?)?, known, || docids.clone());
    check().map_err(|e| e.context("fixtures/queries.json"))
}
