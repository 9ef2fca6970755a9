//! Evals whose subject asks a server.

use super::{Does, Server, completion, http, ok};
use crate::harness::{Ran, clean, program};

#[test]
fn a_server_that_fails_costs_its_case_and_no_other() {
    let server = Server::start(|seen, _| {
        let asked = seen.json()["messages"][0]["content"].as_str().unwrap().to_string();
        match asked.as_str() {
            "refused key" => Does::Answers(http("401 Unauthorized", "", "")),
            "fault" => Does::Answers(http("500 Internal Server Error", "", "")),
            "nonsense" => Does::Answers(http("200 OK", "", "<html>")),
            "hang" => Does::Hangs(vec![]),
            _ => Does::Answers(ok(&completion(&asked))),
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let mut command = clean(program("trouble"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).env("RANKGATE_DATA", folder.path());
    command.env("RANKGATE_SERVER", &server.url).args(["served", "after"]);
    let ran = Ran::new(command.output().unwrap());
    assert_eq!(ran.code, 101);
    let trials: Vec<(&str, &str)> = ran.trials().into_iter().collect();
    assert_eq!(
        trials,
        [
            ("after::a", "ok"),
            ("after::gate", "ok"),
            ("served::fault", "FAILED"),
            ("served::fine", "ok"),
            ("served::gate", "FAILED"),
            ("served::hang", "FAILED"),
            ("served::nonsense", "FAILED"),
            ("served::refused key", "FAILED"),
            ("served::well", "ok"),
        ]
    );
    for (trial, words) in [
        ("served::fault", "answers 500 Internal Server Error"),
        ("served::hang", "did not answer within 0.5 s"),
        ("served::nonsense", "is not JSON: <html>"),
        ("served::refused key", "answers 401 Unauthorized"),
        ("served::gate", "error: 4 of 6 cases were not measured"),
    ] {
        assert!(ran.message(trial).contains(words), "{trial}: {}", ran.message(trial));
    }
}
