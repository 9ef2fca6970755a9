//! Replay: searches that were captured are run again, each the way it was, and compared with what they returned.
//!
//! A row says how it was searched: by words, by meaning or both, with which limit, collection and expansion. It is
//! searched so again, or not at all: a row that cannot be searched as it was is left out, and says why.

use std::collections::HashSet;
use std::sync::OnceLock;
use std::time::Instant;

use crate::corpus::Ranking;
use crate::error::Result;
use crate::pipeline::Pipeline;
use crate::record::diff::RankedDiff;
use crate::record::{Captured, ReplayedRow};

mod lost;
mod plan;

use plan::Plan;
pub use plan::by_meaning;

/// How rows are run again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How many hits a search is asked for whose row does not say how many were, unless it has more.
    pub limit: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { limit: 20 }
    }
}

/// Runs captured searches again over one pipeline.
///
/// Both rankings are compared at one depth: at the limit of the captured search; where the row does not state it, at
/// the number of documents it has. A pipeline that captures would capture the replay too: open one that does not.
///
/// ```
/// # use rankgate::corpus::Document;
/// # use rankgate::pipeline::{Pipeline, indexer};
/// # let dir = tempfile::tempdir().expect("a temporary folder");
/// # let documents = ["apple pie", "apple"].map(|body| Document { id: body.into(), body: body.into(), ..Document::default() });
/// # indexer::build(dir.path(), "corpus", documents.map(Ok), None, &mut |_| {})?;
/// # let pipeline = Pipeline::with_models(dir.path(), &Default::default(), None, None)?;
/// use rankgate::record::{Captured, Tool};
/// use rankgate::replay::{Options, Replayer};
///
/// let replayer = Replayer::new(&pipeline, Options::default());
/// let captured = Captured::new(Tool::Search, "pie", vec!["apple pie".into()]);
/// assert_eq!(replayer.replay(&captured).jaccard(), Some(1.0));
///
/// let captured = Captured::new(Tool::Search, "pie", vec!["apple".into()]);
/// assert_eq!(
///     replayer.diff(&captured)?.to_string(),
///     "left     apple  was 1: in no lane, down to rank 2\nentered  apple pie  now 1\n"
/// );
/// # Ok::<(), rankgate::Error>(())
/// ```
pub struct Replayer<'a> {
    pipeline: &'a Pipeline,
    options: Options,
    /// What was run before, by lanes.
    warm: [OnceLock<()>; 3],
}

impl<'a> Replayer<'a> {
    /// A replay over `pipeline`.
    pub fn new(pipeline: &'a Pipeline, options: Options) -> Self {
        Self { pipeline, options, warm: Default::default() }
    }

    /// Runs one row again. What cannot be searched as it was is left out, a search that fails is kept as failed:
    /// either says why.
    pub fn replay(&self, row: &Captured) -> ReplayedRow {
        let plan = match Plan::new(self.pipeline, &self.options, row) {
            Ok(Ok(plan)) => plan,
            Ok(Err(reason)) => return ReplayedRow::skipped(row, reason),
            Err(error) => return ReplayedRow::errored(row, error.report()),
        };
        if self.warm[plan.lanes as usize].set(()).is_ok() {
            // Loads models and vectors: no row should pay for all of them. Its error comes again.
            let _ = plan.run(self.pipeline);
        }
        let started = Instant::now();
        match plan.run(self.pipeline) {
            Ok((ranking, _)) => {
                let took = started.elapsed().as_secs_f64() * 1e3;
                ReplayedRow::ran(&plan.comparable(row), docids(&ranking, plan.depth), took)
            }
            Err(error) => ReplayedRow::errored(row, error.report()),
        }
    }

    /// What became of the row's ranking, and which stage lost each document that left.
    ///
    /// Runs the search up to four times, so it is for the few rows that somebody will look at. Fails where
    /// [`replay`](Self::replay) would leave the row out or keep it as failed.
    pub fn diff(&self, row: &Captured) -> Result<RankedDiff> {
        let plan = Plan::new(self.pipeline, &self.options, row)?.map_err(crate::Error::input)?;
        let (ranking, _) = plan.run(self.pipeline)?;
        let now = docids(&ranking, plan.depth);
        let row = plan.comparable(row);
        let captured = row.retrieved_slugs.iter().map(String::as_str);
        let mut diff = RankedDiff::between(captured, now.iter().map(String::as_str));
        lost::explain(self.pipeline, &plan, &mut diff.left)?;
        Ok(diff)
    }
}

/// Runs rows again, in their order.
pub fn replay<'a>(
    pipeline: &Pipeline,
    rows: impl IntoIterator<Item = &'a Captured>,
    options: Options,
) -> Vec<ReplayedRow> {
    let replayer = Replayer::new(pipeline, options);
    rows.into_iter().map(|row| replayer.replay(row)).collect()
}

/// The first `depth` distinct documents.
fn docids(ranking: &Ranking, depth: usize) -> Vec<String> {
    let mut seen = HashSet::new();
    ranking.docids().filter(|docid| seen.insert(*docid)).take(depth).map(str::to_string).collect()
}
