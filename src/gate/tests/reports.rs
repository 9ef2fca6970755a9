//! What is shown of a gate, and what others could put into it.

use super::*;

/// What a person or a document could put into a report to break it.
const HOSTILE: &str = "a|b\n| c | `x` ``` ~~~ <img src=x onerror=1> ]]> & \"q\" 'p' [l](http://e.example) @team **b** \
                       #1 \u{1b}[31m\u{0}\u{7}\u{ffff}\u{202e}\u{200b} www.e.example";

/// A report that fails by its baseline, with `rows` worst rows that all hold [`HOSTILE`].
fn hostile(rows: usize) -> GateReport {
    let mut regression = gate(&ten_rows(), Floors::default());
    regression.baseline_path = Some(HOSTILE.into());
    regression.breaches[0].error_tail = Some(HOSTILE.into());
    regression.notes.push(HOSTILE.into());
    let row = ReplayedRow::ran(&Captured::new(Tool::Query, HOSTILE, vec![HOSTILE.into()]), Vec::new(), 1.0);
    let diff = crate::record::diff::RankedDiff::between([HOSTILE, HOSTILE], ["b"]);
    regression.worst = vec![WorstRow::new(&row, Some(diff)); rows];
    let queries = [known("q1", "a", Some("a"))];
    let found = correctness(&[(&queries[0], Ok(keys("a")))], 2, CorrectnessThresholds::default(), None);
    GateReport::new(Some(regression), found.ok(), None).expect("is asked")
}

#[test]
fn junit_is_xml_with_a_case_for_every_decision() {
    let xml = junit::junit(&hostile(2), false);
    let document = roxmltree::Document::parse(&xml).expect("is XML");
    let suite = document.root_element().first_element_child().expect("has a suite");
    let cases: Vec<_> = suite.children().filter(|node| node.has_tag_name("testcase")).collect();
    let names: Vec<_> = cases.iter().map(|case| case.attribute("name").expect("has a name")).collect();
    // The same names whatever was measured: a CI system follows a test by its name.
    assert_eq!(
        names,
        [
            "rows_errored",
            "rows_skipped",
            "rows_replayed",
            "rows_with_documents",
            "mean_jaccard",
            "top1_stability_rate",
            "latency_ratio",
            "queries_errored",
            "queries_run",
            "mean_recall_at_k",
            "first_relevant_hit_rate",
            "expected_top1_hit_rate"
        ]
    );
    let failed = |name: usize| cases[name].children().find(|node| node.has_tag_name("failure"));
    let failures: Vec<usize> = (0..cases.len()).filter(|case| failed(*case).is_some()).collect();
    assert_eq!(failures, [4]);
    assert_eq!((suite.attribute("tests"), suite.attribute("failures")), (Some("12"), Some("1")));
    let text = failed(4).and_then(|failure| failure.text()).expect("has a text");
    assert_eq!(text.matches("jaccard=0.00 top1=lost  query \"a|b | c |").count(), 2, "both rows: {text}");
    assert!(text.contains("left     a|b") && text.contains("entered  b  now 1"), "with their diffs: {text}");
    let failure = failed(4).expect("fails");
    assert!(failure.text().is_some_and(|text| text.contains("<img src=x onerror=1> ]]> & \"q\"")), "{xml}");
    assert!(
        failure
            .attribute("message")
            .is_some_and(|text| text.starts_with("mean_jaccard 0.793 is below its floor 0.850 (a|b"))
    );
    assert!(!xml.contains(['\0', '\u{1b}', '\u{ffff}']), "{xml}");

    let error = crate::Error::input("x <y> & \u{1}").with_hint("z");
    let xml = junit::junit_error(&error);
    let document = roxmltree::Document::parse(&xml).expect("is XML");
    let told = document.descendants().find(|node| node.has_tag_name("error")).and_then(|node| node.text());
    assert!(told.is_some_and(|text| text.starts_with("x <y> & \u{fffd}")), "{xml}");
}

#[test]
fn junit_of_what_is_undecided_and_of_what_holds() {
    let mut query = known("q1", "a", None);
    query.judged = Some(keys("a n").into_iter().collect());
    let result = [(&query, Ok(keys("x a y z")))];
    let mut few = correctness(&result, 4, CorrectnessThresholds::default(), None).expect("usable");
    assert!(few.unjudged());
    few.worst = worst_queries(&[(&query, Ok(keys("x y")))], 4, 5, |key| key.name(false));
    let report = GateReport::new(None, Some(few), None).expect("is asked");
    for (tolerated, tag) in [(false, "error"), (true, "skipped")] {
        let xml = junit::junit(&report, tolerated);
        let document = roxmltree::Document::parse(&xml).expect("is XML");
        let of = |tag: &str| document.descendants().filter(|node| node.has_tag_name(tag)).count();
        assert_eq!((of(tag), of("failure")), (2, 0), "{xml}");
        assert!(xml.contains("missing:   a"), "the worst are shown where nothing fails too: {xml}");
    }
}

#[test]
fn a_summary_begins_with_what_is_wrong_and_holds_no_markup_of_others() {
    let page = markdown::markdown(&hostile(1));
    let lines: Vec<&str> = page.lines().collect();
    assert_eq!(lines[..3], ["## Retrieval gate: FAIL", "", "**Does not hold**"]);
    assert!(
        lines[4].starts_with("- <code>mean&#95;jaccard 0&#46;793 is below its floor 0&#46;850"),
        "{page}"
    );
    let table = lines.iter().position(|line| line.starts_with("|---")).expect("has a table");
    assert_eq!(lines[table + 1], "| `mean_jaccard` | 0.793 | ≥ 0.850 | ❌ missed |");
    assert!(lines[table + 2].ends_with("✅ holds |"), "{page}");
    // Outside of the block of the diff every foreign sign is a number.
    let (prose, block) = page.split_once("````text\n").expect("the fence is longer than those in it");
    for sign in ["<img", "@team", "](http", "**b**", "www.", "``` ", "\u{1b}", "\u{202e}", "\u{200b}", "\0"] {
        assert!(!prose.contains(sign), "{sign}: {page}");
    }
    assert!(prose.contains("a&#124;b  c") || prose.contains("a&#124;b &#124; c"), "{page}");
    let (block, after) = block.split_once("\n````\n").expect("the block ends");
    assert!(block.starts_with("left     a|b | c | `x` ``` ") && !block.contains('\u{1b}'), "{page}");
    assert_eq!(after, "");
    // Every cell of the table is there once.
    let rows = lines[table + 1..].iter().take_while(|line| line.starts_with('|'));
    assert!(rows.clone().count() == 13 && rows.clone().all(|row| row.matches('|').count() == 5), "{page}");
}

#[test]
fn a_summary_is_never_too_long() {
    let page = markdown::markdown(&hostile(1000));
    assert!(page.len() <= markdown::MAX_BYTES && page.len() > markdown::MAX_BYTES / 2, "{}", page.len());
    let last = page.lines().last().expect("has lines");
    assert!(last.ends_with(" more are not shown: the page would be too long."), "{last}");
    let mut report = hostile(0);
    report.regression_gate.notes = vec!["|".repeat(1000); 1000];
    report.regression_gate.breaches[0].error_tail = Some("|".repeat(1_000_000));
    let page = markdown::markdown(&report);
    assert!(page.len() <= markdown::MAX_BYTES, "{}", page.len());
    let error = markdown::markdown_error(&crate::Error::input("`".repeat(1_000_000)));
    assert!(
        error.starts_with("## Retrieval gate: ERROR") && error.len() < markdown::MAX_BYTES,
        "{}",
        error.len()
    );
}
