use super::qrels::{KnownQuery, SourceSlug};
use super::*;
use crate::record::baseline::Floors;
use crate::record::{Captured, ReplayTally, ReplayedRow, Tool};

mod reports;

fn slugs(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_string).collect()
}

fn captured(id: i64, answer: &str, ms: f64) -> Captured {
    Captured {
        id: Some(id),
        latency_ms: Some(ms),
        ..Captured::new(Tool::Query, format!("q{id}"), slugs(answer))
    }
}

fn ran(id: i64, before: &str, now: &str, ms: (f64, f64)) -> ReplayedRow {
    ReplayedRow::ran(&captured(id, before, ms.0), slugs(now), ms.1)
}

/// Ten rows. Jaccard: five times 1, then 1/3, 1, 3/5, 0, 1. The first document stays in 8 of them: not in the
/// swapped row 7 and the lost row 9. Latency: 100 ms each, then 150.
fn ten_rows() -> Vec<ReplayedRow> {
    let answers = [
        ("a b", "a b"),
        ("a b c", "a b c"),
        ("a", "a"),
        ("a b", "a b"),
        ("", ""),
        ("a b", "a c"),
        ("a b", "b a"),
        ("a b c d", "a b c e"),
        ("a", ""),
        ("b a", "b a"),
    ];
    (1..).zip(answers).map(|(id, (before, now))| ran(id, before, now, (100.0, 150.0))).collect()
}

fn gate(rows: &[ReplayedRow], floors: Floors) -> RegressionGate {
    regression(&rows.iter().collect::<ReplayTally>(), RegressionThresholds { floors, max_skipped: 0 }, None)
        .expect("has usable thresholds")
}

fn metrics(breaches: &[Breach]) -> Vec<&str> {
    breaches.iter().map(|breach| breach.metric.as_str()).collect()
}

#[test]
fn ten_rows_by_hand() {
    let found = gate(&ten_rows(), Floors::default());
    let summary = found.summary.as_ref().expect("ran");
    // 5 + 1/3 + 1 + 3/5 + 0 + 1 = 7.9333…
    assert!((summary.mean_jaccard.expect("ran") - 0.793_333_333_333).abs() < 1e-9, "{summary:?}");
    assert_eq!(summary.top1_stability_rate, Some(0.8));
    assert_eq!((summary.mean_latency_delta_ms, summary.latency_ratio), (Some(50.0), Some(1.5)));
    assert_eq!((summary.rows_total, summary.rows_replayed, summary.rows_over_2x_latency), (10, 10, 0));
    // Overlap: 1 in rows 1–5 and 10; 0.1 (1 + 0.9/2) + 0.81/2 = 0.55 in row 6; 0.9 in row 7;
    // 0.1 (1 + 0.9 + 0.81 + 0.729·3/4) + 0.6561·3/4 = 0.81775 in row 8 (agreement 3/4 at depth 4); 0 in row 9.
    let overlap = (6.0 + 0.55 + 0.9 + 0.817_75) / 10.0;
    assert!((summary.mean_rank_biased_overlap.expect("ran") - overlap).abs() < 1e-9, "{summary:?}");
    // 0.80 is at its floor and passes; 0.793 is below 0.85.
    assert_eq!(metrics(&found.breaches), ["mean_jaccard"]);
    assert_eq!((found.breaches[0].threshold, found.verdict()), (Some(0.85), Verdict::Fail));
    let loose = Floors { jaccard: 0.79, ..Floors::default() };
    assert_eq!(gate(&ten_rows(), loose).verdict(), Verdict::Pass);
    let strict = Floors { jaccard: 0.79, top1: 0.81, latency_multiplier: 1.49 };
    assert_eq!(metrics(&gate(&ten_rows(), strict).breaches), ["top1_stability_rate", "latency_ratio"]);
    assert_eq!(gate(&ten_rows(), Floors { latency_multiplier: 1.5, ..loose }).verdict(), Verdict::Pass);
}

#[test]
fn a_hundred_and_a_hundred_and_fifty_more_is_two_and_a_half() {
    let found = gate(&[ran(1, "a", "a", (100.0, 250.0))], Floors::default());
    assert_eq!(metrics(&found.breaches), ["latency_ratio"]);
    assert_eq!(found.breaches[0].observed, Some(2.5));
}

#[test]
fn no_captured_latency_is_said_and_not_judged() {
    let found = gate(&[ran(1, "a", "a", (0.0, 900.0))], Floors::default());
    assert!(found.latency_skipped && found.verdict() == Verdict::Pass);
    assert!(found.notes[0].contains("latency was not compared"), "{:?}", found.notes);
}

#[test]
fn what_was_not_replayed_is_a_breach() {
    let mut rows = vec![ran(1, "a", "a", (1.0, 1.0)); 99];
    rows.push(ReplayedRow::errored(&captured(7, "a", 1.0), "no index"));
    let found = gate(&rows, Floors::default());
    assert_eq!(metrics(&found.breaches), ["rows_errored"]);
    assert_eq!(found.breaches[0].error_tail.as_deref(), Some("#7 \"q7\": no index"));

    rows.pop();
    rows.push(ReplayedRow::skipped(&captured(8, "a", 1.0), "no generator"));
    let found = gate(&rows, Floors::default());
    assert_eq!(metrics(&found.breaches), ["rows_skipped"]);
    let tail = found.breaches[0].error_tail.as_deref();
    assert_eq!(tail, Some("--max-skipped 1 allows it: #8 \"q8\": no generator"));
    let allowed = RegressionThresholds { max_skipped: 1, ..RegressionThresholds::default() };
    let found = regression(&rows.iter().collect(), allowed, None).expect("has usable thresholds");
    assert!(
        found.verdict() == Verdict::Pass
            && found.notes[0].contains("1 of 100 rows were left out: #8 \"q8\": no generator")
    );

    let none = gate(&[], Floors::default());
    assert_eq!(metrics(&none.breaches), ["rows_replayed", "mean_jaccard", "top1_stability_rate"]);
}

#[test]
fn thresholds_that_are_none_are_refused() {
    for bad in [f64::NAN, -0.1, 1.1, f64::INFINITY] {
        let floors = Floors { jaccard: bad, ..Floors::default() };
        let thresholds = RegressionThresholds { floors, max_skipped: 0 };
        regression(&ReplayTally::default(), thresholds, None).expect_err("is no threshold");
        let thresholds = CorrectnessThresholds { expected_top1: bad, ..CorrectnessThresholds::default() };
        correctness(&[], 10, thresholds, None).expect_err("is no threshold");
    }
    correctness(&[], 0, CorrectnessThresholds::default(), None).expect_err("nothing would count");
    GateReport::new(None, None, None).expect_err("nothing is asked");
    let sure = Significance { alpha: 0.0, ..Significance::default() };
    GateReport::new(Some(gate(&ten_rows(), Floors::default())), None, Some(sure)).expect_err("is no level");
}

fn known(id: &str, relevant: &str, top1: Option<&str>) -> KnownQuery {
    KnownQuery {
        expected_top1: top1.map(|slug| SourceSlug::new("s", slug)),
        ..KnownQuery::new(id, id, keys(relevant).into_iter().collect())
    }
}

fn keys(text: &str) -> Vec<SourceSlug> {
    text.split_whitespace().map(|slug| SourceSlug::new("s", slug)).collect()
}

#[test]
fn known_queries_by_hand() {
    let queries = [
        known("q1", "a b", Some("a")),
        known("q2", "c d", None),
        known("q3", "e", Some("z")),
        known("q4", "f", None),
    ];
    let results = [
        // Two passages of one document: recall 1/2 within two documents, not 2/2.
        (&queries[0], Ok(keys("a a x b"))),
        (&queries[1], Ok(keys("x c d"))),
        // The right slug of another source.
        (&queries[2], Ok(vec![SourceSlug::new("t", "e")])),
        (&queries[3], Ok(Vec::new())),
    ];
    let found =
        correctness(&results, 2, CorrectnessThresholds::default(), None).expect("has usable thresholds");
    let summary = found.summary.as_ref().expect("ran");
    assert_eq!(summary.mean_recall_at_k, Some((0.5 + 0.5) / 4.0));
    assert_eq!(summary.first_relevant_hit_rate, Some(0.25));
    assert_eq!((summary.expected_top1_hit_rate, summary.expected_top1_denominator), (Some(0.5), 2));
    assert_eq!(metrics(&found.breaches), ["mean_recall_at_k", "first_relevant_hit_rate"]);

    let failing = [(&queries[0], Ok(keys("a b"))), (&queries[1], Err("no index".to_string()))];
    let found =
        correctness(&failing, 2, CorrectnessThresholds::default(), None).expect("has usable thresholds");
    assert_eq!(metrics(&found.breaches), ["queries_errored"]);
    assert_eq!(found.breaches[0].error_tail.as_deref(), Some("q2: no index"));
    let nothing = correctness(&[], 2, CorrectnessThresholds::default(), None).expect("has usable thresholds");
    assert_eq!(nothing.verdict(), Verdict::Fail);
}

#[test]
fn too_few_judged_documents_leave_it_undecided() {
    let mut query = known("q1", "a", None);
    query.judged = Some(keys("a n").into_iter().collect());
    let judge = |found: &str| {
        correctness(&[(&query, Ok(keys(found)))], 4, CorrectnessThresholds::default(), None).expect("usable")
    };
    let few = judge("x a y z");
    assert_eq!(few.summary.as_ref().expect("ran").mean_judged_at_k, Some(0.25));
    assert_eq!(metrics(&few.undecided), ["mean_judged_at_k", "first_relevant_hit_rate"]);
    assert_eq!((few.verdict(), few.breaches.len()), (Verdict::Inconclusive, 0));
    assert!(few.notes[0].contains("only 25 % of the first 4"), "{:?}", few.notes);
    assert_eq!(judge("a n").verdict(), Verdict::Pass, "a short ranking is judged as far as it goes");
    assert_eq!(judge("n a x y").verdict(), Verdict::Fail, "half is enough");
}

#[test]
fn a_miss_counts_when_its_test_confirms_it() {
    let options = Significance::default();
    let with = |rows: &[ReplayedRow], alone: bool| {
        let tally: ReplayTally = rows.iter().collect();
        let gate = regression(&tally, RegressionThresholds::default(), Some(&options)).expect("usable");
        let extra = [(&known("q", "a", None), Ok(keys("a")))].map(|result| {
            correctness(&[result], 1, CorrectnessThresholds::default(), Some(&options)).expect("usable")
        });
        GateReport::new(Some(gate), extra.into_iter().next().filter(|_| !alone), Some(options))
            .expect("is asked")
    };
    // Three lost rows of three: the rarest of eight sign patterns, p = 1/8 each. No test of three could say more.
    let few = with(&vec![ran(1, "a", "b", (100.0, 100.0)); 3], true);
    assert_eq!((few.verdict, few.regression_gate.undecided.len()), (Verdict::Fail, 0));
    assert!(few.regression_gate.notes[0].contains("no test of 3 values can confirm a miss"), "{few:?}");
    let test = &few.regression_gate.tests[0];
    assert_eq!((test.p_value, test.p_adjusted, test.n), (1.0 / 8.0, 3.0 / 8.0, 3));
    assert!(
        (test.margin + 0.85).abs() < 1e-12
            && test.minimum_detectable_effect.is_some_and(|effect| effect < 1e-9)
    );
    // Three of ten are below the floors, and may be by chance.
    let mut some = vec![ran(1, "a", "a", (100.0, 100.0)); 7];
    some.extend(vec![ran(1, "a", "b", (100.0, 100.0)); 3]);
    let some = with(&some, true);
    assert_eq!(some.verdict, Verdict::Inconclusive);
    assert_eq!(metrics(&some.regression_gate.undecided), ["mean_jaccard", "top1_stability_rate"]);
    // Twelve of twelve: p = 2^-12.
    let many = with(&vec![ran(1, "a", "b", (100.0, 100.0)); 12], true);
    assert_eq!((many.verdict, many.regression_gate.undecided.len()), (Verdict::Fail, 0));
    assert_eq!(many.regression_gate.tests[0].p_adjusted, 3.0 / 4096.0);
    // Five metrics together are corrected for five.
    let both = with(&vec![ran(1, "a", "b", (100.0, 100.0)); 12], false);
    assert_eq!(both.regression_gate.tests[0].p_adjusted, 5.0 / 4096.0);
    let alike = with(&vec![ran(1, "a", "a", (100.0, 100.0)); 12], true);
    assert_eq!(alike.verdict, Verdict::Pass);
    // A failed row needs no test.
    let broken = with(&[ReplayedRow::errored(&captured(1, "a", 1.0), "no index")], true);
    assert!(metrics(&broken.regression_gate.breaches).contains(&"rows_errored"));
}

/// Nothing is as stable as searches that never found anything.
#[test]
fn a_baseline_of_empty_answers_passes_nothing() {
    let found = gate(&vec![ran(1, "", "", (1.0, 1.0)); 4], Floors::default());
    assert_eq!(metrics(&found.breaches), ["rows_with_documents"]);
    assert_eq!(found.verdict(), Verdict::Fail);
}

#[test]
fn one_report_for_people_and_for_programs() {
    let mut regression = gate(&ten_rows(), Floors::default());
    regression.baseline_path = Some("team.baseline.ndjson".into());
    let report = GateReport::new(Some(regression), None, None).expect("is asked");
    assert_eq!(
        report.text(),
        "gate: FAIL\n\nregression: FAIL, team.baseline.ndjson\n  \
         rows                     10 of 10 replayed, 0 skipped, 0 errored\n  \
         mean_jaccard              0.793  floor 0.850\n  \
         top1_stability_rate       0.800  floor 0.800\n  \
         mean_rank_biased_overlap  0.827\n  \
         latency_ratio             1.500  ceiling 2.000\n  \
         BREACHES\n    mean_jaccard 0.793 is below its floor 0.850 (team.baseline.ndjson)\n  \
         note: 1 of 10 replayed rows found nothing then and nothing now, which counts as stable\n"
    );
    let json = serde_json::to_value(&report).expect("is JSON");
    assert_eq!(json["correctness_gate"], serde_json::json!({"ran": false}));
    assert_eq!(
        (&json["verdict"], &json["regression_gate"]["thresholds"]["top1"]),
        (&"fail".into(), &0.8.into())
    );
    assert_eq!(serde_json::from_value::<GateReport>(json).expect("is a report"), report);
}

#[test]
fn the_worse_verdict_wins() {
    use Verdict::{Fail, Inconclusive, Pass};
    for (first, second, both) in
        [(Pass, Pass, Pass), (Pass, Inconclusive, Inconclusive), (Inconclusive, Fail, Fail)]
    {
        assert_eq!((first.and(second), second.and(first)), (both, both));
    }
}

#[test]
fn the_worst_come_first_and_few() {
    let mut worst = WorstRows::new(4);
    let mut rows = ten_rows();
    rows.push(ReplayedRow::errored(&captured(11, "a", 1.0), "no index"));
    rows.push(ReplayedRow::skipped(&captured(12, "a", 1.0), "no generator"));
    for row in rows {
        worst.add(captured(row.id.expect("has one"), "", 1.0), row);
    }
    let kept: Vec<_> = worst.into_rows().iter().map(|(captured, _)| captured.id).collect();
    // Failed; nothing in common; 1/3; both documents, and another one first. Row 8 has 3/5 and the same first one.
    assert_eq!(kept, [Some(11), Some(9), Some(6), Some(7)]);
    let mut none = WorstRows::new(0);
    none.add(captured(1, "a", 1.0), ran(1, "a", "b", (1.0, 1.0)));
    assert!(none.into_rows().is_empty());

    let queries = [
        known("q1", "a b", Some("b")),
        known("q2", "a", None),
        known("q3", "a", None),
        known("q4", "a", None),
        known("q5", "a", None),
    ];
    let found = [Ok(keys("a b")), Ok(keys("a")), Ok(keys("x")), Err("no index".to_string()), Ok(keys("x a"))];
    let results: Vec<_> = queries.iter().zip(found).collect();
    let worst = worst_queries(&results, 10, 10, |key| key.name(true));
    let ids: Vec<_> = worst.iter().map(|query| (query.id.as_str(), query.recall)).collect();
    assert_eq!(ids, [("q4", None), ("q3", Some(0.0)), ("q1", Some(1.0)), ("q5", Some(1.0))]);
    assert_eq!(worst[3].lines(), ["unwanted:  s::x is first", "      1.   s::x", "      2.   s::a"]);
    assert_eq!(worst[2].lines(), ["not first: s::b", "      1.   s::a", "      2.   s::b"]);
}

#[test]
fn a_reason_tells_figure_and_threshold_apart() {
    let reason = |observed, threshold| {
        Breach { metric: "m".into(), observed, threshold: Some(threshold), error_tail: None }.reason()
    };
    assert_eq!(reason(Some(0.849_96), 0.85), "m 0.84996 is below its floor 0.85000");
    assert_eq!(reason(Some(2.5), 2.0), "m 2.500 is above its ceiling 2.000");
    assert_eq!(reason(Some(3.0), 0.0), "m 3 is above its ceiling 0");
    assert_eq!(reason(None, 0.85), "m was not measured, its floor is 0.850");
}
