//! How a captured search is run again, or why it cannot be.

use std::collections::HashSet;

use crate::corpus::Ranking;
use crate::error::Result;
use crate::pipeline::{Expand, Pipeline, Request};
use crate::record::{Captured, Tool};
use crate::settings::Thoroughness;
use crate::trace::Trace;

use super::Options;

/// The lanes that a search reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lanes {
    Words,
    Meaning,
    Both,
}

/// A search as it was.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub lanes: Lanes,
    pub request: Request,
    /// How many documents of both rankings are compared.
    pub depth: usize,
}

/// Whether running `row` again needs an embedder; `default` is the thoroughness of a row that states none.
pub fn by_meaning(row: &Captured, default: Thoroughness) -> bool {
    row.unreplayable().is_none() && lanes(row, default) != Lanes::Words
}

impl Plan {
    /// The plan for `row`, or the reason why it cannot be run as it was. Fails when the index does.
    pub fn new(pipeline: &Pipeline, options: &Options, row: &Captured) -> Result<Result<Self, String>> {
        if let Some(reason) = row.unreplayable() {
            return Ok(Err(reason));
        }
        let plan = Self::of(row, options, pipeline.settings().thoroughness);
        Ok(plan.obstacle(pipeline)?.map_or(Ok(plan), Err))
    }

    fn of(row: &Captured, options: &Options, default: Thoroughness) -> Self {
        let (lanes, mut request) = (lanes(row, default), request(row, options));
        if lanes == Lanes::Both {
            // However little the settings ask for by now.
            let level = row.asked.thoroughness.unwrap_or(default);
            request.thoroughness =
                Some(if level == Thoroughness::Fast { Thoroughness::Balanced } else { level });
        }
        Self { lanes, depth: depth(row, &request), request }
    }

    /// Runs it.
    pub fn run(&self, pipeline: &Pipeline) -> Result<(Ranking, Trace)> {
        match self.lanes {
            Lanes::Words => pipeline.search(&self.request),
            Lanes::Meaning => pipeline.vsearch(&self.request),
            Lanes::Both => pipeline.query(&self.request),
        }
    }

    /// The row as far as it can be compared: its documents down to the depth; the time that an answer took has no
    /// counterpart, as only its passages are looked for.
    pub fn comparable(&self, row: &Captured) -> Captured {
        let latency_ms = row.latency_ms.filter(|_| row.tool_name != Tool::Ask);
        let mut seen = HashSet::new();
        let slugs = row.retrieved_slugs.iter().filter(|slug| seen.insert(slug.as_str())).take(self.depth);
        Captured { latency_ms, retrieved_slugs: slugs.cloned().collect(), ..row.clone() }
    }

    /// What this pipeline lacks.
    fn obstacle(&self, pipeline: &Pipeline) -> Result<Option<String>> {
        if let Some(wanted) = &self.request.collection {
            let known = pipeline.index().collections()?;
            if !known.iter().any(|(name, _)| name == wanted) {
                return Ok(Some(format!("the index has no collection `{wanted}`")));
            }
        }
        if self.lanes == Lanes::Words {
            return Ok(None);
        }
        Ok(match (pipeline.embedder(), pipeline.index().model()) {
            (None, _) => Some("it was searched by meaning, and there is no embedder".into()),
            (_, None) => Some("it was searched by meaning, and the index has no vectors".into()),
            (Some(embedder), Some(model)) if embedder.fingerprint() != model.fingerprint => Some(format!(
                "it was searched by meaning, and the vectors of the index are by `{}`, not by `{}`",
                model.name,
                embedder.name()
            )),
            _ => None,
        })
    }
}

/// Which lanes the row's search read.
fn lanes(row: &Captured, default: Thoroughness) -> Lanes {
    let fast = row.asked.thoroughness.unwrap_or(default) == Thoroughness::Fast;
    match (row.tool_name, row.vector_enabled) {
        (Tool::Search, _) => Lanes::Words,
        (Tool::Vsearch, _) => Lanes::Meaning,
        (Tool::Query | Tool::Ask, Some(true)) => Lanes::Both,
        (Tool::Query | Tool::Ask, Some(false)) => Lanes::Words,
        (Tool::Query | Tool::Ask, None) => {
            if fast {
                Lanes::Words
            } else {
                Lanes::Both
            }
        }
    }
}

/// What the row's search asked.
fn request(row: &Captured, options: &Options) -> Request {
    let asked = &row.asked;
    // Parts of the request take the place of an expansion.
    let expansion = row.expansion.clone().filter(|_| asked.parts.is_empty());
    Request {
        modes: asked.parts.clone(),
        collection: asked.collection.clone(),
        fusion: asked.fusion,
        rerank: asked.rerank.unwrap_or(true),
        graph: asked.graph,
        expand: Some(Expand::Never),
        expansion: expansion.filter(|_| row.expansion_applied != Some(false)),
        lang: asked.lang.clone(),
        ..Request::new(&row.query).limit(asked.limit.unwrap_or(options.limit.max(row.retrieved_slugs.len())))
    }
}

/// How many documents are compared.
fn depth(row: &Captured, request: &Request) -> usize {
    let distinct: HashSet<&String> = row.retrieved_slugs.iter().collect();
    match (row.asked.limit, distinct.len()) {
        (Some(limit), _) => limit,
        (None, 0) => request.limit,
        (None, captured) => captured,
    }
}
