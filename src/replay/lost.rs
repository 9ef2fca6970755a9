//! Which stage lost a document.

use std::collections::HashMap;

use once_cell::unsync::OnceCell;

use super::plan::{Lanes, Plan};
use crate::corpus::Evidence;
use crate::error::Result;
use crate::pipeline::Pipeline;
use crate::record::diff::{Left, Lost, Place};

/// How far lanes are read to find a document that left.
const LOOKED: usize = 1_000;

/// Says of each document that left which stage lost it.
///
/// The search is run again for all that its lanes found, first as it was, then without reranking; and once more with
/// longer lanes when a document is in neither.
pub(super) fn explain(pipeline: &Pipeline, plan: &Plan, left: &mut [Left]) -> Result<()> {
    if left.is_empty() {
        return Ok(());
    }
    // With this limit lanes are as long as before: nothing changes but where the list ends.
    let cut = pipeline.settings().candidates.max(plan.request.limit);
    let all = List::of(pipeline, plan, cut, plan.request.rerank)?;
    let fused = match plan.lanes {
        Lanes::Both if plan.request.rerank => Some(List::of(pipeline, plan, cut, false)?),
        _ => None,
    };
    let looked = LOOKED.max(cut).min(usize::try_from(pipeline.documents()?).unwrap_or(usize::MAX));
    let longer: OnceCell<List> = OnceCell::new();
    for document in left {
        let docid = document.docid.as_str();
        document.lost = Some(if !is_indexed(pipeline, plan, docid)? {
            Lost::Index
        } else if let Some((rank, lanes)) = all.get(docid) {
            match fused.as_ref().and_then(|fused| fused.get(docid)) {
                Some((before, _)) if before <= plan.depth => Lost::Rerank { before, after: rank },
                Some((before, _)) => Lost::Fusion { rank: before, lanes },
                None => Lost::Fusion { rank, lanes },
            }
        } else {
            match longer.get_or_try_init(|| List::of(pipeline, plan, looked, false))?.get(docid) {
                // Its lanes were not cut above it, so it is in the fused list, below what was shown of that.
                Some((rank, lanes)) if lanes.iter().any(|lane| lane.rank <= cut) => {
                    Lost::Fusion { rank: rank.max(cut + 1), lanes }
                }
                Some((_, lanes)) => Lost::Cut { lanes, cut },
                None => Lost::Lanes { looked },
            }
        });
    }
    Ok(())
}

/// Whether the document is among those that the search looks at.
fn is_indexed(pipeline: &Pipeline, plan: &Plan, docid: &str) -> Result<bool> {
    for (collection, _) in pipeline.index().collections()? {
        let wanted = plan.request.collection.as_ref().is_none_or(|wanted| *wanted == collection);
        if wanted && pipeline.index().find(docid, Some(&collection))?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A ranking of another length, by document: rank, and places in the lanes.
struct List(HashMap<String, (usize, Vec<Place>)>);

impl List {
    fn of(pipeline: &Pipeline, plan: &Plan, limit: usize, rerank: bool) -> Result<Self> {
        let mut plan = plan.clone();
        plan.request.limit = limit;
        plan.request.rerank = rerank;
        let (ranking, _) = plan.run(pipeline)?;
        let mut list = HashMap::new();
        for hit in ranking.hits {
            let rank = list.len() + 1;
            list.entry(hit.docid).or_insert((rank, lanes(&hit.evidence)));
        }
        Ok(Self(list))
    }

    fn get(&self, docid: &str) -> Option<(usize, Vec<Place>)> {
        self.0.get(docid).cloned()
    }
}

/// The lanes among what the stages said of a document: rerankers only look at what lanes found.
fn lanes(evidence: &[Evidence]) -> Vec<Place> {
    let lanes = evidence.iter().filter(|said| ["bm25", "vector", "graph"].contains(&said.stage.as_str()));
    lanes.map(|said| Place { stage: said.stage.clone(), rank: said.rank }).collect()
}
