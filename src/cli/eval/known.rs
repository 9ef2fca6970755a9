//! Known queries, searched for.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::score::Mode;
use crate::error::Result;
use crate::gate::Retrieved;
use crate::gate::qrels::{KnownQueries, KnownQuery, SourceSlug};
use crate::gate::truth;
use crate::models;
use crate::pipeline::{Pipeline, Request};
use crate::settings::{self, Settings};
use crate::store::cache::Cache;

/// Where known queries come from, and how they are searched for.
#[derive(Debug, clap::Args)]
pub(super) struct Known {
    /// Texts of the queries, where the judgments are in TREC's form: `id`, tab, text a line, or BEIR's JSON lines.
    #[arg(long, value_name = "FILE", requires = "qrels")]
    pub(super) queries: Option<PathBuf>,
    /// How known queries are searched for. Expansion is by rules, so that the same index gives the same figures.
    #[arg(long, value_enum, default_value = "hybrid")]
    pub(super) mode: Mode,
}

impl Known {
    /// Reads the queries of `path`.
    pub(super) fn read(&self, path: &Path) -> Result<KnownQueries> {
        truth::read(path, self.queries.as_deref())
    }

    /// Searches for the first `k` documents of every query; a search that fails says why in its place.
    ///
    /// Fails when the sources that the queries name are no collections of the index, and when the mode needs vectors
    /// that the index lacks: no query could be answered.
    pub(super) fn retrieve<'a>(
        &self,
        pipeline: &Pipeline,
        queries: &'a mut KnownQueries,
        k: usize,
    ) -> Result<Vec<(&'a KnownQuery, Retrieved)>> {
        let collections: Vec<String> =
            pipeline.index().collections()?.into_iter().map(|(name, _)| name).collect();
        queries.fit(&collections)?;
        if let Some(embedder) = pipeline.embedder().filter(|_| self.mode.needs_vectors()) {
            pipeline.index().vectors(embedder)?;
        }
        let bar = crate::cli::progress(queries.queries.len() as u64, self.mode.name());
        let search = |query: &'a KnownQuery| {
            let request = query.stated.as_ref().map_or_else(|| Request::new(&query.query), Request::from);
            let found = self.mode.run(pipeline, request.limit(k));
            bar.inc(1);
            let keys = |ranking: crate::Ranking| ranking.hits.iter().map(SourceSlug::from).collect();
            (query, found.map(|(ranking, _)| keys(ranking)).map_err(|error| error.report()))
        };
        let results = queries.queries.iter().map(search).collect();
        bar.finish_and_clear();
        Ok(results)
    }
}

/// The index with the models that `vectors` needs; nothing is captured.
pub(super) fn open(index: Option<&Path>, vectors: bool) -> Result<Pipeline> {
    let settings = Settings::load(&crate::cli::working_folder()?)?;
    let dir = crate::cli::index_folder(index)?;
    if !vectors {
        return Pipeline::with_models(&dir, &settings.search, None, None);
    }
    let cache = Some(Arc::new(Cache::open(&settings::home()?.join("cache.db"))?));
    let embedder = models::embedder(&settings.models, cache.clone())?;
    Pipeline::with_models(&dir, &settings.search, Some(embedder), models::reranker(&settings.models, cache)?)
}
