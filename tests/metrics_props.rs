//! Properties of the metrics and of the readers, over random input.

use proptest::prelude::*;
use rankgate::corpus::trec::{MAX_GRADE, Run, parse_qrels, read_run, write_run};
use rankgate::metrics::{self, Measures, Options, evaluate};
use rankgate::{Judgments, Ranking};

fn judgments() -> impl Strategy<Value = Judgments> {
    proptest::collection::btree_map("[a-h]{1,2}", -1i64..5, 1..12)
}

/// Another name, unique for each docid and in another order among them.
fn reordered(docid: &str) -> String {
    docid.bytes().map(|byte| char::from(b'z' - byte % 16)).chain(['!']).chain(docid.chars()).collect()
}

proptest! {
    // The number of cases is part of the promise, whatever PROPTEST_CASES says.
    #![proptest_config(ProptestConfig { cases: 100_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_the_readers_panic(bytes in prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..60),
        "(q1|d1|query-id\tcorpus-id\tscore|Q0|0|-1|3|1e9|99999999999999999999|\t| |\n|\r\n|\u{feff}|\u{0}|é){0,16}"
            .prop_map(String::into_bytes),
    ]) {
        let _ = Run::parse("r", bytes.clone());
        let _ = parse_qrels("q", bytes);
    }
}

proptest! {
    #[test]
    fn no_words_make_the_readers_or_the_measures_panic(
        qrels in "([12#] 0 [a-c] (-?[0-9]{1,4}|x)[ \t\r]?\n){0,6}",
        run in "([12#] Q0 [a-c] 1 (-?[0-9]{1,2}(\\.[0-9])?|inf|1e999|-0) t\n){0,8}",
        level in 0i64..3, depth in 1usize..4, complete: bool,
    ) {
        let (Ok(run), Ok(qrels)) = (Run::parse("r", run.into()), parse_qrels("q", qrels.into())) else {
            return Ok(());
        };
        prop_assert!(qrels.values().flatten().all(|(_, grade)| grade.abs() <= MAX_GRADE));
        let all = Measures::parse(&["all_trec", "dcg", "ideal_dcg"]).unwrap();
        if let Ok(evaluation) = evaluate(&run, &qrels, &all, Options { level, depth, complete }) {
            let text = evaluation.text(true);
            prop_assert!(!text.contains("NaN") && !text.contains("inf\n") && !text.contains("-0.0000"), "{}", text);
        }
    }

    #[test]
    fn metrics_are_between_zero_and_one(
        judgments in judgments(),
        ranking in proptest::collection::vec("[a-h]{1,2}", 0..20),
        k in 0usize..25,
    ) {
        let docids = || ranking.iter().map(String::as_str);
        let found = [
            metrics::recall_at(k, docids(), &judgments), metrics::precision_at(k, docids(), &judgments),
            metrics::f1_at(k, docids(), &judgments), metrics::success_at(k, docids(), &judgments),
            metrics::reciprocal_rank(docids(), &judgments), metrics::average_precision(docids(), &judgments),
            metrics::ndcg_at(k, docids(), &judgments), metrics::ndcg_exp_at(k, docids(), &judgments),
            metrics::judged_at(k, docids(), &judgments),
        ];
        let relevant = judgments.values().any(|grade| *grade > 0);
        for value in found {
            prop_assert_eq!(value.is_some(), relevant);
            prop_assert!(value.is_none_or(|value| (0.0..=1.0 + 1e-12).contains(&value)), "{:?}", value);
        }
    }

    #[test]
    fn names_of_documents_not_retrieved_do_not_matter(
        judgments in judgments(), ranking in proptest::collection::vec("[a-d]", 0..6),
    ) {
        // Every judged document that was not retrieved swaps its name for another; order among them changes.
        let renamed: Judgments = judgments
            .iter()
            .map(|(docid, grade)| match ranking.contains(docid) {
                true => (docid.clone(), *grade),
                false => (reordered(docid), *grade),
            })
            .collect();
        let docids = || ranking.iter().map(String::as_str);
        let all = |judgments: &Judgments| {
            [
                metrics::ndcg_at(4, docids(), judgments),
                metrics::average_precision(docids(), judgments),
                metrics::recall_at(4, docids(), judgments),
            ]
        };
        prop_assert_eq!(all(&judgments), all(&renamed));
    }

    #[test]
    fn what_is_written_is_read_back(
        scored in proptest::collection::btree_map(
            "[a-z]{1,3}",
            proptest::collection::vec(("[a-z]{1,3}", -5i32..5), 1..8),
            1..4,
        ),
    ) {
        let hit = |(docid, score): (String, i32)| rankgate::Hit::new(docid, f64::from(score));
        let rankings: Vec<(String, Ranking)> =
            scored.into_iter().map(|(query, hits)| (query, hits.into_iter().map(hit).collect())).collect();
        let pairs = rankings.iter().map(|(query, ranking)| (query.as_str(), ranking));
        let run = Run::from_rankings("t", pairs).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.txt");
        write_run(&path, &run).unwrap();
        let back = read_run(&path).unwrap();
        for (query, ranking) in &rankings {
            let mut seen = std::collections::HashSet::new();
            let distinct: Vec<&str> = ranking.docids().filter(|docid| seen.insert(*docid)).collect();
            let read: Vec<&str> = back.ranking(query).unwrap().map(|(docid, _)| docid).collect();
            prop_assert_eq!(read, distinct);
        }
    }
}
