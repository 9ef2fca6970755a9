//! Runs the candidates of one embedder.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::artefact::{Candidate, CaseResult, Cost, Figures, Latency};
use super::cases::Set;
use super::{Rerank, Spec};
use crate::corpus::{self, JudgedQuery, Ranking};
use crate::error::{Error, Result};
use crate::metrics::{self, stats};
use crate::models::{self, Embedder, Reranker, TextRole};
use crate::pipeline::progress::IndexBar;
use crate::pipeline::{Expand, Pipeline, Request, indexer};
use crate::settings::{Settings, Thoroughness};
use crate::trace::{Trace, capture};

/// How many documents of a ranking count.
const DEPTH: usize = 10;

/// The candidates of one embedder, and what to measure them over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The documents.
    pub corpus: PathBuf,
    /// A folder for their index.
    pub index: PathBuf,
    /// The settings, this embedder in them.
    pub settings: Settings,
    /// The candidates; all have the same embedder.
    pub specs: Vec<Spec>,
    /// The cases.
    pub sets: Vec<Set>,
    /// Documents beyond the first ten whose places are kept, beside those judged.
    pub explained: usize,
}

/// The models of a candidate; none for words alone.
#[derive(Clone, Default)]
pub struct Models {
    /// Texts to vectors.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// A cross-encoder, where the settings name one.
    pub reranker: Option<Arc<dyn Reranker>>,
}

/// The models that a job's settings name, which remember nothing of earlier runs.
pub fn open_models(job: &Job) -> Result<Models> {
    if job.specs.iter().all(|spec| spec.embedder.is_none()) {
        return Ok(Models::default());
    }
    let settings = &job.settings.models;
    let crosses = job.specs.iter().any(|spec| spec.rerank == Rerank::CrossEncoder);
    let reranker = if crosses { models::reranker(settings, None)? } else { None };
    Ok(Models { embedder: Some(models::embedder(settings, None)?), reranker })
}

/// Measures every candidate of the job over an index that is made for it; one that fails says why and has no figures.
///
/// `open` is asked for new models for each candidate, so that none finds what another one has computed. `done` is
/// called after each case.
pub fn measure(job: &Job, open: &dyn Fn() -> Result<Models>, done: &mut dyn FnMut()) -> Vec<Candidate> {
    let (models, mut cost) = match prepare(job, open) {
        Ok(prepared) => prepared,
        Err(error) => {
            return job.specs.iter().map(|spec| Candidate::failed(spec, error.report())).collect();
        }
    };
    let mut first = Some(models);
    let mut one = |spec| -> Result<Candidate> {
        let models = first.take().map_or_else(open, Ok)?;
        candidate(job, spec, models, done)
    };
    let measured =
        job.specs.iter().map(|spec| one(spec).unwrap_or_else(|e| Candidate::failed(spec, e.report())));
    let mut measured: Vec<Candidate> = measured.collect();
    match peak_memory() {
        Ok(bytes) => cost.peak_rss_bytes = Some(bytes),
        Err(why) => cost.no_memory = Some(why),
    }
    for candidate in measured.iter_mut().filter(|candidate| candidate.failed.is_none()) {
        candidate.cost = Some(cost.clone());
    }
    measured
}

/// Loads the embedder and indexes the documents.
fn prepare(job: &Job, open: &dyn Fn() -> Result<Models>) -> Result<(Models, Cost)> {
    let started = Instant::now();
    let models = open()?;
    let load_ms = match &models.embedder {
        Some(embedder) => {
            embedder.embed(&["ready"], TextRole::Query)?;
            Some(milliseconds(started))
        }
        None => None,
    };
    let mut bar = IndexBar::new("corpus", &job.index, models.embedder.is_some());
    let started = Instant::now();
    let documents = corpus::open(&job.corpus).documents()?;
    let embedder = models.embedder.as_deref();
    indexer::build(&job.index, "corpus", documents, embedder, &mut |progress| bar.show(progress))?;
    Ok((models, Cost { load_ms, index_ms: milliseconds(started), ..Cost::default() }))
}

fn candidate(job: &Job, spec: &Spec, models: Models, done: &mut dyn FnMut()) -> Result<Candidate> {
    let reranker = models.reranker.filter(|_| spec.rerank == Rerank::CrossEncoder);
    if spec.rerank == Rerank::CrossEncoder && reranker.is_none() {
        return Err(Error::usage("no cross-encoder is configured").with_hint("set `reranker` in [models]"));
    }
    let pipeline = Pipeline::with_models(&job.index, &job.settings.search, models.embedder, reranker)?;
    let search = Search { pipeline, spec, explained: job.explained };
    let mut candidate = Candidate::of(spec);
    if let Some(case) = job.sets.iter().flat_map(|set| &set.cases).next() {
        // Loads the model and reads the vectors: not what a search costs. Its error comes again.
        let _ = search.run(&search.request(case));
    }
    let mut took: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for set in &job.sets {
        let from = candidate.cases.len();
        for case in &set.cases {
            let (result, trace) = search.case(case).map_err(|e| of_case(case, e))?;
            note(&trace, &mut took, &mut candidate.models);
            took.entry("total".into()).or_default().push(result.took_ms);
            candidate.cases.push(result);
            done();
        }
        candidate.figures.insert(set.name.clone(), figures(&candidate.cases[from..], &set.cases));
    }
    let all: Vec<&JudgedQuery> = job.sets.iter().flat_map(|set| &set.cases).collect();
    candidate.figures.insert("all".into(), figures(&candidate.cases, all));
    let percentile = |values: &[f64], p| stats::percentile(values, p).unwrap_or(0.0);
    let latency =
        |values: &Vec<f64>| Latency { p50_ms: percentile(values, 50.0), p95_ms: percentile(values, 95.0) };
    candidate.latency = took.iter().map(|(stage, values)| (stage.clone(), latency(values))).collect();
    Ok(candidate)
}

fn of_case(case: &JudgedQuery, error: Error) -> Error {
    error.context(format_args!("case `{}`", case.query.id))
}

fn figures<'a>(results: &'a [CaseResult], cases: impl IntoIterator<Item = &'a JudgedQuery>) -> Figures {
    Figures::new(results.iter().zip(cases).map(|(result, case)| (result.ranking.as_slice(), &case.judgments)))
}

/// Adds a search's outer stages to what stages took, and its models to those that ran.
fn note(trace: &Trace, took: &mut BTreeMap<String, Vec<f64>>, models: &mut BTreeMap<String, String>) {
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for stage in trace.stages.iter().filter(|stage| stage.depth == 0) {
        *sums.entry(&stage.name).or_default() += stage.took_ms;
        if let Some(model) = stage.model().filter(|_| ["vector", "rerank"].contains(&stage.name.as_str())) {
            models.insert(stage.name.clone(), model.into());
        }
    }
    sums.into_iter().for_each(|(stage, ms)| took.entry(stage.into()).or_default().push(rounded(ms, 3)));
}

/// A candidate's way to search.
struct Search<'a> {
    pipeline: Pipeline,
    spec: &'a Spec,
    explained: usize,
}

impl Search<'_> {
    fn request(&self, case: &JudgedQuery) -> Request {
        let mut request = Request::from(&case.query).limit(DEPTH).thoroughness(Thoroughness::Balanced);
        request.fusion = Some(self.spec.fusion);
        request.rerank = self.spec.rerank != Rerank::None;
        request.expand = Some(Expand::Never);
        request
    }

    fn run(&self, request: &Request) -> Result<(Ranking, Trace)> {
        match self.spec.embedder {
            Some(_) => self.pipeline.query(request),
            None => self.pipeline.search(request),
        }
    }

    /// Searches for a case, then looks for the places of documents. Fails when a stage did not run.
    fn case(&self, case: &JudgedQuery) -> Result<(CaseResult, Trace)> {
        let request = self.request(case);
        let started = Instant::now();
        let (found, trace) = capture(|| self.run(&request));
        let took_ms = milliseconds(started);
        let missing = self.missing(&trace);
        let (ranking, _) = found.map_err(|e| {
            // A search that fails ends in the stage that it entered last, unless it never came to the one that it needs.
            let last = trace.stages.iter().rfind(|stage| stage.depth == 0).map(|stage| stage.name.as_str());
            e.context(format_args!("stage `{}`", missing.or(last).unwrap_or("start")))
        })?;
        if let Some(stage) = missing {
            return Err(did_not_run(stage, &trace));
        }
        let mut ran: Vec<String> = Vec::new();
        for stage in trace.stages.iter().filter(|stage| stage.depth == 0 && stage.ran()) {
            if !ran.contains(&stage.name) {
                ran.push(stage.name.clone());
            }
        }
        let mut result = CaseResult { id: case.query.id.clone(), ran, took_ms, ..CaseResult::default() };
        result.ranking = ranking.docids().map(String::from).collect();
        let ndcg = metrics::ndcg_at(DEPTH, ranking.docids(), &case.judgments).unwrap_or(0.0);
        result.ndcg_10 = rounded(ndcg, 6);
        self.explain(request, case, &mut result)?;
        Ok((result, trace))
    }

    /// The first of the stages that the candidate stands for that did not run.
    fn missing(&self, trace: &Trace) -> Option<&'static str> {
        let stages: &[&str] = match (&self.spec.embedder, self.spec.rerank) {
            (None, _) => &["bm25"],
            (_, Rerank::None) => &["bm25", "vector", "fusion"],
            _ => &["bm25", "vector", "fusion", "rerank"],
        };
        stages.iter().copied().find(|stage| !trace.sound(stage))
    }

    /// Looks up the places of the documents that were ranked or judged.
    fn explain(&self, mut request: Request, case: &JudgedQuery, result: &mut CaseResult) -> Result<()> {
        // With this limit the lanes are as long as before: nothing changes but where the list ends.
        request.limit = self.pipeline.settings().candidates.max(DEPTH);
        let mut columns: BTreeMap<String, HashMap<String, usize>> = BTreeMap::new();
        let (all, _) = self.run(&request)?;
        for (hit, rank) in all.hits.iter().zip(1..) {
            columns.entry("ranked".into()).or_default().insert(hit.docid.clone(), rank);
            for said in &hit.evidence {
                columns.entry(said.stage.clone()).or_default().insert(hit.docid.clone(), said.rank);
            }
        }
        if request.rerank && self.spec.embedder.is_some() {
            request.rerank = false;
            let fused = self.run(&request)?.0;
            let ranks = fused.docids().map(String::from).zip(1..).collect();
            columns.insert("fused".into(), ranks);
        }
        let judged = case.judgments.iter().filter(|(_, grade)| **grade > 0).map(|(docid, _)| docid.as_str());
        let further = all.docids().skip(result.ranking.len()).take(self.explained);
        for docid in judged.chain(further) {
            if !result.ranking.iter().chain(&result.below).any(|known| known == docid) {
                result.below.push(docid.into());
            }
        }
        let documents: Vec<&String> = result.ranking.iter().chain(&result.below).collect();
        result.places = columns
            .into_iter()
            .map(|(stage, ranks)| (stage, documents.iter().map(|docid| ranks.get(*docid).copied()).collect()))
            .collect();
        Ok(())
    }
}

fn did_not_run(stage: &str, trace: &Trace) -> Error {
    let fields = trace.stage(stage).map(|stage| &stage.fields);
    let why = fields.and_then(|fields| fields.get("error").or(fields.get("skipped")));
    let why = why.map_or("it was never entered".into(), |why| why.as_str().unwrap_or_default().to_owned());
    Error::input(format!("stage `{stage}` did not run: {why}"))
}

/// Milliseconds since then, to the microsecond.
fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_micros() as f64 / 1e3
}

fn rounded(value: f64, digits: i32) -> f64 {
    let unit = 10f64.powi(digits);
    (value * unit).round() / unit
}

/// The most memory that this process has had at once, or why that is not known.
fn peak_memory() -> Result<u64, String> {
    let file = "/proc/self/status";
    let text = std::fs::read_to_string(file)
        .map_err(|_| format!("{} has no {file} that states it", std::env::consts::OS))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kilobytes.map(|kilobytes| kilobytes * 1024).ok_or_else(|| format!("{file} does not state VmHWM"))
}
