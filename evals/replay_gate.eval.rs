//! The pipeline finds what it is known to find, in a corpus of invented names whose vectors are made by hand: no
//! model, no network. It guards the machinery around the models (lanes, fusion, reranking, cuts), not their quality.
//!
//! A change that is meant to move a ranking edits `fixtures/replay/qrels.json`, and its commit says why.

use std::path::PathBuf;
use std::sync::Arc;

use once_cell::sync::OnceCell;
use rankgate::Document;
use rankgate::gate::{qrels, truth};
use rankgate::models::{Embedder, Embeddings, TextRole, TokenVectors};
use rankgate::pipeline::indexer;
use rankgate::prelude::*;
use rankgate::settings::SearchSettings;
use rankgate::store::history::data_dir;

use crate::fixtures::project;

/// What means the same has the same axis: a name, and what else it is called.
const AXES: &[&[&str]] = &[
    &["alice-example", "head of operations"],
    &["bob-example", "night shift lead"],
    &["carol-example", "lighthouse keeper"],
    &["dan-example", "recruiter"],
    &["widget-co-example", "widget maker"],
    &["gadget-co-example", "gadget maker"],
    &["fund-a-example", "first investor"],
    &["seed-round-example", "first financing"],
    &["flywheel-example", "self-reinforcing growth"],
    &["founder-mode-example", "hands-on leadership"],
    &["beacon-example", "navigation light"],
    &["ledger-example", "accounts book"],
];

/// Documents by id: most are on one subject, meetings join two.
const DOCUMENTS: &[(&str, &str)] = &[
    ("people/alice-example", "alice-example plans stock and shifts. Write to alice-example before ordering."),
    ("people/bob-example", "bob-example works nights and hands over at six."),
    ("people/carol-example", "carol-example tends the lamp on the northern pier."),
    ("people/dan-example", "dan-example reads applications and calls candidates."),
    ("companies/widget-co-example", "widget-co-example ships widgets in boxes of twelve."),
    ("companies/gadget-co-example", "gadget-co-example repairs what it sells."),
    ("companies/fund-a-example", "fund-a-example answers within a week."),
    ("deals/seed-round-example", "seed-round-example closed in March after two extensions."),
    ("concepts/flywheel-example", "flywheel-example: each turn makes the next one easier."),
    ("concepts/founder-mode-example", "founder-mode-example: stay close to the work."),
    ("projects/beacon-example", "beacon-example replaces the old lamp by a brighter one."),
    ("projects/ledger-example", "ledger-example moves invoices off paper."),
    ("meetings/prices", "alice-example and widget-co-example agreed on prices for the year."),
    ("meetings/money", "fund-a-example asked for the terms of seed-round-example."),
    ("meetings/pier", "carol-example showed beacon-example at dusk."),
    ("meetings/books", "gadget-co-example is the first to try ledger-example."),
    ("meetings/growth", "flywheel-example beats founder-mode-example once there are ten people."),
];

/// Weekly notes, which touch many subjects and answer nothing: each of them is near every query.
const WEEKS: usize = 30;

fn documents() -> Vec<Document> {
    let document = |id: String, body: String| Document { id, body, ..Document::default() };
    let week = |week: usize| {
        let names: Vec<&str> = (0..4).map(|n| AXES[(week + n * (1 + week / 12)) % AXES.len()][0]).collect();
        document(format!("notes/week-{week:02}"), format!("Seen in week {week}: {}.", names.join(", ")))
    };
    let known = DOCUMENTS.iter().map(|(id, body)| document(id.to_string(), body.to_string()));
    known.chain((0..WEEKS).map(week)).collect()
}

/// Maps a text to the axes it mentions; everything else is one more axis.
struct BasisEmbedder(String);

impl BasisEmbedder {
    fn new() -> Self {
        Self(format!("basis 1 {}", AXES.concat().join(" ")))
    }

    fn axis(index: usize) -> Vec<f32> {
        (0..=AXES.len()).map(|i| if i == index { 1.0 } else { 0.0 }).collect()
    }

    /// The axes of a text, once a mention.
    fn mentions(text: &str) -> Vec<usize> {
        let text = text.to_lowercase();
        let count = |(axis, names): (usize, &&[&str])| {
            let times = names.iter().map(|name| text.matches(name).count()).sum();
            std::iter::repeat_n(axis, times)
        };
        let found: Vec<usize> = AXES.iter().enumerate().flat_map(count).collect();
        if found.is_empty() { vec![AXES.len()] } else { found }
    }
}

impl Embedder for BasisEmbedder {
    fn name(&self) -> &str {
        "basis"
    }

    fn fingerprint(&self) -> &str {
        &self.0
    }

    fn dims(&self) -> usize {
        AXES.len() + 1
    }

    fn embed(&self, texts: &[&str], _: TextRole) -> Result<Embeddings> {
        let mut data = Vec::new();
        for text in texts {
            let mut sum = vec![0.0; self.dims()];
            Self::mentions(text).into_iter().for_each(|axis| sum[axis] += 1.0);
            let norm = sum.iter().map(|x| x * x).sum::<f32>().sqrt();
            data.extend(sum.into_iter().map(|x| x / norm));
        }
        Ok(Embeddings { dims: self.dims(), data, truncated: 0 })
    }

    fn embed_tokens(&self, texts: &[&str], _: TextRole) -> Result<Vec<TokenVectors>> {
        let vectors = |text: &&str| {
            let data = Self::mentions(text).into_iter().flat_map(Self::axis).collect();
            TokenVectors { dims: self.dims(), data }
        };
        Ok(texts.iter().map(vectors).collect())
    }
}

fn pipeline() -> Result<&'static Pipeline> {
    static PIPELINE: OnceCell<Pipeline> = OnceCell::new();
    PIPELINE.get_or_try_init(|| {
        let (dir, embedder) = (data_dir(project()).join("replay-gate-index"), Arc::new(BasisEmbedder::new()));
        let documents = documents().into_iter().map(Ok);
        indexer::build(&dir, qrels::DEFAULT_SOURCE, documents, Some(&*embedder), &mut |_| {})?;
        Pipeline::with_models(&dir, &SearchSettings::default(), Some(embedder), None)
    })
}

/// A query with the document that has to come first, and all that are relevant.
type Known = Example<(String, Option<String>), Judgments>;

fn known() -> Result<Vec<Known>> {
    let path: PathBuf = project().join("fixtures/replay/qrels.json");
    let known = truth::read(&path, None)?.queries.into_iter().map(|query| {
        let judgments = query.relevant.into_iter().map(|document| (document.slug, 1)).collect::<Judgments>();
        if let Some(slug) = judgments.keys().find(|slug| !DOCUMENTS.iter().any(|(id, _)| id == slug)) {
            return Err(Error::input(format!("query `{}` names `{slug}`, which is no document", query.id)));
        }
        let first = query.expected_top1.map(|document| document.slug);
        Ok(Example::new(query.id, (query.query, first)).expecting(judgments))
    });
    known.collect::<Result<_>>().map_err(|e| e.context(path.display()))
}

/// A floor, or what the environment has in its place.
fn floor(variable: &str, default: f64) -> Result<f64> {
    let Ok(text) = std::env::var(variable) else { return Ok(default) };
    match text.parse() {
        Ok(floor) if (0.0..=1.0).contains(&floor) => Ok(floor),
        _ => Err(Error::usage(format!("{variable} is `{text}`, not a number from 0 to 1"))),
    }
}

pub fn register(suite: &mut Suite) -> Result<()> {
    let (top1, recall) = (floor("RANKGATE_REPLAY_TOP1", 0.80)?, floor("RANKGATE_REPLAY_RECALL", 0.85)?);
    suite
        .eval("replay_gate")
        .describe("lanes, fusion and cuts find the known documents of an invented corpus")
        .cases(known)
        .variant("vsearch", |case: &Known, _| pipeline()?.vsearch(&Request::new(&case.input.0)).map(|(hits, _)| hits))
        .variant("query", |case: &Known, _| pipeline()?.query(&Request::new(&case.input.0)).map(|(hits, _)| hits))
        .setup(|| pipeline().map(|_| ()))
        .requires(["vector"])
        .score(
            scorer("top-1", |case: &Known, out: &Ranking| match &case.input.1 {
                Some(first) => Scored::from(out.docids().next() == Some(first)),
                None => Scored::skipped("no document has to come first"),
            })
            .at_least(top1),
        )
        .score(recall_at(10).at_least(recall))
        .case_floor(0.0)
        .columns(|case, out| [("query", case.input.0.clone()), ("top 3", out.top(3))]);
    Ok(())
}
