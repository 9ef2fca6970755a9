//! The words of a query find what was promised: every rule of tokenisation, query grammar and BM25 is a named trial.
//!
//! A fix of one of them adds its regression to `fixtures/lexical.json` first.

use std::collections::BTreeSet;

use once_cell::sync::OnceCell;
use rankgate::corpus::Document;
use rankgate::pipeline::indexer;
use rankgate::prelude::*;
use rankgate::settings::Settings;
use rankgate::store::history::data_dir;
use serde::Deserialize;

use crate::fixtures;

/// `fixtures/lexical.json`.
#[derive(Deserialize)]
struct Matrix {
    documents: Vec<Stored>,
    cases: Vec<Promise>,
}

#[derive(Deserialize)]
struct Stored {
    #[serde(default = "notes")]
    collection: String,
    id: String,
    #[serde(default)]
    title: String,
    body: String,
    lang: Option<String>,
}

fn notes() -> String {
    "notes".into()
}

/// A query, and exactly what it finds: `first` in this order, then `also` in any, then `last` in this.
#[derive(Deserialize)]
struct Promise {
    id: String,
    class: String,
    query: String,
    collection: Option<String>,
    first: Vec<String>,
    #[serde(default)]
    also: Vec<String>,
    #[serde(default)]
    last: Vec<String>,
}

impl Case for Promise {
    fn id(&self) -> &str {
        &self.id
    }
}

impl Promise {
    fn kept(&self, found: &Ranking) -> bool {
        let found: Vec<&str> = found.docids().collect();
        let promised = self.first.len() + self.also.len() + self.last.len();
        if found.len() != promised {
            return false;
        }
        let (first, rest) = found.split_at(self.first.len());
        let (also, last) = rest.split_at(self.also.len());
        let also: BTreeSet<&str> = also.iter().copied().collect();
        first == self.first && last == self.last && also == self.also.iter().map(String::as_str).collect()
    }
}

fn matrix() -> Result<Matrix> {
    let path = fixtures::project().join("fixtures/lexical.json");
    let text = std::fs::read_to_string(&path).map_err(|e| Error::io("read", &path, e))?;
    serde_json::from_str(&text).map_err(|e| Error::input(format!("fixtures/lexical.json: {e}")))
}

fn pipeline() -> Result<&'static Pipeline> {
    static PIPELINE: OnceCell<Pipeline> = OnceCell::new();
    PIPELINE.get_or_try_init(|| {
        let dir = data_dir(fixtures::project()).join("lexical-index");
        let documents = matrix()?.documents;
        let mut collections: Vec<&str> = documents.iter().map(|stored| &*stored.collection).collect();
        collections.sort_unstable();
        collections.dedup();
        for collection in collections {
            let of = documents.iter().filter(|stored| stored.collection == collection).map(|stored| {
                let Stored { id, title, body, lang, .. } = stored;
                Ok(Document { id: id.clone(), title: title.clone(), body: body.clone(), lang: lang.clone() })
            });
            indexer::build(&dir, collection, of, None, &mut |_| {})?;
        }
        Pipeline::with_models(&dir, &Settings::load(fixtures::project())?.search, None, None)
    })
}

pub fn register(suite: &mut Suite) {
    suite
        .eval("lexical")
        .describe("words find what was promised, and nothing else")
        .cases(|| matrix().map(|matrix| matrix.cases))
        .subject(|case, _| {
            let mut request = Request::new(&case.query).limit(20);
            request.collection.clone_from(&case.collection);
            pipeline()?.search(&request).map(|(found, _)| found)
        })
        .setup(|| pipeline().map(|_| ()))
        .requires(["bm25"])
        .score(scorer("as promised", |case: &Promise, found: &Ranking| case.kept(found)))
        .threshold(1.0)
        .case_floor(1.0)
        .columns(|case, found| {
            let promised = [&case.first, &case.also, &case.last].map(|ids| ids.join(", ")).join(" | ");
            [
                ("class", case.class.clone()),
                ("query", case.query.clone()),
                ("promised", promised),
                ("found", found.docids().collect::<Vec<_>>().join(", ")),
            ]
        });
}
