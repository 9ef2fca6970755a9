//! Candidate benchmarks: what is measured, what fails, and what is kept. Hashed words stand for a model.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rankgate::benchmarks::candidates::{
    Artefact, CONTROL, Candidate, Job, Kind, Models, Rerank, Spec, measure, own,
};
use rankgate::models::{Embedder, Embeddings, HashEmbedder, TextRole, TokenVectors};
use rankgate::settings::{Fusion, Settings};
use rankgate::{Error, Result};
use serde_json::Value;

mod program;
mod rankings;

/// Writes eight documents and three judged queries; returns the folder of the first and the file of the second.
pub fn write_corpus(dir: &Path) -> (PathBuf, PathBuf) {
    let docs = dir.join("docs");
    std::fs::create_dir_all(&docs).unwrap();
    for (name, text) in [
        ("apple", "apple pie with apples, cinnamon and butter"),
        ("bread", "bread needs flour, water, salt and time"),
        ("cherry", "cherry cake with butter and flour"),
        ("dumpling", "dumpling soup with salt and leek"),
        ("egg", "egg salad with leek and butter"),
        ("fig", "fig jam: figs and time"),
        ("grape", "grape juice, water and nothing else"),
        ("honey", "honey cake with cinnamon and flour"),
    ] {
        std::fs::write(docs.join(format!("{name}.md")), format!("# {name}\n\n{text}\n")).unwrap();
    }
    let queries = dir.join("queries.json");
    let text = r#"[
        {"id": "q1", "query": "apple pie butter", "judgments": [{"docid": "apple.md", "relevance": 3}, {"docid": "fig.md", "relevance": 1}]},
        {"id": "a1", "query": "cake with flour", "judgments": [{"docid": "cherry.md", "relevance": 2}, {"docid": "honey.md", "relevance": 2}]},
        {"id": "x1", "query": "soup leek salad", "judgments": [{"docid": "dumpling.md", "relevance": 3}]}
    ]"#;
    std::fs::write(&queries, text).unwrap();
    (docs, queries)
}

fn spec(fusion: Fusion, rerank: Rerank) -> Spec {
    Spec { embedder: Some("hash".into()), fusion, rerank }
}

fn job(dir: &Path, specs: Vec<Spec>) -> Job {
    let (corpus, queries) = write_corpus(dir);
    let sets = own(&corpus, &queries).unwrap().1;
    Job { corpus, index: dir.join("index"), settings: Settings::default(), specs, sets, explained: 0 }
}

fn with(embedder: impl Embedder + 'static) -> Result<Models> {
    Ok(Models { embedder: Some(Arc::new(embedder)), reranker: None })
}

fn measured(job: &Job, open: &dyn Fn() -> Result<Models>) -> Vec<Candidate> {
    let found = measure(job, open, &mut || ());
    assert_eq!(found.len(), job.specs.len());
    found
}

#[test]
fn every_case_has_its_ranking_stages_and_places_and_a_second_run_the_same_fingerprint() {
    let specs = vec![spec(Fusion::Adaptive, Rerank::LateInteraction), spec(Fusion::Rrf, Rerank::None)];
    let artefact = || {
        let dir = tempfile::tempdir().unwrap();
        let job = job(dir.path(), specs.clone());
        let (facts, sets) = own(&job.corpus, &dir.path().join("queries.json")).unwrap();
        Artefact::new(Kind::Candidates, facts, &sets, measured(&job, &|| with(HashEmbedder::default())))
    };
    let first = artefact();
    let [late, plain] = first.candidates.as_slice() else { panic!("{first:?}") };
    assert_eq!((late.failed.as_ref(), plain.failed.as_ref()), (None, None));
    assert_eq!(late.id, "hash/adaptive/late-interaction");
    let case = &late.cases[0];
    assert_eq!((case.id.as_str(), case.ranking[0].as_str()), ("q1", "apple.md"));
    assert!(
        ["bm25", "vector", "fusion"].iter().all(|stage| case.ran.iter().any(|ran| ran == stage)),
        "{case:?}"
    );
    assert_eq!(case.places["bm25"][0], Some(1));
    let documents = case.ranking.len() + case.below.len();
    assert!(case.places.values().all(|places| places.len() == documents), "{case:?}");
    assert!(case.places.contains_key("fused") && !plain.cases[0].places.contains_key("fused"));
    assert!(late.all().unwrap().recall_10 > 0.9 && late.figures["own"] == late.figures["all"]);
    assert!(late.latency["total"].p95_ms >= late.latency["bm25"].p95_ms);
    let cost = late.cost.as_ref().unwrap();
    assert!(cost.load_ms.is_some() && cost.peak_rss_bytes.is_some() != cost.no_memory.is_some(), "{cost:?}");
    assert_eq!(late.models["vector"], HashEmbedder::default().fingerprint());
    let recommendation = first.recommendation.as_ref().unwrap();
    assert_eq!(recommendation.candidate.as_deref(), Some("hash/adaptive/late-interaction"));

    assert_eq!(artefact().fingerprint, first.fingerprint);
    let text = serde_json::to_string(&first).unwrap();
    assert_eq!(Artefact::parse(&text).unwrap(), first);
    valid("bench-candidates", &serde_json::from_str(&text).unwrap());
}

/// Checks a document against a published schema.
pub fn valid(name: &str, document: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("schemas/{name}.schema.json"));
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    jsonschema::validate(&schema, document).unwrap();
}

/// Embeds so many queries, then fails; or never has token vectors.
struct Dying {
    inner: HashEmbedder,
    queries: AtomicUsize,
    tokens: bool,
}

impl Dying {
    fn new(queries: usize, tokens: bool) -> Self {
        Self { inner: HashEmbedder::default(), queries: AtomicUsize::new(queries), tokens }
    }
}

impl Embedder for Dying {
    fn name(&self) -> &str {
        "dying"
    }
    fn fingerprint(&self) -> &str {
        self.inner.fingerprint()
    }
    fn dims(&self) -> usize {
        self.inner.dims()
    }
    fn embed(&self, texts: &[&str], role: TextRole) -> Result<Embeddings> {
        let one_less = |left: usize| left.checked_sub(1);
        if role == TextRole::Query
            && self.queries.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_err()
        {
            return Err(Error::input("the model died"));
        }
        self.inner.embed(texts, role)
    }
    fn embed_tokens(&self, texts: &[&str], role: TextRole) -> Result<Vec<TokenVectors>> {
        if self.tokens { self.inner.embed_tokens(texts, role) } else { Err(Error::input("no tokens")) }
    }
}

#[test]
fn an_embedder_that_dies_fails_its_candidate_and_names_case_and_stage() {
    let dir = tempfile::tempdir().unwrap();
    let specs = vec![spec(Fusion::Rrf, Rerank::None), spec(Fusion::Adaptive, Rerank::None)];
    let job = job(dir.path(), specs);
    // Loading, the first search, and two for each case that succeeds; the next candidate gets another one.
    let lives = AtomicUsize::new(0);
    let open = || with(Dying::new(if lives.fetch_add(1, Ordering::SeqCst) == 0 { 4 } else { 100 }, true));
    let found = measured(&job, &open);
    let why = found[0].failed.as_deref().unwrap();
    assert!(why.contains("case `a1`: stage `vector`: ") && why.contains("the model died"), "{why}");
    assert!(found[0].figures.is_empty() && found[0].cases.is_empty() && found[0].cost.is_none());
    assert!(found[1].failed.is_none(), "{:?}", found[1].failed);

    let (facts, sets) = own(&job.corpus, &dir.path().join("queries.json")).unwrap();
    let artefact = Artefact::new(Kind::Candidates, facts, &sets, found);
    let recommendation = artefact.recommendation.as_ref().unwrap();
    assert!(
        recommendation.candidate.is_none() && recommendation.why.contains("failed"),
        "{recommendation:?}"
    );
    let page = rankgate::benchmarks::candidates::page(&artefact);
    assert!(page.contains("## Failed") && page.contains("the model died"), "{page}");
}

#[test]
fn reranking_that_does_not_run_is_no_candidate_without_reranking() {
    let dir = tempfile::tempdir().unwrap();
    let late = spec(Fusion::Adaptive, Rerank::LateInteraction);
    let mut job = job(dir.path(), vec![late.clone(), spec(Fusion::Adaptive, Rerank::None)]);
    let found = measured(&job, &|| with(Dying::new(100, false)));
    let why = found[0].failed.as_deref().unwrap();
    assert!(why.contains("stage `rerank`") && why.contains("no tokens"), "{why}");
    assert!(found[1].failed.is_none(), "asks for no reranking: {:?}", found[1].failed);

    job.settings.search.rerank_depth = 0;
    let found = measured(&job, &|| with(HashEmbedder::default()));
    let why = found[0].failed.as_deref().unwrap();
    assert!(why.contains("stage `rerank` did not run: not wanted"), "{why}");

    job.specs = vec![spec(Fusion::Rrf, Rerank::CrossEncoder)];
    let found = measured(&job, &|| with(HashEmbedder::default()));
    assert!(found[0].failed.as_deref().unwrap().contains("no cross-encoder is configured"));
}

#[test]
fn the_control_needs_no_model_and_a_model_that_is_not_there_fails_all_of_its_candidates() {
    let dir = tempfile::tempdir().unwrap();
    let mut job = job(dir.path(), vec![Spec::default()]);
    let found = measured(&job, &|| Ok(Models::default()));
    assert!(found[0].failed.is_none() && found[0].id == CONTROL && found[0].models.is_empty());
    assert_eq!(found[0].cases[0].ran, ["bm25"]);
    assert_eq!(found[0].cost.as_ref().unwrap().load_ms, None);

    job.specs = vec![spec(Fusion::Rrf, Rerank::None), spec(Fusion::Adaptive, Rerank::None)];
    let found = measured(&job, &|| Err(Error::not_found("no such model")));
    assert!(found.iter().all(|candidate| candidate.failed.as_deref() == Some("no such model")));
}

#[test]
fn what_cannot_be_measured_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let (docs, queries) = write_corpus(dir.path());
    let empty = dir.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let refused = |corpus: &Path, text: Option<&str>| {
        text.iter().for_each(|text| std::fs::write(&queries, text).unwrap());
        own(corpus, &queries).unwrap_err().report()
    };
    assert!(refused(&empty, None).contains("empty"), "{}", refused(&empty, None));
    let judged = |docid: &str, grade: i64| {
        format!(
            r#"[{{"id": "q1", "query": "x", "judgments": [{{"docid": "{docid}", "relevance": {grade}}}]}}]"#
        )
    };
    for (text, words) in [
        (r#"[{"id": "q1", "query": "x"}]"#.to_string(), "query `q1`: no document is judged"),
        (judged("apple.md", 0), "no query has a relevant document"),
        (judged("aple.md", 1), "did you mean `apple.md`?"),
        ("[".to_string(), "queries.json"),
    ] {
        let said = refused(&docs, Some(&text));
        assert!(said.contains(words), "{said}");
    }
}
