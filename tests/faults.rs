//! Planted faults fail the suite, and what it says leads to them: `tests/faults` run as a program.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rankgate::models::catalogue;
use rankgate::store::history::data_dir;

use crate::harness::{Ran, clean, program};
use crate::models::pinned;

/// The weights under the name by which `tests/faults/conventions.rs` has them in the settings.
const OWN: &str = "own-e5";

/// A home and a local folder with the models of this machine; `None` where they cannot be fetched.
fn models() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let put = || {
        let (e5, runtime) = (pinned("multilingual-e5-small")?, pinned(catalogue::RUNTIME)?);
        let folder = data().join("faults");
        link(&e5, &folder.join("home/models/multilingual-e5-small"));
        link(&runtime, &folder.join("home/models").join(catalogue::RUNTIME));
        link(&e5, &folder.join("local").join(OWN));
        Some(folder)
    };
    FOLDER.get_or_init(put).as_deref()
}

fn data() -> PathBuf {
    data_dir(env!("CARGO_MANIFEST_DIR").as_ref())
}

/// Puts the files of `from` into `to`, without taking space where that is possible.
fn link(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        let new = to.join(file.file_name());
        if !new.exists() && fs::hard_link(file.path(), &new).is_err() && !new.exists() {
            let part = new.with_extension(format!("part{}", std::process::id()));
            fs::copy(file.path(), &part).unwrap();
            fs::rename(part, new).unwrap();
        }
    }
}

/// Runs the trials that `filter` selects with `fault` planted, where the models can be had.
fn run(fault: &str, filter: &str) -> Option<Ran> {
    let models = models()?;
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let history = tempfile::tempdir().unwrap();
    let mut command = clean(PROGRAM.get_or_init(|| program("faults")));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).arg(filter);
    command.env("FAULT", fault).env("EVALS_DATA", data()).env("RANKGATE_DATA", history.path());
    command.env("RANKGATE_HOME", models.join("home")).env("RANKGATE_MODELS_FROM", models.join("local"));
    command.env("RANKGATE_OFFLINE", "1").env("INSTA_UPDATE", "no");
    Some(Ran::new(command.output().unwrap()))
}

/// Runs `eval` with `fault` planted: its gate fails and says all of `words`.
fn gate_says(fault: &str, eval: &str, words: &[&str]) {
    let Some(ran) = run(fault, &format!("{eval}::")) else { return };
    assert_eq!(ran.code, 101, "{fault}: {}{}", ran.stdout, ran.stderr);
    let said = ran.message(&format!("{eval}::gate"));
    eprintln!("{fault}: {said}");
    for words in words {
        assert!(said.contains(words), "{fault}: {said}");
    }
}

#[test]
fn without_a_fault_every_gate_passes() {
    let Some(ran) = run("none", "") else { return };
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    for gate in ["vsearch::gate", "multilingual::gate", "conventions::gate"] {
        assert_eq!(ran.trials().get(gate), Some(&"ok"), "{gate}: {}", ran.stdout);
    }
}

#[test]
fn a_vector_lane_that_is_off_is_a_stage_that_did_not_run() {
    for eval in ["vsearch", "multilingual"] {
        let words =
            ["cases were not measured", "stage `embed` is required and did not run", "that ran: bm25"];
        gate_says("vector lane off", eval, &words);
    }
}

#[test]
fn shuffled_docids_and_swapped_judgments_fall_below_every_threshold() {
    for fault in ["shuffled docids", "swapped judgments"] {
        let words = [
            "below threshold: recall@5 0.",
            "recall@10 0.",
            "ndcg@10 0.",
            "over 63 cases, needs 0.",
            "worst q0",
        ];
        gate_says(fault, "vsearch", &words);
    }
}

#[test]
fn a_stale_index_is_named_by_what_it_lacks() {
    let words = ["fixtures/queries.json: query `q", "is not in the corpus", "index again"];
    gate_says("stale index", "vsearch", &words);
    gate_says("stale index, unchecked", "vsearch", &["below threshold: recall@5 0.", "worst q0"]);
}

#[test]
fn an_index_of_another_model_is_refused_with_the_repair() {
    let words =
        ["vectors were made by `hash`", "not by `multilingual-e5-small`", "run `rankgate index` again"];
    gate_says("index of another model", "vsearch", &words);
}

#[test]
fn a_duplicated_hit_is_named() {
    let words = ["scorer `recall@5`: the ranking names docid `en/deploy-runbook.md` twice"];
    gate_says("duplicated hits", "vsearch", &words);
}

/// The means stay above the thresholds, so only the baselines can tell.
#[test]
fn wrong_conventions_of_the_embedder_differ_from_the_baselines() {
    for fault in ["wrong pooling", "missing prefix"] {
        let Some(ran) = run(fault, "vsearch::q") else { return };
        let trials = ran.trials();
        let differs = |name: &str| {
            let said = ran.message(name);
            said.starts_with("regressed: snapshot `vsearch__q") && said.contains("differs")
        };
        // A score below its floor and a known miss that is found are said before the baseline.
        let count = trials.iter().filter(|(name, outcome)| **outcome == "FAILED" && differs(name)).count();
        eprintln!("{fault}: {count} of {} cases differ from their baseline", trials.len());
        assert!(count > trials.len() * 9 / 10, "{fault}: {}", ran.stdout);
    }
}

/// Each fault lowers the scorers that are there for it, and the others stay as they were.
#[test]
fn faults_of_generation_fall_below_the_threshold_of_their_scorer() {
    for (fault, eval, lowered, kept) in [
        // What has nothing to do with a query is thrown out, and so is what repeats it.
        ("constant expansion", "expansion", &["has vector variants 0."][..], &["valid"][..]),
        (
            "degenerate expansion",
            "expansion",
            &["has lexical variants 0.0", "has vector variants 0.000"],
            &["valid"],
        ),
        ("echoing answer", "ask-extractive", &["topic coverage 0.", "not an echo 0.000"], &["citations"]),
        (
            "unsupported answer",
            "ask-extractive",
            &["grounded 0.", "cites the source 0."],
            &["citations", "echo"],
        ),
        (
            "dangling answer",
            "ask-extractive",
            &["citations present 0.000", "citations valid 0.000", "grounded 0.000"],
            &["topic", "echo"],
        ),
    ] {
        let Some(ran) = run(fault, &format!("{eval}::")) else { return };
        let said = ran.message(&format!("{eval}::gate"));
        eprintln!("{fault}: {said}");
        assert!(said.starts_with("below threshold: "), "{fault}: {said}");
        for words in lowered {
            assert!(said.contains(words), "{fault}: {said}");
        }
        for words in kept {
            assert!(!said.contains(words), "{fault}: {said}");
        }
        if fault == "echoing answer" {
            // A case shows what its scorers kept beside a low score.
            assert!(ran.stdout.contains("abstention: {\"answerable\":false"), "{}", ran.stdout);
        }
    }
}
