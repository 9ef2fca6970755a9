//! Each gate, failing alone.

use std::collections::BTreeMap;

use super::*;
use crate::benchmarks::cjk_lexical::measure::{CaseResult, Cost, Failure, Identifier, Lane, Latin};

/// Four queries of one language; `found` says which of them find their document first.
fn measured(tokenizer: Tokenizer, found: [bool; 4]) -> Measured {
    let cases: Vec<CaseResult> = (0..4).map(|n| case(n, found[n])).collect();
    let share = found.iter().filter(|found| **found).count() as f64 / 4.0;
    let figures = Figures {
        recall_5: share,
        recall_10: share,
        mrr: share,
        ndcg_10: share,
        zero_result_rate: 1.0 - share,
    };
    let identifier = |id: &str| Identifier { id: id.into(), first: true, zero_result: false };
    Measured {
        tokenizer,
        version: "lexical".into(),
        bm25: Lane { languages: BTreeMap::from([("zh".into(), figures), ("all".into(), figures)]), cases },
        latin: Some(Latin {
            queries: 9,
            recall_10: 0.7,
            ndcg_10: 0.6,
            identifiers: vec![identifier("digit-hyphen"), identifier("camel-case")],
        }),
        cost: Some(Cost {
            index_bytes: 1000,
            build_ms: Some(10.0),
            cold_ms: Some(1.0),
            warm_p50_ms: Some(0.5),
            warm_p95_ms: Some(0.9),
        }),
        switch_differences: Some(0),
    }
}

fn case(n: usize, found: bool) -> CaseResult {
    let figure = f64::from(u8::from(found));
    CaseResult {
        id: format!("zh-q00{n}"),
        language: "zh".into(),
        category: ["exact-term", "identifier", "mixed-script", "normalization"][n].into(),
        query: "问".into(),
        expected: [("zh/d001.md".into(), 3)].into(),
        found: found.then(|| "zh/d001.md".into()).into_iter().collect(),
        figures: Figures {
            recall_5: figure,
            recall_10: figure,
            mrr: figure,
            ndcg_10: figure,
            zero_result_rate: 1.0 - figure,
        },
        answered: found,
        failure: (!found).then_some(Failure::ZeroResult),
    }
}

fn bound() -> Bound {
    let fingerprints = Fingerprints {
        corpus: String::new(),
        config: String::new(),
        tokenizer: String::new(),
        result: String::new(),
    };
    Bound { artefact: "baseline/2026-01-31.json".into(), sha256: String::new(), fingerprints }
}

fn gates_of(baseline: &Measured) -> Result<PromotionGates> {
    let files = ComparisonFiles { corpus: "c".into(), queries: "q".into(), identifiers: "i".into() };
    PromotionGates::derive(bound(), files, baseline)
}

/// The candidate after `change`, and which gates fail then.
fn failing(change: impl FnOnce(&mut Measured)) -> Vec<String> {
    failing_beside(|_, candidate| change(candidate))
}

fn failing_beside(change: impl FnOnce(&mut Measured, &mut Measured)) -> Vec<String> {
    let mut baseline = measured(Tokenizer::Words, [false, true, false, false]);
    let mut candidate = measured(Tokenizer::Pairs, [true; 4]);
    change(&mut baseline, &mut candidate);
    let decision = promotion(&gates_of(&baseline).expect("leaves room"), &baseline, &candidate);
    let failed: Vec<_> =
        decision.gates.iter().filter(|gate| !gate.passed).map(|gate| gate.gate.clone()).collect();
    assert_eq!(decision.outcome == Outcome::Promoted, failed.is_empty());
    failed
}

fn zh(candidate: &mut Measured) -> &mut Figures {
    candidate.bm25.languages.get_mut("zh").expect("is there")
}

fn cost_of(candidate: &mut Measured) -> &mut Cost {
    candidate.cost.as_mut().expect("is there")
}

fn latin_of(candidate: &mut Measured) -> &mut Latin {
    candidate.latin.as_mut().expect("is there")
}

#[test]
fn a_candidate_that_passes_everything_is_promoted() {
    assert_eq!(failing(|_| {}), [""; 0]);
}

#[test]
fn floors_follow_the_rule() {
    let baseline = measured(Tokenizer::Words, [false, true, false, false]);
    let gates = gates_of(&baseline).expect("leaves room");
    let floors = &gates.quality["zh"];
    let Figures { recall_5, recall_10, mrr, ndcg_10, zero_result_rate } = floors.required;
    assert_eq!([recall_5, recall_10, mrr, ndcg_10, zero_result_rate], [0.5; 5]);
    assert_eq!((floors.queries, floors.additional_hits), (4, 1));
    let named: Vec<_> = gates.failure_coverage.keys().map(String::as_str).collect();
    assert_eq!(named, ["exact-term", "mixed-script", "normalization"]);
    let error = gates_of(&measured(Tokenizer::Words, [true; 4])).expect_err("no room");
    assert!(error.to_string().contains("`zh`: the baseline leaves no room"), "{error}");
}

#[test]
fn each_gate_fails_alone() {
    type Change = fn(&mut Measured);
    let changes: [(&str, Change); 15] = [
        ("quality.recall@5", |c| zh(c).recall_5 = 0.49),
        ("quality.recall@10", |c| zh(c).recall_10 = 0.49),
        ("quality.mrr", |c| zh(c).mrr = 0.49),
        ("quality.ndcg@10", |c| zh(c).ndcg_10 = 0.49),
        ("quality.zero-result-rate", |c| zh(c).zero_result_rate = 0.51),
        ("quality.additional-hits", |c| {
            // Identifiers apart: a lost one is another gate.
            [0, 2, 3].into_iter().for_each(|n| c.bm25.cases[n].answered = false);
        }),
        ("failure-coverage", |c| c.bm25.cases[2].figures.recall_10 = 0.5),
        ("latin.recall@10", |c| latin_of(c).recall_10 = 0.679),
        ("latin.ndcg@10", |c| latin_of(c).ndcg_10 = 0.579),
        ("identifiers.lost", |c| latin_of(c).identifiers[0].first = false),
        ("identifiers.new-zero-results", |c| latin_of(c).identifiers[1].zero_result = true),
        ("cost.index-bytes", |c| cost_of(c).index_bytes = 1751),
        ("cost.build", |c| cost_of(c).build_ms = Some(20.1)),
        ("cost.warm-p95", |c| cost_of(c).warm_p95_ms = Some(2.8)),
        ("rollback.differences", |c| c.switch_differences = Some(1)),
    ];
    for (gate, change) in changes {
        assert_eq!(failing(change), [gate]);
    }
    let slower = failing_beside(|baseline, candidate| {
        cost_of(baseline).warm_p95_ms = Some(2.0);
        cost_of(candidate).warm_p95_ms = Some(4.1);
    });
    assert_eq!(slower, ["cost.warm-p95-more-ms"]);
}

#[test]
fn a_limit_that_is_just_reached_is_kept() {
    let just = |c: &mut Measured| {
        *zh(c) = Figures { recall_5: 0.5, recall_10: 0.5, mrr: 0.5, ndcg_10: 0.5, zero_result_rate: 0.5 };
        let latin = latin_of(c);
        (latin.recall_10, latin.ndcg_10) = (0.7 - 0.02, 0.6 - 0.02);
        let cost = cost_of(c);
        (cost.index_bytes, cost.build_ms, cost.warm_p95_ms) = (1750, Some(20.0), Some(2.7));
    };
    assert_eq!(failing(just), [""; 0]);
}

#[test]
fn what_was_not_measured_has_not_passed() {
    let latin = ["latin.recall@10", "latin.ndcg@10", "identifiers.lost", "identifiers.new-zero-results"];
    assert_eq!(failing(|c| c.latin = None), latin);
    let cost = ["cost.index-bytes", "cost.build", "cost.warm-p95", "cost.warm-p95-more-ms"];
    assert_eq!(failing(|c| c.cost = None), cost);
    let timed = failing(|c| (cost_of(c).build_ms, cost_of(c).warm_p95_ms) = (None, None));
    assert_eq!(timed, cost[1..]);
    assert_eq!(failing(|c| zh(c).mrr = f64::NAN), ["quality.mrr"]);
    assert_eq!(failing(|c| c.switch_differences = None), ["rollback.differences"]);
    let quality = failing(|c| c.bm25.cases[0].id = "zh-q777".into());
    assert_eq!(quality.iter().filter(|gate| gate.starts_with("quality.")).count(), 6, "{quality:?}");
}
