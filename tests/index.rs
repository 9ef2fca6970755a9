//! The index folder: what is read, what is kept, what survives a stop at any moment, what is refused.

use std::fs;
use std::path::Path;

use rankgate::models::{Embedder, Embeddings, HashEmbedder, TextRole, TokenVectors};
use rankgate::pipeline::graph::{self, Bounds, Fallback};
use rankgate::pipeline::index::IndexReader;
use rankgate::pipeline::indexer::{self, IndexReport};
use rankgate::{Document, ErrorKind, Result};

mod program;

fn document(id: &str, body: &str) -> Document {
    Document { id: id.into(), title: id.to_uppercase(), body: body.into(), lang: None }
}

fn build(dir: &Path, documents: &[Document], embedder: Option<&dyn Embedder>) -> Result<IndexReport> {
    build_collection(dir, "notes", documents, embedder)
}

fn build_collection(
    dir: &Path,
    collection: &str,
    documents: &[Document],
    embedder: Option<&dyn Embedder>,
) -> Result<IndexReport> {
    indexer::build(dir, collection, documents.iter().cloned().map(Ok), embedder, &mut |_| {})
}

fn counts(report: &IndexReport) -> [u64; 4] {
    [report.added, report.changed, report.removed, report.unchanged]
}

/// The ids that the words of `query` find.
fn words(index: &IndexReader, query: &str) -> Vec<String> {
    let result = index.lexical().search(&rankgate::text::parse(query), None, 1000).unwrap();
    let ids = result.hits.iter().map(|hit| index.document(hit.key).unwrap().unwrap().document.id);
    let mut ids: Vec<String> = ids.collect();
    ids.sort();
    ids
}

/// The id that the vector of `query` finds first.
fn meaning(index: &IndexReader, query: &str, embedder: &dyn Embedder) -> String {
    let vector = embedder.embed(&[query], TextRole::Query).unwrap().data;
    let hits = index.vectors(embedder).unwrap().search(&vector, 1, None).unwrap();
    index.document(hits[0].key).unwrap().unwrap().document.id
}

#[test]
fn only_what_changed_is_done_again() {
    let dir = tempfile::tempdir().unwrap();
    let model = HashEmbedder::new(64);
    let mut corpus = vec![document("a", "apples"), document("b", "bears"), document("c", "cherries")];
    let first = build(dir.path(), &corpus, Some(&model)).unwrap();
    assert_eq!((counts(&first), first.embedded, first.generation), ([3, 0, 0, 0], 3, 1));
    let again = build(dir.path(), &corpus, Some(&model)).unwrap();
    assert_eq!((counts(&again), again.embedded, again.generation), ([0, 0, 0, 3], 0, 1));

    corpus[0].body = "apricots".into();
    corpus.remove(1);
    corpus.push(document("d", "dates"));
    corpus[1].lang = Some("en".into());
    let third = build(dir.path(), &corpus, Some(&model)).unwrap();
    assert_eq!((counts(&third), third.generation), ([1, 2, 1, 0], 2));

    let index = IndexReader::open(dir.path()).unwrap();
    assert_eq!(index.docids().unwrap(), ["a", "c", "d"]);
    assert_eq!(words(&index, "apples"), [""; 0]);
    assert_eq!(words(&index, "bears"), [""; 0]);
    assert_eq!(words(&index, "apricots"), ["a"]);
    assert_eq!(meaning(&index, "dates", &model), "d");
    assert_eq!(index.vectors(&model).unwrap().len(), 3);
    assert!(!dir.path().join("parked.db").exists());
}

#[test]
fn collections_are_kept_apart() {
    let dir = tempfile::tempdir().unwrap();
    build_collection(dir.path(), "x", &[document("a", "one"), document("b", "two")], None).unwrap();
    build_collection(dir.path(), "y", &[document("a", "three")], None).unwrap();
    build_collection(dir.path(), "x", &[document("b", "two")], None).unwrap();
    let index = IndexReader::open(dir.path()).unwrap();
    assert_eq!(index.collections().unwrap(), [("x".to_string(), 1), ("y".to_string(), 1)]);
    assert_eq!(index.find("a", None).unwrap().unwrap().collection, "y");
}

#[test]
fn a_document_is_found_by_id_and_by_hash() {
    let dir = tempfile::tempdir().unwrap();
    let twin = Document { id: "twin".into(), ..document("a", "one") };
    build_collection(dir.path(), "x", &[document("a", "one"), twin, document("b", "two")], None).unwrap();
    build_collection(dir.path(), "y", &[document("b", "other")], None).unwrap();
    let index = IndexReader::open(dir.path()).unwrap();
    let b = index.find("b", Some("x")).unwrap().unwrap();
    assert_eq!(b.hash, document("b", "two").content_hash());
    let found = index.find(&b.short_hash().to_uppercase(), None).unwrap().unwrap();
    assert_eq!((found.document.id.as_str(), found.collection.as_str()), ("b", "x"));
    let error = index.find("b", None).unwrap_err().report();
    assert!(error.contains("collection `x`") && error.contains("name the collection"), "{error}");
    let hash = index.find("a", None).unwrap().unwrap().short_hash();
    let error = index.find(&hash, None).unwrap_err().report();
    assert!(
        error.contains("`a` of") && error.contains("`twin` of") && error.contains("use the id"),
        "{error}"
    );
    for absent in ["zzz", "#000000", "#12", "#nothex", ""] {
        assert_eq!(index.find(absent, None).unwrap(), None, "{absent}");
    }
}

#[test]
fn passages_are_the_bytes_of_their_document() {
    let dir = tempfile::tempdir().unwrap();
    let body = "Grüße aus dem Süden. 漢字もある。\n\n".repeat(300);
    build(dir.path(), &[document("a", &body), document("empty", "")], Some(&HashEmbedder::new(32))).unwrap();
    let index = IndexReader::open(dir.path()).unwrap();
    let a = index.find("a", None).unwrap().unwrap();
    assert_eq!(a.document.body, body);
    let mut reached = 0;
    for chunk in 0.. {
        let Some((range, text)) = index.passage(a.key, chunk).unwrap() else { break };
        assert_eq!(text, body[range.clone()]);
        assert!(range.start <= reached);
        reached = range.end;
    }
    assert_eq!(reached, body.len());
}

#[test]
fn bad_input_is_refused_and_the_index_stays() {
    let dir = tempfile::tempdir().unwrap();
    build(dir.path(), &[document("a", "apples")], None).unwrap();
    let refused = |documents: Vec<Result<Document>>, words: &str| {
        let error = indexer::build(dir.path(), "notes", documents, None, &mut |_| {}).unwrap_err().report();
        assert!(error.contains(words), "{error}");
        let index = IndexReader::open(dir.path()).unwrap();
        assert_eq!((index.generation(), words_of(&index)), (1, vec!["a".to_string()]));
    };
    fn words_of(index: &IndexReader) -> Vec<String> {
        words(index, "apples")
    }
    refused(vec![], "the corpus has no documents");
    refused(vec![Ok(document("b", "x")), Ok(document("b", "y"))], "`b` occurs twice");
    refused(vec![Ok(document("b", "x")), Err(rankgate::Error::input("c.md: not UTF-8"))], "c.md: not UTF-8");
    assert!(build_collection(dir.path(), " ", &[document("a", "x")], None).is_err());
}

#[test]
fn a_folder_that_holds_something_else_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("lexical")).unwrap();
    fs::write(dir.path().join("lexical/mine.txt"), "mine").unwrap();
    let error = build(dir.path(), &[document("a", "x")], None).unwrap_err();
    assert!(error.report().contains("holds something that is no index"), "{}", error.report());
    assert!(dir.path().join("lexical/mine.txt").exists());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    let error = IndexReader::open(dir.path()).map(|_| ()).unwrap_err();
    assert!(
        error.kind() == ErrorKind::NotFound && error.report().contains("rankgate index"),
        "{}",
        error.report()
    );
}

#[test]
fn vectors_of_two_models_never_meet() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = (HashEmbedder::new(32), HashEmbedder::new(64));
    let corpus = [document("a", "apples"), document("b", "bears")];
    build_collection(dir.path(), "x", &corpus, Some(&old)).unwrap();
    build_collection(dir.path(), "y", &corpus[..1], Some(&old)).unwrap();
    let index = IndexReader::open(dir.path()).unwrap();
    let error = index.vectors(&new).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Version);
    for words in [old.fingerprint(), new.fingerprint(), "run `rankgate index` again"] {
        assert!(error.report().contains(words), "{}", error.report());
    }
    let error = build_collection(dir.path(), "x", &corpus, None).unwrap_err();
    assert!(error.report().contains("leave out --no-vectors"), "{}", error.report());

    // Indexing one collection with the new model makes the vectors of all anew.
    let report = build_collection(dir.path(), "x", &corpus, Some(&new)).unwrap();
    assert_eq!((counts(&report), report.rebuilt, report.embedded), ([0, 0, 0, 2], true, 3));
    let index = IndexReader::open(dir.path()).unwrap();
    assert_eq!((index.vectors(&new).unwrap().len(), index.vectors(&new).unwrap().dims()), (3, 64));
    assert!(index.vectors(&old).is_err());
}

#[test]
fn an_index_without_vectors_gets_them_later() {
    let dir = tempfile::tempdir().unwrap();
    let model = HashEmbedder::new(32);
    let corpus = [document("a", "apples"), document("b", "bears")];
    build(dir.path(), &corpus, None).unwrap();
    let index = IndexReader::open(dir.path()).unwrap();
    assert_eq!(words(&index, "bears"), ["b"]);
    let error = index.vectors(&model).map(|_| ()).unwrap_err();
    assert!(error.report().contains("has no vectors"), "{}", error.report());
    let report = build(dir.path(), &corpus, Some(&model)).unwrap();
    assert_eq!((report.rebuilt, report.embedded), (true, 2));
    assert_eq!(meaning(&IndexReader::open(dir.path()).unwrap(), "bears", &model), "b");
}

/// Runs a statement on the database of an index, as an older program or an accident would.
fn sql(dir: &Path, statement: &str) {
    rusqlite::Connection::open(dir.join("index.db")).unwrap().execute_batch(statement).unwrap();
}

#[test]
fn passages_of_another_version_are_refused_and_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    build(dir.path(), &[document("a", "apples")], None).unwrap();
    sql(dir.path(), "update meta set chunks = 'older'");
    let error = IndexReader::open(dir.path()).map(|_| ()).unwrap_err();
    assert!(error.kind() == ErrorKind::Version && error.report().contains("older"), "{}", error.report());
    assert!(build(dir.path(), &[document("a", "apples")], None).unwrap().rebuilt);
    IndexReader::open(dir.path()).unwrap();
}

#[test]
fn the_lexical_side_is_repaired_whatever_happened_to_it() {
    let dir = tempfile::tempdir().unwrap();
    let corpus = [document("a", "apples"), document("b", "bears")];
    build(dir.path(), &corpus, None).unwrap();
    let accidents: [&dyn Fn(); 5] = [
        // Stopped between the two commits.
        &|| sql(dir.path(), "update meta set generation = generation + 1"),
        &|| sql(dir.path(), "update meta set lexical = 'older'"),
        &|| fs::remove_dir_all(dir.path().join("lexical")).unwrap(),
        &|| fs::write(dir.path().join("lexical/meta.json"), "{ cut off").unwrap(),
        // Stopped in the middle of a repair.
        &|| {
            fs::rename(dir.path().join("lexical"), dir.path().join("lexical.new")).unwrap();
        },
    ];
    for (number, accident) in accidents.iter().enumerate() {
        accident();
        let index = IndexReader::open(dir.path()).unwrap();
        assert_eq!(
            (words(&index, "apples"), words(&index, "bears")),
            (vec!["a".into()], vec!["b".into()]),
            "{number}"
        );
        accident();
        let report = build(dir.path(), &corpus, None).unwrap();
        assert_eq!(counts(&report), [0, 0, 0, 2], "{number}");
        let index = IndexReader::open(dir.path()).unwrap();
        assert_eq!(words(&index, "bears"), ["b"], "{number}");
        assert_eq!(index.lexical().generation(), index.generation(), "{number}");
    }
}

/// Fails in the batch that has the text `poison`.
struct Poisoned(HashEmbedder);

impl Embedder for Poisoned {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn fingerprint(&self) -> &str {
        self.0.fingerprint()
    }
    fn dims(&self) -> usize {
        self.0.dims()
    }
    fn embed(&self, texts: &[&str], role: TextRole) -> Result<Embeddings> {
        if texts.iter().any(|text| text.contains("poison")) {
            return Err(rankgate::Error::new(ErrorKind::Model, "stopped"));
        }
        self.0.embed(texts, role)
    }
    fn embed_tokens(&self, texts: &[&str], role: TextRole) -> Result<Vec<TokenVectors>> {
        self.0.embed_tokens(texts, role)
    }
}

#[test]
fn a_stopped_run_does_not_compute_its_vectors_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut corpus: Vec<Document> =
        (0..600).map(|n| document(&format!("d{n:03}"), &format!("text number {n}"))).collect();
    corpus[590].body = "poison".into();
    let error = build(dir.path(), &corpus, Some(&Poisoned(HashEmbedder::new(32)))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Model);
    assert_eq!(IndexReader::open(dir.path()).map(|_| ()).unwrap_err().kind(), ErrorKind::NotFound);
    let report = build(dir.path(), &corpus, Some(&HashEmbedder::new(32))).unwrap();
    assert_eq!((report.embedded, report.resumed), (600 - 512, 512));
    let index = IndexReader::open(dir.path()).unwrap();
    assert_eq!(meaning(&index, "D123 text number 123", &HashEmbedder::new(32)), "d123");
}

#[test]
fn a_reader_keeps_its_meaning_while_the_index_changes() {
    let dir = tempfile::tempdir().unwrap();
    build(dir.path(), &[document("a", "apples"), document("b", "bears")], None).unwrap();
    let before = IndexReader::open(dir.path()).unwrap();
    let key = before.find("a", None).unwrap().unwrap().key;
    build(dir.path(), &[document("a", "apricots"), document("b", "bears")], None).unwrap();
    // The key meant the old text: it is gone, and never means another.
    assert_eq!(before.document(key).unwrap(), None);
    assert_eq!(before.passage(key, 0).unwrap(), None);
    assert_eq!(words(&before, "bears"), ["b"]);
}

#[test]
fn links_lead_to_neighbours_and_every_reason_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let corpus = [
        document("en/a.md", "see [b](b.md), [[Shared]] and [c](/c.md)"),
        document("en/b.md", "back to [a](a.md)"),
        document("c.md", "nothing"),
        document("x/shared.md", "one"),
        document("y/Shared.md", "two"),
        document("lonely.md", "alone"),
        document("back.md", "[[lonely]]"),
    ];
    build(dir.path(), &corpus, None).unwrap();
    let index = IndexReader::open(dir.path()).unwrap();
    let key = |id: &str| index.find(id, None).unwrap().unwrap().key;
    let id = |key: u64| index.document(key).unwrap().unwrap().document.id;
    let expand = |seeds: &[u64], on| {
        let (result, trace) =
            rankgate::trace::capture(|| graph::expand(&index, seeds, on, Bounds::default()));
        let stage = trace.stage("graph").unwrap().clone();
        (result.unwrap(), stage)
    };
    let (found, stage) = expand(&[key("en/a.md")], true);
    let found: Vec<_> = found.unwrap().into_iter().map(|(key, score)| (id(key), score)).collect();
    let expected = [("en/b.md", 2.0), ("c.md", 1.0), ("x/shared.md", 0.35), ("y/Shared.md", 0.35)];
    assert_eq!(found, expected.map(|(id, score)| (id.to_string(), score)));
    assert!(stage.ran());
    assert_eq!((&stage.fields["seeds"], &stage.fields["candidates"]), (&1.into(), &4.into()));
    // A link is followed against its direction too.
    assert_eq!(expand(&[key("lonely.md")], true).0.unwrap()[0].0, key("back.md"));

    for (seeds, on, reason) in [
        (vec![key("c.md")], false, Fallback::Disabled),
        (vec![], true, Fallback::NoSeedCandidates),
        (vec![999], true, Fallback::SeedLookupEmpty),
        (vec![key("lonely.md"), key("back.md")], true, Fallback::NoNewCandidates),
    ] {
        let (found, stage) = expand(&seeds, on);
        assert_eq!(found, Err(reason));
        assert_eq!(stage.fields["skipped"], reason.as_str());
        assert!(!stage.ran());
    }
    build_collection(dir.path(), "other", &[document("island.md", "no links")], None).unwrap();
    let island = IndexReader::open(dir.path()).unwrap().find("island.md", None).unwrap().unwrap().key;
    assert_eq!(expand(&[island], true).0, Err(Fallback::Empty));

    let plain = tempfile::tempdir().unwrap();
    build(plain.path(), &[document("a", "no links")], None).unwrap();
    let index = IndexReader::open(plain.path()).unwrap();
    assert_eq!(graph::expand(&index, &[1], true, Bounds::default()).unwrap(), Err(Fallback::Unavailable));
}

// What follows runs the program itself.
