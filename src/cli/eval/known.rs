//! Known queries, searched for.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::score::Mode;
use super::number::share;
use crate::error::Result;
use crate::gate::qrels::{KnownQueries, KnownQuery, SourceSlug};
use crate::gate::truth;
use crate::gate::{CorrectnessThresholds, Retrieved};
use crate::models;
use crate::pipeline::{Pipeline, Request};
use crate::settings::{self, Settings};
use crate::store::cache::Cache;

/// Where known queries come from, how they are searched for, and in what.
///
/// The documents of a file that names no sources are of the source `default`: the only collection of an index that has
/// one. With several, JSON names them (`"source_id"`), and TREC's form writes `collection::docid`.
#[derive(Debug, clap::Args)]
pub(super) struct Known {
    /// Texts of the queries, where the judgments are in TREC's form: `id`, tab, text a line, or BEIR's JSON lines.
    #[arg(long, value_name = "FILE", requires = "qrels")]
    pub(super) queries: Option<PathBuf>,
    /// The index folder. Default: the one in RANKGATE_HOME.
    #[arg(long, value_name = "DIR")]
    pub(super) index: Option<PathBuf>,
    /// How many documents of a known query count.
    #[arg(short, long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) k: u32,
    /// Least share of the first k that somebody judged, where the file says who was judged.
    #[arg(long, value_name = "0..1", value_parser = share, default_value_t = CorrectnessThresholds::default().judged_at_k)]
    pub(super) min_judged: f64,
    /// How known queries are searched for. Expansion is by rules, so that the same index gives the same figures.
    #[arg(long, value_enum, default_value = "hybrid")]
    pub(super) mode: Mode,
}

/// What was found for known queries.
pub(super) struct Answers<'a> {
    /// The documents of each query; why its search failed in their place.
    pub(super) results: Vec<(&'a KnownQuery, Retrieved)>,
    /// What a reader should know: queries that say nothing, documents that are not there.
    pub(super) notes: Vec<String>,
    /// Whether documents are called by collection and docid, because there are several collections.
    pub(super) several: bool,
}

impl Known {
    /// Reads the queries of `path`.
    pub(super) fn read(&self, path: &Path) -> Result<KnownQueries> {
        truth::read(path, self.queries.as_deref())
    }

    /// Searches for the first k documents of every query.
    ///
    /// Fails when the sources that the queries name are no collections of the index or none of their documents is
    /// there, and when the mode needs vectors that the index lacks: no query could be answered.
    pub(super) fn retrieve<'a>(
        &self,
        pipeline: &Pipeline,
        queries: &'a mut KnownQueries,
    ) -> Result<Answers<'a>> {
        let collections: Vec<String> =
            pipeline.index().collections()?.into_iter().map(|(name, _)| name).collect();
        queries.fit(&collections)?;
        let absent = queries.check_documents(&pipeline.index().documents()?)?;
        let notes = queries.note().into_iter().chain(absent).collect();
        if let Some(embedder) = pipeline.embedder().filter(|_| self.mode.needs_vectors()) {
            pipeline.index().vectors(embedder)?;
        }
        let bar = crate::cli::progress(queries.queries.len() as u64, self.mode.name());
        let search = |query: &'a KnownQuery| {
            let request = query.stated.as_ref().map_or_else(|| Request::new(&query.query), Request::from);
            let found = self.mode.run(pipeline, request.limit(self.k as usize));
            bar.inc(1);
            let keys = |ranking: crate::Ranking| ranking.hits.iter().map(SourceSlug::from).collect();
            (query, found.map(|(ranking, _)| keys(ranking)).map_err(|error| error.report()))
        };
        let results = queries.queries.iter().map(search).collect();
        bar.finish_and_clear();
        Ok(Answers { results, notes, several: collections.len() > 1 })
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
