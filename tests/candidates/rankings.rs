//! Rankings of two files, whatever kind they are of.

use std::path::Path;

use rankgate::benchmarks::candidates::{Artefact, Kind, Models, Rerank, Spec, measure, own};
use rankgate::benchmarks::rankings::{Rankings, compare};
use rankgate::models::HashEmbedder;
use rankgate::record::diff::Lost;
use rankgate::record::{Captured, Tool};
use rankgate::settings::Fusion;

use super::{job, spec, with};

/// An artefact of two candidates as a file.
fn artefact(dir: &Path) -> (Artefact, String) {
    let mut words = job(dir, vec![Spec::default()]);
    let mut found = measure(&words, &|| Ok(Models::default()), &mut || ());
    words.specs = vec![spec(Fusion::Rrf, Rerank::None)];
    words.index = dir.join("vectors");
    found.extend(measure(&words, &|| with(HashEmbedder::default()), &mut || ()));
    let (facts, sets) = own(&words.corpus, &dir.join("queries.json")).unwrap();
    let artefact = Artefact::new(Kind::Candidates, facts, &sets, found);
    (artefact.clone(), file(dir, "kept.json", &format!("{:#}\n", artefact.value())))
}

fn file(dir: &Path, name: &str, text: &str) -> String {
    std::fs::write(dir.join(name), text).unwrap();
    dir.join(name).display().to_string()
}

#[test]
fn candidates_runs_and_captured_searches_compare_with_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let (artefact, kept) = artefact(dir.path());
    let [bm25, hybrid] = [0, 1].map(|at| format!("{kept}#{}", artefact.candidates[at].id));
    let changes = compare(&Rankings::read(&bm25).unwrap(), &Rankings::read(&hybrid).unwrap(), &[]).unwrap();
    assert_eq!((changes.compared, changes.knows_stages), (3, true));
    assert!(
        changes.changed.iter().all(|changed| !changed.diff.entered.is_empty()),
        "vectors find all documents"
    );
    let same = compare(&Rankings::read(&bm25).unwrap(), &Rankings::read(&bm25).unwrap(), &[]).unwrap();
    assert_eq!((same.unchanged, same.mean_jaccard, same.mean_rank_biased_overlap), (3, 1.0, 1.0));

    let run: String = artefact.candidates[0].cases[0]
        .ranking
        .iter()
        .zip(0..)
        .map(|(docid, at)| format!("q1 Q0 {docid} 1 {} words\n", 100 - at))
        .collect();
    let run = file(dir.path(), "words.run", &(run + "q9 Q0 fig.md 1 1 words\n"));
    let changes = compare(&Rankings::read(&bm25).unwrap(), &Rankings::read(&run).unwrap(), &[]).unwrap();
    assert_eq!((changes.compared, changes.unchanged, changes.knows_stages), (1, 1, false));
    assert_eq!((changes.only_a.len(), changes.only_b), (2, vec!["q9".to_string()]));

    let mut rows = Vec::new();
    Captured::new(Tool::Query, "apple pie butter", vec!["fig.md".into()]).write(&mut rows).unwrap();
    Captured::new(Tool::Query, "apple pie butter", vec!["egg.md".into()]).write(&mut rows).unwrap();
    let rows = Rankings::read(&file(dir.path(), "rows.ndjson", &String::from_utf8(rows).unwrap())).unwrap();
    let changes = compare(&rows, &Rankings::read(&bm25).unwrap(), &[]).unwrap();
    assert_eq!((changes.compared, changes.changed[0].query.as_str()), (1, "apple pie butter"));
    assert_eq!(changes.changed[0].diff.left[0].docid, "fig.md", "the first of equal searches counts");
    // Searches of one text by another command are other searches.
    let mut both = Vec::new();
    Captured::new(Tool::Search, "apple pie butter", vec!["egg.md".into()]).write(&mut both).unwrap();
    Captured::new(Tool::Query, "apple pie butter", vec!["fig.md".into()]).write(&mut both).unwrap();
    let both = Rankings::read(&file(dir.path(), "both.ndjson", &String::from_utf8(both).unwrap())).unwrap();
    let changes = compare(&rows, &both, &[]).unwrap();
    assert_eq!((changes.compared, changes.unchanged), (1, 1));
    assert_eq!(changes.only_b, ["search: apple pie butter"]);
    let nothing = compare(&rows, &Rankings::read(&run).unwrap(), &[]).unwrap_err().report();
    assert!(nothing.contains("no query in common"), "{nothing}");
}

#[test]
fn the_stage_that_lost_a_document_is_said_where_its_places_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (mut artefact, _) = artefact(dir.path());
    let case = &mut artefact.candidates[1].cases[0];
    let (ranking, further) = (vec!["a".to_string()], ["b", "c", "d"].map(String::from).to_vec());
    (case.ranking, case.below) = (ranking, further);
    let places = |ranks: [Option<usize>; 4]| ranks.to_vec();
    case.places = [
        ("ranked".into(), places([Some(1), Some(12), Some(14), None])),
        ("fused".into(), places([Some(1), Some(3), Some(13), None])),
        ("bm25".into(), places([Some(1), None, Some(40), None])),
        ("vector".into(), places([Some(2), Some(2), Some(9), None])),
    ]
    .into();
    let after = Rankings::of("now", &artefact, &artefact.candidates[1]).unwrap();
    let before = "q1 Q0 b 1 4 t\nq1 Q0 c 2 3 t\nq1 Q0 d 3 2 t\nq1 Q0 e 4 1 t\n";
    let before = Rankings::read(&file(dir.path(), "before.run", before)).unwrap();
    let changes = compare(&before, &after, &["q1".to_string()]).unwrap();
    let lost: Vec<Option<Lost>> = changes.changed[0].diff.left.iter().map(|left| left.lost.clone()).collect();
    assert_eq!(lost[0], Some(Lost::Rerank { before: 3, after: 12 }));
    assert!(matches!(&lost[1], Some(Lost::Fusion { rank: 13, lanes }) if lanes.len() == 2), "{lost:?}");
    assert_eq!(&lost[2..], [None, None], "their places are not known");
    let absent = compare(&before, &after, &["q7".to_string()]).unwrap_err().report();
    assert!(absent.contains("query `q7`"), "{absent}");
}

#[test]
fn what_is_no_ranking_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let (artefact, kept) = artefact(dir.path());
    let text = std::fs::read_to_string(&kept).unwrap();
    let write = |text: &str| file(dir.path(), "x.json", text);
    let two = text.replacen("\"version\": 1", "\"version\": 2", 1);
    let changed = text.replacen("\"documents\": 8", "\"documents\": 9", 1);
    for (named, words) in [
        (kept.clone(), "name one as FILE#ID: bm25, hash/rrf/none"),
        (format!("{kept}#nobody"), "there is no candidate `nobody`"),
        (write(&text[..text.len() / 2]), "the file is cut"),
        (file(dir.path(), "two.json", &two), "version 2, this program reads 1"),
        (file(dir.path(), "changed.json", &changed), "it was changed"),
        (file(dir.path(), "other.json", "{\"a\": 1}"), "no artefact of"),
        (file(dir.path(), "text.md", "# Some text\n"), "no artefact and no captured searches"),
        (file(dir.path(), "nothing", ""), "nothing: holds no ranking"),
        (format!("{}#bm25", file(dir.path(), "a.run", "q1 Q0 b 1 4 t\n")), "leave out what follows"),
        (dir.path().join("absent.run").display().to_string(), "cannot read the rankings"),
    ] {
        let said = Rankings::read(&named).unwrap_err().report();
        assert!(said.contains(words), "{named}: {said}");
    }
    let mut failed = artefact.candidates[0].clone();
    failed.failed = Some("no model".into());
    let said = Rankings::of("x", &artefact, &failed).unwrap_err().report();
    assert!(said.contains("candidate `bm25` failed") && said.contains("no model"), "{said}");
}
