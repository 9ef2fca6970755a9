//! Follows the links between documents one hop from the best ones: an option, off by default.
//!
//! A neighbour's score is the sum, over the links that join it to a seed, of confidence × count ÷ rank of the
//! seed. A link that can only mean one document has confidence 1; a wiki name that several documents bear has 0.35
//! for each of them.

use std::collections::BTreeMap;

use super::index::IndexReader;
use crate::error::Result;
use crate::store::index::Edge;

const CONFIDENT: f64 = 1.0;
const AMBIGUOUS: f64 = 0.35;

/// How far an expansion may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Documents whose links are followed: the first of the ranking.
    pub seeds: usize,
    /// Neighbours returned.
    pub candidates: usize,
    /// Links looked at, those of better seeds first.
    pub edges: usize,
    /// Different neighbours scored.
    pub nodes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { seeds: 5, candidates: 20, edges: 10_000, nodes: 2_000 }
    }
}

/// Why an expansion added nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallback {
    /// It was not asked for.
    Disabled,
    /// The ranking is empty.
    NoSeedCandidates,
    /// No document of the index has a link.
    Unavailable,
    /// None of the seeds is in the index any more.
    SeedLookupEmpty,
    /// The seeds have no links.
    Empty,
    /// All links of the seeds lead to other seeds.
    NoNewCandidates,
}

impl Fallback {
    /// The name that traces use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Disabled => "graph_disabled",
            Self::NoSeedCandidates => "graph_no_seed_candidates",
            Self::Unavailable => "graph_unavailable",
            Self::SeedLookupEmpty => "graph_seed_lookup_empty",
            Self::Empty => "graph_empty",
            Self::NoNewCandidates => "graph_no_new_candidates",
        }
    }
}

/// Documents reached over links: key and score, best first, equal scores by key.
pub type Neighbours = Vec<(u64, f64)>;

/// Expands a ranking of document keys, or says why not. Opens the stage `graph`.
///
/// Fails only when the index cannot be read.
pub fn expand(
    index: &IndexReader,
    ranking: &[u64],
    enabled: bool,
    bounds: Bounds,
) -> Result<std::result::Result<Neighbours, Fallback>> {
    let span = tracing::info_span!(
        "graph",
        seeds = tracing::field::Empty,
        edges = tracing::field::Empty,
        candidates = tracing::field::Empty,
        skipped = tracing::field::Empty,
    )
    .entered();
    let seeds = &ranking[..ranking.len().min(bounds.seeds)];
    let work = || -> Result<std::result::Result<Neighbours, Fallback>> {
        if !enabled {
            return Ok(Err(Fallback::Disabled));
        }
        if seeds.is_empty() {
            return Ok(Err(Fallback::NoSeedCandidates));
        }
        if !index.has_links()? {
            return Ok(Err(Fallback::Unavailable));
        }
        let mut known = false;
        let mut edges = Vec::new();
        for seed in seeds {
            known |= index.contains(*seed)?;
            edges.extend(index.edges(*seed, bounds.edges.saturating_sub(edges.len()))?);
        }
        if !known {
            return Ok(Err(Fallback::SeedLookupEmpty));
        }
        span.record("edges", edges.len().min(bounds.edges));
        Ok(neighbours(seeds, &edges, bounds))
    };
    let result = work()?;
    span.record("seeds", seeds.len());
    match &result {
        Ok(found) => span.record("candidates", found.len()),
        Err(fallback) => span.record("skipped", fallback.as_str()),
    };
    Ok(result)
}

/// Scores the documents that `edges` join to `seeds`, which are in the order of their rank.
///
/// Seeds themselves are not returned. Edges beyond the bound are not looked at, nor neighbours beyond theirs, in
/// the order in which edges come.
///
/// ```
/// use rankgate::pipeline::graph::{Bounds, neighbours};
/// use rankgate::store::index::Edge;
/// let edges = [
///     Edge { from: 1, to: 7, count: 1, meanings: 1 },
///     Edge { from: 2, to: 7, count: 1, meanings: 1 },
///     Edge { from: 2, to: 8, count: 2, meanings: 3 },
/// ];
/// let found = neighbours(&[1, 2], &edges, Bounds::default());
/// assert_eq!(found, Ok(vec![(7, 1.0 + 1.0 / 2.0), (8, 0.35 * 2.0 / 2.0)]));
/// ```
pub fn neighbours(
    seeds: &[u64],
    edges: &[Edge],
    bounds: Bounds,
) -> std::result::Result<Neighbours, Fallback> {
    let seeds = &seeds[..seeds.len().min(bounds.seeds)];
    let rank = |key: u64| seeds.iter().position(|seed| *seed == key).map(|place| place + 1);
    let mut scores: BTreeMap<u64, f64> = BTreeMap::new();
    let mut any = false;
    for edge in edges.iter().take(bounds.edges) {
        let Some(seed_rank) = rank(edge.from) else { continue };
        any = true;
        if rank(edge.to).is_some() || (scores.len() >= bounds.nodes && !scores.contains_key(&edge.to)) {
            continue;
        }
        let confidence = if edge.meanings > 1 { AMBIGUOUS } else { CONFIDENT };
        *scores.entry(edge.to).or_default() += confidence * f64::from(edge.count.max(1)) / seed_rank as f64;
    }
    if seeds.is_empty() {
        return Err(Fallback::NoSeedCandidates);
    }
    if !any {
        return Err(Fallback::Empty);
    }
    let mut found: Neighbours = scores.into_iter().collect();
    found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    found.truncate(bounds.candidates);
    if found.is_empty() { Err(Fallback::NoNewCandidates) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: u64, to: u64) -> Edge {
        Edge { from, to, count: 1, meanings: 1 }
    }

    #[test]
    fn only_the_first_seeds_count() {
        let seeds: Vec<u64> = (1..=6).collect();
        let found = neighbours(&seeds, &[edge(5, 50), edge(6, 60)], Bounds::default());
        assert_eq!(found, Ok(vec![(50, 1.0 / 5.0)]));
    }

    #[test]
    fn candidates_edges_and_nodes_are_bounded() {
        let edges: Vec<Edge> = (0..30_000).map(|i| edge(1, 10 + i)).collect();
        let all = Bounds { candidates: usize::MAX, ..Bounds::default() };
        assert_eq!(neighbours(&[1], &edges, Bounds::default()).map(|found| found.len()), Ok(20));
        assert_eq!(neighbours(&[1], &edges, all).map(|found| found.len()), Ok(2_000));
        let no_nodes = Bounds { nodes: usize::MAX, ..all };
        assert_eq!(neighbours(&[1], &edges, no_nodes).map(|found| found.len()), Ok(10_000));
        // A neighbour that was met before the bound still gathers score after it.
        let mut again = edges[..2_000].to_vec();
        again.extend([edge(1, 99_999), edge(1, 2_009)]);
        assert_eq!(neighbours(&[1], &again, Bounds::default()).map(|found| found[0]), Ok((2_009, 2.0)));
    }

    #[test]
    fn every_reason_of_the_pure_part_is_given() {
        assert_eq!(neighbours(&[], &[], Bounds::default()), Err(Fallback::NoSeedCandidates));
        assert_eq!(neighbours(&[1], &[], Bounds::default()), Err(Fallback::Empty));
        assert_eq!(neighbours(&[1, 2], &[edge(1, 2)], Bounds::default()), Err(Fallback::NoNewCandidates));
    }
}
