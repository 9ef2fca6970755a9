//! `rankgate bench candidates`, `hybrid-baseline` and `diff` as programs.

use std::fs;

use serde_json::Value;

use super::{valid, write_corpus};
use crate::models::{Sandbox, expect};

/// A sandbox with documents and judged queries in its project, and nothing on the network.
struct Project(Sandbox);

impl Project {
    fn new(embedder: &str) -> Self {
        let sandbox = Sandbox::new();
        sandbox.settings(&format!("[models]\nembedder = \"{embedder}\"\noffline = true\n"));
        write_corpus(&sandbox.path("project"));
        Self(sandbox)
    }

    /// With the same as fixtures.
    fn with_fixtures(embedder: &str) -> Self {
        let project = Self::new(embedder);
        let path = |name: &str| project.0.path(&format!("project/{name}"));
        fs::create_dir(path("fixtures")).unwrap();
        fs::rename(path("docs"), path("fixtures/corpus")).unwrap();
        fs::rename(path("queries.json"), path("fixtures/queries.json")).unwrap();
        let asked = r#"[{"id": "ask1", "question": "what does bread need?", "docids": ["bread.md"]},
            {"id": "none1", "question": "who won?"}]"#;
        fs::write(path("fixtures/ask.json"), asked).unwrap();
        project
    }

    fn run(&self, args: &[&str], code: i32) -> (String, String) {
        expect(self.0.rankgate(&["bench"]).args(args), code)
    }

    fn kept(&self, folder: &str) -> Vec<String> {
        let folder = self.0.path(&format!("project/{folder}"));
        let files = fs::read_dir(folder).map(|dir| dir.map(|entry| entry.unwrap().path()).collect());
        let mut files: Vec<_> = files.unwrap_or_else(|_| Vec::new());
        files.retain(|path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "json"));
        files.sort();
        files.iter().map(|path| path.display().to_string()).collect()
    }
}

const OWN: [&str; 5] = ["candidates", "--corpus", "docs", "--queries", "queries.json"];

#[test]
fn own_documents_are_compared_and_a_model_that_cannot_be_had_stays_in_the_result() {
    let project = Project::new("hash");
    let args = [&OWN[..], &["--embedder", "all-minilm-l6-v2", "--json", "--write", "--to", "kept"]].concat();
    let (out, err) = project.run(&args, 0);
    let json: Value = serde_json::from_str(&out).unwrap();
    valid("bench-candidates", &json);
    let candidates = json["candidates"].as_array().unwrap();
    assert_eq!(candidates.len(), 9, "two embedders, two rules, with and without reranking; the control");
    assert_eq!(
        (&json["default"], &candidates[8]["id"]),
        (&"hash/adaptive/late-interaction".into(), &"bm25".into())
    );
    let failed: Vec<&str> = candidates
        .iter()
        .filter(|c| c["failed"].is_string())
        .map(|c| c["embedder"].as_str().unwrap())
        .collect();
    assert_eq!(failed, ["all-minilm-l6-v2"; 4]);
    assert!(json["recommendation"]["why"].as_str().unwrap().contains("stays"), "{}", json["recommendation"]);

    let kept = project.kept("kept");
    assert!(err.contains("kept as") && kept.len() == 1, "{err}");
    let page = fs::read_to_string(kept[0].replace(".json", ".md")).unwrap();
    assert!(page.contains("## Failed") && page.contains("**Recommendation:** the default"), "{page}");

    let [a, b] = ["bm25", "hash/rrf/none"].map(|id| format!("{}#{id}", kept[0]));
    let (out, _) = project.run(&["diff", &a, &b, "--limit", "1"], 0);
    assert!(out.contains("3 queries compared to depth 10") && out.contains("more queries changed"), "{out}");
    let (out, _) = project.run(&["diff", &a, &b, "--query", "q1", "--json"], 0);
    let json: Value = serde_json::from_str(&out).unwrap();
    valid("bench-diff", &json);
    assert_eq!((&json["compared"], &json["changed"][0]["query"]), (&1.into(), &"q1".into()));
    let (_, err) = project.run(&["diff", &a, "absent"], 2);
    assert!(err.contains("absent: cannot read"), "{err}");
}

#[test]
fn a_default_that_failed_is_an_error_and_is_not_kept() {
    let project = Project::new("multilingual-e5-small");
    let args = [&OWN[..], &["--embedder", "hash", "--write", "--to", "kept"]].concat();
    let (out, err) = project.run(&args, 2);
    assert!(out.contains("`hash/rrf/none`") && out.contains("## Failed"), "{out}");
    assert!(err.contains("the candidate of the settings, `multilingual-e5-small/"), "{err}");
    assert!(project.kept("kept").is_empty());
}

#[test]
fn wrong_calls_are_refused_before_anything_is_measured() {
    let project = Project::new("hash");
    for (extra, words) in [
        (&[&OWN[..], &["--write"]].concat()[..], "name a folder with --to"),
        (
            &[&OWN[..], &["--embedder", "e5"]].concat(),
            "there is no embedder `e5` to compare (known are hash, ",
        ),
        (&["candidates"], "name --corpus and --queries"),
        (&["candidates", "--corpus", "docs"], "--queries"),
        (&["hybrid-baseline", "--baseline", "x.json"], "--delta"),
        (&["hybrid-baseline", "--delta"], "there is no artefact to compare with"),
        (&["hybrid-baseline", "--delta", "--baseline", "x.json"], "x.json: cannot read the artefact"),
    ] {
        let (out, err) = project.run(extra, 2);
        assert!(out.is_empty() && err.contains(words) && !err.contains("measuring"), "{extra:?}: {err}");
    }
}

#[test]
fn a_hybrid_baseline_is_kept_beside_the_last_one_and_compared_with_it() {
    let project = Project::with_fixtures("hash");
    let (out, _) = project.run(&["hybrid-baseline", "--write"], 0);
    assert!(out.contains("# Hybrid baseline") && out.contains("1 adversarial"), "{out}");
    let corpus = project.0.path("project/fixtures/corpus");
    fs::write(corpus.join("pie.md"), "# apple pie butter\n\napple pie butter, apple pie butter\n").unwrap();
    let (out, _) = project.run(&["hybrid-baseline", "--delta", "--write"], 0);
    assert!(out.contains("note: the documents are others") && out.contains("entered  pie.md"), "{out}");
    assert_eq!(project.kept("fixtures/hybrid-baseline").len(), 2);
    let (out, _) = project.run(&["hybrid-baseline", "--delta", "--json"], 0);
    let json: Value = serde_json::from_str(&out).unwrap();
    valid("bench-delta", &json);
    assert_eq!((&json["changes"]["unchanged"], &json["points"]["all"]["ndcg@10"]), (&3.into(), &0.0.into()));
}

#[test]
fn fixtures_have_four_sets_and_a_question_without_an_answer_is_no_case() {
    let project = Project::with_fixtures("hash");
    let (out, _) = project.run(&["candidates", "--embedder", "hash", "--json"], 0);
    let json: Value = serde_json::from_str(&out).unwrap();
    let sets: Vec<(&str, usize)> = json["sets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|set| (set["name"].as_str().unwrap(), set["cases"].as_array().unwrap().len()))
        .collect();
    assert_eq!(sets, [("baseline", 1), ("adversarial", 1), ("multilingual", 1), ("ask", 1)]);
    assert_eq!(json["candidates"][0]["figures"]["all"]["cases"], 4);
}
