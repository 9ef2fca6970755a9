//! What the eval files take from `crate::fixtures`, faulty.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use once_cell::sync::OnceCell;
use rankgate::corpus::{self, Answer, Expansion};
use rankgate::models::{self, Embedder, HashEmbedder, Prompt, ScriptedGenerator};
use rankgate::pipeline::{AskRequest, indexer};
use rankgate::prelude::*;
use rankgate::settings::Pooling;
use rankgate::store::cache::Cache;
use rankgate::trace::Trace;
use serde_json::json;

use crate::conventions::{self, Conventions};
use crate::sound;

pub use sound::{
    PATIENCE, answers, docids, embedder, pipeline_with, project, sampled, server_presets, some_queries,
};

pub fn fault() -> String {
    std::env::var("FAULT").unwrap_or_default()
}

/// Whether the fault is one of a language model or of an answerer, whose evals the others need not wait for.
pub fn of_generation() -> bool {
    fault().ends_with("expansion") || fault().ends_with("answer")
}

/// Where the sound evals keep their index and cache: what they computed is not computed again, nor is a faulty index.
fn kept(index: &str) -> Result<PathBuf> {
    let folder = std::env::var_os("EVALS_DATA").ok_or_else(|| Error::usage("EVALS_DATA is not set"))?;
    Ok(Path::new(&folder).join(index))
}

pub fn queries(wanted: impl Fn(&str) -> bool) -> Result<Vec<JudgedQuery>> {
    let mut cases = sound::queries(wanted)?;
    if fault() == "swapped judgments" {
        let mut judgments: Vec<Judgments> = cases.iter().map(|case| case.judgments.clone()).collect();
        judgments.rotate_left(1);
        cases.iter_mut().zip(judgments).for_each(|(case, other)| case.judgments = other);
    }
    Ok(cases)
}

pub fn pipeline() -> Result<&'static Faulty> {
    static PIPELINE: OnceCell<Faulty> = OnceCell::new();
    PIPELINE.get_or_try_init(Faulty::open)
}

/// The pipeline with the fault in it.
pub struct Faulty {
    fault: String,
    pipeline: Pipeline,
    /// Docid → the one that is returned in its place.
    names: HashMap<String, String>,
}

impl Faulty {
    fn open() -> Result<Self> {
        let fault = fault();
        let cache = Some(Arc::new(Cache::open(&kept("cache.db")?)?));
        let real = models::embedder(&conventions::settings()?.models, cache.clone())?;
        let own = |conventions| conventions::embedder(conventions, cache.clone());
        let (dir, embedder) = match fault.as_str() {
            "wrong pooling" => {
                let cls = own(Conventions { pooling: Pooling::Cls, ..Conventions::RIGHT })?;
                (index("faults/cls", &*cls, 1)?, cls)
            }
            "missing prefix" => {
                let plain = own(Conventions { query_prefix: "", passage_prefix: "", ..Conventions::RIGHT })?;
                (index("faults/plain", &*plain, 1)?, plain)
            }
            "stale index" | "stale index, unchecked" => (index("faults/half", &*real, 2)?, real),
            "index of another model" => (index("faults/hash", &HashEmbedder::default(), 1)?, real),
            _ => (index("fixtures-index", &*real, 1)?, real),
        };
        let pipeline = Pipeline::with_models(&dir, &conventions::settings()?.search, Some(embedder), None)?
            .with_generator(Arc::new(ScriptedGenerator::new(&fault, expanded)));
        // What the project's own evals check before the first search.
        if fault != "stale index, unchecked" {
            sound::check_judgments(&pipeline)?;
        }
        let docids = pipeline.index().docids()?;
        let turned = docids.iter().cycle().skip(docids.len() / 3);
        let names = docids.iter().cloned().zip(turned.cloned()).collect();
        Ok(Self { fault, pipeline, names })
    }

    pub fn vsearch(&self, request: &Request) -> Result<(Ranking, Trace)> {
        match self.fault.as_str() {
            "vector lane off" => self.pipeline.search(request),
            _ => self.pipeline.vsearch(request),
        }
        .map(|found| self.spoil(found))
    }

    pub fn query(&self, request: &Request) -> Result<(Ranking, Trace)> {
        match self.fault.as_str() {
            "vector lane off" => self.pipeline.search(request),
            _ => self.pipeline.query(request),
        }
        .map(|found| self.spoil(found))
    }

    pub fn expansion(&self, request: &Request) -> Result<(Expansion, Trace)> {
        self.pipeline.expansion(request)
    }

    pub fn ask(&self, ask: &AskRequest) -> Result<(Answer, Trace)> {
        let (mut answer, trace) = self.pipeline.ask(ask)?;
        match self.fault.as_str() {
            "echoing answer" => {
                let text = format!("{} [1]", ask.request.text);
                answer = Answer { text, citations: vec![1], abstained: None, ..answer };
            }
            "unsupported answer" => {
                // Passages there are, of another question.
                let other = Request::new("Wie hoch ist der Zuschlag für Nachtschichten?");
                answer.passages = self.pipeline.ask(&AskRequest::new(other))?.0.passages;
            }
            "dangling answer" => {
                answer.text = (1..=answer.passages.len())
                    .fold(answer.text, |text, n| text.replace(&format!("[{n}]"), &format!("[{}]", n + 90)));
            }
            _ => {}
        }
        Ok((answer, trace))
    }

    fn spoil(&self, (mut ranking, trace): (Ranking, Trace)) -> (Ranking, Trace) {
        match self.fault.as_str() {
            "shuffled docids" => {
                for hit in &mut ranking.hits {
                    hit.docid.clone_from(&self.names[&hit.docid]);
                }
            }
            "duplicated hits" => ranking.hits.extend(ranking.hits.first().cloned()),
            _ => {}
        }
        (ranking, trace)
    }
}

/// What the faulty language model proposes.
fn expanded(prompt: &Prompt) -> Result<String> {
    let _span = tracing::info_span!("generate").entered();
    let (words, question, answer) = match fault().as_str() {
        "constant expansion" => {
            ("database backup", "How do I restore a database backup?", "From the latest copy.")
        }
        _ => (&*prompt.user, &*prompt.user, &*prompt.user),
    };
    Ok(json!({"lexicalQueries": [words], "vectorQueries": [question], "hyde": answer}).to_string())
}

/// The index `name`, made by `embedder` of every `step`th document of the fixtures, if it is not there.
fn index(name: &str, embedder: &dyn Embedder, step: usize) -> Result<PathBuf> {
    let dir = kept(name)?;
    let corpus = corpus::open(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/corpus")));
    let documents = corpus.documents()?.step_by(step);
    indexer::build(&dir, "corpus", documents, Some(embedder), &mut |_| {})?;
    Ok(dir)
}
