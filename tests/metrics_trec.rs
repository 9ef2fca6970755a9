//! Agreement with `trec_eval` 10, and what happens to files that are not as they should be.

use std::path::Path;
use std::process::Command;

use rankgate::corpus::trec::{Run, parse_qrels, read_qrels, read_run, write_run};
use rankgate::metrics::{self, Measures, Options, Report, Value, evaluate};
use rankgate::{Judgments, Ranking};

use crate::common::shared_data;

/// Options, judgments, run, expected output.
type Comparison = (&'static [&'static str], &'static str, &'static str, &'static str);

/// Those comparisons of trec_eval's own test whose expected output was at hand.
const COMPARISONS: &[Comparison] = &[
    (&[], "qrels.test", "results.test", "out.test"),
    (&[], "qrels.comment.test", "results.comment.test", "out.comment.test"),
    (&["-m", "all_trec"], "qrels.test", "results.test", "out.test.a"),
    (&["-m", "all_trec", "-q"], "qrels.test", "results.test", "out.test.aq"),
    (&["-m", "all_trec", "-q", "-c"], "qrels.test", "results.trunc", "out.test.aqc"),
    (
        &[
            "-q",
            "-miprec_at_recall..10,.20,.25,.75,.50",
            "-m",
            "P.5,7,3",
            "-m",
            "recall.20,2000",
            "-m",
            "Rprec_mult.5.0,0.2,0.35",
            "-mutility.2,-1,0,0",
            "-m",
            "11pt_avg..25,.5,.75",
            "-mndcg.1=3,2=9,4=4.5",
            "-mndcg_cut.10,20,23.4",
            "-msuccess.2,5,20",
        ],
        "qrels.test",
        "results.test",
        "out.test.meas_params",
    ),
];

/// The program's answer: exit code, stdout, stderr.
fn metrics_command(qrels: &Path, run: &Path, flags: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rankgate"));
    command.args(["metrics", "--qrels"]).arg(qrels).arg("--run").arg(run).args(flags);
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn output_is_that_of_trec_eval_to_the_byte() {
    let Some(data) = shared_data("trec_eval") else { return };
    for (flags, qrels, run, expected) in COMPARISONS {
        let expected_text = std::fs::read_to_string(data.join(expected)).unwrap();
        // The reference computes these from memory that it never set.
        let expected_text: String =
            expected_text.split_inclusive('\n').filter(|line| !line.starts_with("rbp")).collect();
        let (code, stdout, stderr) = metrics_command(&data.join(qrels), &data.join(run), flags);
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{expected}");
        if stdout != expected_text {
            let differing: Vec<_> =
                stdout.lines().zip(expected_text.lines()).filter(|(ours, theirs)| ours != theirs).collect();
            panic!(
                "{expected}: {} lines differ, first (ours, theirs) {:?}",
                differing.len(),
                differing.first()
            );
        }
    }
}

#[test]
fn json_says_the_same_and_keeps_to_its_schema() {
    let Some(data) = shared_data("trec_eval") else { return };
    let (qrels, run) = (data.join("qrels.test"), data.join("results.test"));
    let (code, stdout, _) = metrics_command(&qrels, &run, &["-m", "all_trec", "-q", "--json"]);
    assert_eq!(code, Some(0));
    let document: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let schema = serde_json::to_value(metrics::schema()).unwrap();
    let errors: Vec<_> =
        jsonschema::validator_for(&schema).unwrap().iter_errors(&document).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");

    let report: Report = serde_json::from_str(&stdout).unwrap();
    assert_eq!((report.version, report.run_id.as_str()), (1, "STANDARD"));
    assert_eq!(report.measures["num_ret"], Value::Count(1500));
    let Value::Real(map) = report.measures["map"] else { panic!("map is a number") };
    assert_eq!(format!("{map:.4}"), "0.1785");
    assert_eq!(report.queries["302"]["relstring"], Value::Text("1101110110".into()));
    assert!(!report.queries["302"].contains_key("gm_map"));
}

/// Evaluates two small texts; the summary as text.
fn measure(qrels: &str, run: &str, names: &[&str], options: Options) -> String {
    let run = Run::parse("run", run.into()).unwrap();
    let qrels = parse_qrels("qrels", qrels.into()).unwrap();
    evaluate(&run, &qrels, &Measures::parse(names).unwrap(), options).unwrap().text(false)
}

fn values(text: &str) -> Vec<&str> {
    text.lines().map(|line| line.rsplit('\t').next().unwrap()).collect()
}

#[test]
fn hand_computed_values() {
    // Ranked x(2) a b(0) c(-1) y(1); z(3) is missed. R = 3 of six judged or pooled.
    let qrels = "1 0 x 2\n1 0 b 0\n1 0 c -1\n1 0 y 1\n1 0 z 3\n";
    let run = "1 Q0 x 1 5 t\n1 Q0 a 2 4 t\n1 Q0 b 3 3 t\n1 Q0 c 4 2 t\n1 Q0 y 5 1 t\n";
    let dcg = 2.0 + 1.0 / 6f64.log2();
    let ideal = 3.0 + 2.0 / 3f64.log2() + 1.0 / 2.0;
    let expected = [
        (vec!["num_rel", "num_rel_ret"], vec!["3".to_string(), "2".into()]),
        (vec!["map"], vec![format!("{:.4}", (1.0 + 2.0 / 5.0) / 3.0)]),
        // y comes after one judged non-relevant document, of one in all.
        (vec!["bpref"], vec![format!("{:.4}", (1.0 + 0.0) / 3.0)]),
        (vec!["Rprec", "relative_P.2"], vec![format!("{:.4}", 1.0 / 3.0), "0.5000".into()]),
        (vec!["ndcg", "ndcg_cut.1"], vec![format!("{:.4}", dcg / ideal), format!("{:.4}", 2.0 / 3.0)]),
        (vec!["dcg", "ideal_dcg"], vec![format!("{dcg:.4}"), format!("{ideal:.4}")]),
        (vec!["set_F.3"], vec![format!("{:.4}", 4.0 * 0.4 * (2.0 / 3.0) / (3.0 * 0.4 + 2.0 / 3.0))]),
        (
            vec!["utility.1,10,100,1000"],
            vec![format!("{:.4}", 2.0 + 30.0 + 100.0 + 1000.0 * (2.0 - 5.0 - 3.0))],
        ),
        // a is not in the pool, c is in it and not judged.
        (vec!["unj.4", "num_nonrel_judged_ret"], vec!["1".into(), "0.5000".into()]),
    ];
    for (names, wanted) in expected {
        let text = measure(qrels, run, &names, Options::default());
        assert_eq!(values(&text), wanted, "{names:?}\n{text}");
    }
    let evaluation = evaluate(
        &Run::parse("run", run.into()).unwrap(),
        &parse_qrels("qrels", qrels.into()).unwrap(),
        &Measures::parse(&["relstring.9"]).unwrap(),
        Options::default(),
    );
    assert_eq!(evaluation.unwrap().text(true), "relstring_9           \t1\t'2-0.1'\n");
}

#[test]
fn equal_scores_are_ranked_by_docid_backwards_and_compared_as_doubles() {
    let qrels = "1 0 b 1\n";
    let tied = "1 Q0 b 1 0.5 t\n1 Q0 c 2 0.50 t\n1 Q0 a 3 5e-1 t\n";
    assert_eq!(values(&measure(qrels, tied, &["recip_rank"], Options::default())), ["0.5000"]);
    // Equal as 32-bit numbers, not as 64-bit ones.
    let close = "1 Q0 b 1 0.10000000002 t\n1 Q0 c 2 0.10000000001 t\n";
    assert_eq!(values(&measure(qrels, close, &["recip_rank"], Options::default())), ["1.0000"]);
}

#[test]
fn a_repeated_document_counts_once_where_it_ranks_best() {
    let repeated = "1 Q0 b 1 1 t\n1 Q0 a 2 3 t\n1 Q0 a 3 2 t\n1 Q0 b 4 0 t\n";
    let text =
        measure("1 0 b 1\n1 0 a 0\n", repeated, &["num_ret", "num_rel_ret", "map"], Options::default());
    assert_eq!(values(&text), ["2", "1", "0.5000"]);
}

#[test]
fn level_depth_and_complete_work_as_the_flags_do() {
    let (qrels, run) = ("1 0 a 1\n1 0 b 2\n2 0 a 1\n", "1 Q0 a 1 2 t\n1 Q0 b 2 1 t\n3 Q0 a 1 1 t\n");
    let with = |options| measure(qrels, run, &["num_q", "num_ret", "num_rel", "recip_rank"], options);
    let default = Options::default();
    assert_eq!(values(&with(default)), ["1", "2", "2", "1.0000"]);
    assert_eq!(values(&with(Options { level: 2, ..default })), ["1", "2", "1", "0.5000"]);
    assert_eq!(values(&with(Options { level: 2, depth: 1, ..default })), ["1", "1", "1", "0.0000"]);
    assert_eq!(values(&with(Options { complete: true, ..default })), ["2", "2", "3", "0.5000"]);
}

#[test]
fn bad_runs_are_refused_with_file_line_and_repair() {
    let table: &[(&[u8], &str)] = &[
        (b"", "run.txt: holds no ranking"),
        (b"# only this\n\n", "run.txt: holds no ranking"),
        (b"1 Q0 a 1 2.0 t\n1 Q0 b 2 1.0\n", "run.txt:2: 5 columns where a run has six"),
        (b"1 Q0 a 1 high t\n", "run.txt:1: score `high` is no number"),
        (b"1 Q0 a 1 0,5 t\n", "run.txt:1: score `0,5` is no number"),
        (b"1 Q0 a 1 NaN t\n", "run.txt:1: score `NaN` is no number"),
        (b"1 Q0 a 1 2.0 t\n# x\n1 Q0 \xff 2 1.0 t\n", "run.txt:3: not UTF-8"),
        (b"{\"version\": 1}\n", "run.txt:1: 2 columns"),
    ];
    for (bytes, wanted) in table {
        let error = Run::parse("run.txt", bytes.to_vec()).unwrap_err();
        assert!(error.to_string().starts_with(wanted), "{error}");
        assert!(error.hint().is_some(), "{error}");
    }
}

#[test]
fn bad_judgments_are_refused_with_file_line_and_repair() {
    let table: &[(&[u8], &str)] = &[
        (b"", "q.txt: holds no judgment"),
        (b"query-id\tcorpus-id\tscore\n", "q.txt: holds no judgment"),
        (b"1 0 a 1\n1 0 b\n", "q.txt:2: not four columns: `1 0 b`"),
        (b"1 0 a 1 x\n", "q.txt:1: not four columns"),
        (b"1 0 a yes\n", "q.txt:1: grade `yes` is not a whole number"),
        (b"1 0 a 0.5\n", "q.txt:1: grade `0.5` is not a whole number"),
        (b"1 0 a 99999999999999999999\n", "q.txt:1: grade `99999999999999999999` is not"),
        (b"1 0 a 1\n2 0 a 1\n1 0 a 1\n", "q.txt:3: query `1` judges docid `a` a second time"),
        (b"1 0 a 1\n\xfe\n", "q.txt:2: not UTF-8"),
        (b"query-id\tcorpus-id\tscore\n1\ta\t1\t9\n", "q.txt:2: not three tab-separated columns"),
    ];
    for (bytes, wanted) in table {
        let error = parse_qrels("q.txt", bytes.to_vec()).unwrap_err();
        assert!(error.to_string().starts_with(wanted), "{error}");
        assert!(error.hint().is_some(), "{error}");
    }
}

#[test]
fn judgments_are_read_in_every_accepted_form() {
    let plain = parse_qrels("q", b"1 0 a 2\n2 0 b -1\n".to_vec()).unwrap();
    for text in [
        "\u{feff}# made by hand\n\n  1\t0  a 2.0 \r\n2 Q0 b -1",
        "query-id\tcorpus-id\tscore\n1\ta\t2\n2\tb\t-1\n",
        "query-id\tcorpus-id\tscore\r\n1\ta\t2\r\n2\tb\t-1\r\n",
    ] {
        assert_eq!(parse_qrels("q", text.into()).unwrap(), plain, "{text:?}");
    }
}

#[test]
fn the_program_refuses_what_it_cannot_measure() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let (qrels, run) = (write("q.txt", "1 0 a 1\n"), write("r.txt", "1 Q0 a 1 1.0 t\n"));
    let (other, missing) = (write("other.txt", "2 Q0 a 1 1.0 t\n"), folder.path().join("missing.txt"));
    for (qrels, run, flags, wanted) in [
        (&qrels, &run, &["-m", "ndcg_cut10"][..], "nearest: `ndcg_cut`"),
        (&qrels, &run, &["-m", "map.5"], "it takes no parameters"),
        (&qrels, &run, &["-m", "P.5,0"], "a rank is at least 1"),
        (&qrels, &run, &["-m", "P.5,5"], "5 comes twice"),
        (&qrels, &run, &["-m", "P."], "`` is not a number"),
        (&qrels, &run, &["-m", "P.5", "-m", "P.10"], "write one: P.5,10"),
        (&qrels, &run, &["-m", "utility.1"], "it takes 4 numbers"),
        (&qrels, &run, &["-m", "ndcg.1"], "`1` is not grade=gain"),
        (&qrels, &run, &["-m", "rbp_resid"], "measure `rbp_resid` is left out"),
        (&qrels, &run, &["-m", "all_tric"], "nearest: `all_trec`"),
        (&qrels, &run, &["-M", "0"], "--depth"),
        (&qrels, &other, &[], "no query has both a ranking and judgments"),
        (&qrels, &missing, &[], "missing.txt: cannot read the run"),
        (&missing, &run, &[], "missing.txt: cannot read the judgments"),
    ] {
        let (code, stdout, stderr) = metrics_command(qrels, run, flags);
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{flags:?}: {stderr}");
        assert!(stderr.contains(wanted), "{flags:?}: {stderr}");
    }
}

#[test]
fn a_written_run_ranks_as_it_did_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.txt");
    let scored = |docids: &[(&str, f64)]| -> Ranking {
        docids.iter().map(|(docid, score)| rankgate::Hit::new(*docid, *score)).collect()
    };
    // The second has equal scores in an order that a reader would not restore, and a repeated document.
    let rankings = [
        ("q2", scored(&[("b", 0.1 + 0.2), ("a", -1e-9)])),
        ("q1", scored(&[("a", 1.0), ("b", 1.0), ("a", 0.5)])),
    ];
    let run = Run::from_rankings("mine", rankings.iter().map(|(query, ranking)| (*query, ranking))).unwrap();
    write_run(&path, &run).unwrap();
    let back = read_run(&path).unwrap();
    assert_eq!((back.tag(), back.queries().collect::<Vec<_>>()), ("mine", vec!["q1", "q2"]));
    assert_eq!(back.ranking("q2").unwrap().collect::<Vec<_>>(), [("b", 0.1 + 0.2), ("a", -1e-9)]);
    assert_eq!(back.ranking("q1").unwrap().collect::<Vec<_>>(), [("a", 2.0), ("b", 1.0)]);
    assert!(back.ranking("q3").is_none());
}

#[test]
fn a_run_that_cannot_be_written_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.txt");
    std::fs::write(&path, "1 Q0 a 1 1 old\n").unwrap();
    let ranking = Ranking::from_docids(["my notes.md"]);
    let run = Run::from_rankings("t", [("1", &ranking)]).unwrap();
    let error = write_run(&path, &run).unwrap_err().to_string();
    assert!(error.contains("`my notes.md` cannot stand in a TREC file"), "{error}");
    assert_eq!(read_run(&path).unwrap().tag(), "old");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "the temporary file is gone");
    assert!(write_run(&folder.path().join("no/such/folder/run.txt"), &run).is_err());
}

#[test]
fn nan_and_a_query_twice_are_refused_in_memory() {
    let nan: Ranking = [rankgate::Hit::new("a", f64::NAN)].into_iter().collect();
    assert!(Run::from_rankings("t", [("1", &nan)]).is_err());
    let good = Ranking::from_docids(["a"]);
    assert!(Run::from_rankings("t", [("1", &good), ("1", &good)]).is_err());
}

#[test]
fn single_metrics_agree_with_the_evaluation_of_a_run() {
    let Some(data) = shared_data("trec_eval") else { return };
    let (qrels, run) =
        (read_qrels(&data.join("qrels.rel_level")).unwrap(), read_run(&data.join("results.test")).unwrap());
    let names = ["recall.20", "P.20", "success.5", "recip_rank", "map", "ndcg_cut.20"];
    let evaluation = evaluate(&run, &qrels, &Measures::parse(&names).unwrap(), Options::default()).unwrap();
    for (query, judgments) in &qrels {
        let ranking = || run.ranking(query).unwrap().map(|(docid, _)| docid);
        let column =
            |name: &str| evaluation.per_query(name).iter().find(|(id, _)| id == query).map(|(_, v)| *v);
        assert_eq!(metrics::recall_at(20, ranking(), judgments), column("recall_20"));
        assert_eq!(metrics::precision_at(20, ranking(), judgments), column("P_20"));
        assert_eq!(metrics::success_at(5, ranking(), judgments), column("success_5"));
        assert_eq!(metrics::reciprocal_rank(ranking(), judgments), column("recip_rank"));
        assert_eq!(metrics::average_precision(ranking(), judgments), column("map"));
        assert_eq!(metrics::ndcg_at(20, ranking(), judgments), column("ndcg_cut_20"));
    }
}

#[test]
fn metrics_of_a_query_without_relevant_documents_are_undefined() {
    let judgments: Judgments = [("a".to_string(), 0), ("b".to_string(), -1)].into();
    assert_eq!(metrics::recall_at(5, ["a"], &judgments), None);
    assert_eq!(metrics::ndcg_at(5, ["a"], &judgments), None);
    assert_eq!(metrics::reciprocal_rank(["a"], &Judgments::new()), None);
}

#[test]
fn exponential_gain_sets_high_grades_apart() {
    let judgments: Judgments = [("a".to_string(), 3), ("b".to_string(), 1)].into();
    let linear = metrics::ndcg_at(10, ["b", "a"], &judgments).unwrap();
    let exponential = metrics::ndcg_exp_at(10, ["b", "a"], &judgments).unwrap();
    let discount = 3f64.log2();
    assert!((linear - (1.0 + 3.0 / discount) / (3.0 + 1.0 / discount)).abs() < 1e-12);
    assert!((exponential - (1.0 + 7.0 / discount) / (7.0 + 1.0 / discount)).abs() < 1e-12);
    let huge: Judgments = [("a".to_string(), i64::MAX), ("b".to_string(), 1)].into();
    assert!(metrics::ndcg_exp_at(1, ["b"], &huge).unwrap().is_finite());
}
