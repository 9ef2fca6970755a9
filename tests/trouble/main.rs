//! Evals that go wrong in every way there is; `tests/harness.rs` runs them as a program of its own.

use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use rankgate::models::{self, Prompt};
use rankgate::prelude::*;
use rankgate::settings::{ModelSettings, ServerPreset};

fn main() -> std::process::ExitCode {
    rankgate::harness::main(rankgate::project!(), |suite| {
        suite.file("trouble/verdicts.eval.rs", verdicts);
        suite.file("trouble/failures.eval.rs", failures);
        suite.file("trouble/settings.eval.rs", settings);
        suite.file("trouble/orders.eval.rs", orders);
        suite.file("trouble/refused.eval.rs", |_| Err::<(), _>("no fixture"));
        // `tests/server/evals.rs` has the server.
        if let Ok(url) = std::env::var("RANKGATE_SERVER") {
            suite.file("trouble/server.eval.rs", move |suite| server(suite, url));
        }
    })
}

fn cases(ids: &[&'static str]) -> Vec<Example<&'static str>> {
    ids.iter().map(|id| Example::new(*id, *id)).collect()
}

/// A case's score is in its id: `0.5` or `0.5 second`.
fn score_in_id(case: &Example<&'static str>) -> f64 {
    case.input.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(1.0)
}

fn by_id() -> Scorer<Example<&'static str>, String> {
    scorer("by id", |case, _| score_in_id(case))
}

fn echo(case: &Example<&'static str>, _: &Context) -> Result<String> {
    Ok(case.input.to_string())
}

fn verdicts(suite: &mut Suite) {
    suite.eval("fine").cases(|| cases(&["a", "b", "0.9 c"])).subject(echo).score(by_id()).threshold(0.7);
    suite
        .eval("low")
        .cases(|| cases(&["0.1 x", "0.2 y", "0.9 z"]))
        .subject(echo)
        .score(by_id())
        .threshold(0.7)
        .columns(|case, _| [("input", case.input)]);
    suite
        .eval("floor")
        .cases(|| cases(&["0.5 x", "1"]))
        .subject(echo)
        .score(by_id())
        .threshold(0.7)
        .case_floor(0.4);
    suite
        .eval("unsure")
        .cases(|| cases(&["0.6 x", "1", "0.9"]))
        .subject(echo)
        .score(by_id())
        .threshold(0.7)
        .confident();
    suite
        .eval("misses")
        .cases(|| cases(&["0.1 known", "1 stale", "a", "b", "c"]))
        .subject(echo)
        .score(by_id())
        .threshold(0.7)
        .known_miss("0.1 known", "needs a model")
        .known_miss("1 stale", "was hard once");
    suite.eval("empty").cases(|| cases(&[])).subject(echo).score(by_id());
    suite
        .eval("unjudged")
        .cases(|| cases(&["a"]))
        .subject(echo)
        .score(scorer("judge", |_, _| Scored::skipped("no key")));
    suite.eval("half").cases(|| cases(&["a", "b"])).subject(echo).score(by_id()).skip_case("b", "too slow");
    suite.eval("whole").cases(|| cases(&["a"])).subject(echo).score(by_id()).skip("not today");
    suite.eval("变体").cases(|| cases(&["查询 一"])).subject(echo).score(by_id());
    // As good as the environment says.
    let score: f64 = std::env::var("SCORE").ok().and_then(|score| score.parse().ok()).unwrap_or(1.0);
    suite.eval("told").cases(|| cases(&["a", "b"])).subject(echo).score(scorer("told", move |_, _| score));
}

fn server(suite: &mut Suite, server: String) {
    let settings = ModelSettings {
        preset: "mine".into(),
        server,
        presets: [("mine".into(), ServerPreset { retries: 0, ..ServerPreset::new("m") })].into(),
        ..Default::default()
    };
    suite
        .eval("served")
        .cases(|| cases(&["fine", "refused key", "fault", "hang", "nonsense", "well"]))
        .subject(move |case, _| {
            let timeout = Duration::from_millis(500);
            let prompt = Prompt { user: case.input.into(), timeout, ..Default::default() };
            Ok::<_, Error>(models::generator(&settings, None)?.generate(&prompt)?.text)
        })
        .score(scorer("same", |case: &Example<&str>, answer: &String| answer == case.input));
    suite.eval("after").cases(|| cases(&["a"])).subject(echo).score(by_id());
}

fn failures(suite: &mut Suite) {
    suite
        .eval("panics")
        .cases(|| cases(&["a", "bad", "c"]))
        .subject(|case, _| {
            assert!(case.input != "bad", "the subject is {}", case.input);
            Ok::<_, Error>(case.input.to_string())
        })
        .score(by_id())
        .threshold(0.1);
    suite
        .eval("hangs")
        .cases(|| cases(&["a", "subject", "scorer"]))
        .subject(|case, _| {
            hang(case.input == "subject");
            Ok::<_, Error>(case.input.to_string())
        })
        .score_with("slow", |case, _| {
            hang(case.input == "scorer");
            true
        })
        .score_with("quick", |_, _| true)
        .timeout(Duration::from_millis(300));
    suite
        .eval("scorers")
        .cases(|| cases(&["a", "nan", "three", "panic", "error", "column"]))
        .subject(echo)
        .score(scorer("odd", |case: &Example<&str>, _| match case.input {
            "nan" => Ok(f64::NAN),
            "three" => Ok(3.0),
            "panic" => panic!("no judge"),
            "error" => Err("judge is down"),
            _ => Ok(1.0),
        }))
        .score(scorer("even", |_, _| true))
        .columns(|case, _| {
            assert!(case.input != "column", "no column");
            [("input", case.input)]
        });
    suite.eval("unready").cases(|| cases(&["a", "b"])).subject(echo).setup(|| Err("no index")).score(by_id());
    suite
        .eval("slow start")
        .cases(|| cases(&["a", "b"]))
        .subject(echo)
        .setup(|| {
            std::thread::sleep(Duration::from_millis(600));
            Ok::<_, Error>(())
        })
        .timeout(Duration::from_millis(300))
        .score(by_id());
    suite
        .eval("stages")
        .cases(|| cases(&["ran", "skipped", "missing"]))
        .subject(|case, _| {
            match case.input {
                "ran" => tracing::info_span!("rerank").in_scope(|| ()),
                "skipped" => tracing::info_span!("rerank", skipped = "no reranker").in_scope(|| ()),
                _ => tracing::info_span!("bm25").in_scope(|| ()),
            }
            Ok::<_, Error>(())
        })
        .score_with("any", |_, _| true)
        .requires(["rerank"]);
    suite.eval("twice").cases(|| cases(&["a", "a"])).subject(echo).score(by_id());
    suite
        .eval("broken")
        .cases(|| Err::<Vec<Example<&str>>, _>(Error::input("queries.json: not JSON")))
        .subject(echo);
    suite.eval("typo").cases(|| cases(&["alpha"])).subject(echo).known_miss("alpah", "?");
    suite.eval("line\nbreak").cases(|| cases(&["a"])).subject(echo);
    suite.eval("same").cases(|| cases(&["a"])).subject(echo);
    suite.eval("same").cases(|| cases(&["b"])).subject(echo);
}

/// Notes an execution, to count them from outside.
fn count(input: &str) -> std::io::Result<()> {
    let Some(file) = std::env::var_os("COUNT_FILE") else { return Ok(()) };
    let mut file = std::fs::File::options().append(true).create(true).open(file)?;
    file.write_all(format!("{input}\n").as_bytes())
}

fn hang(yes: bool) {
    if yes {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

fn settings(suite: &mut Suite) {
    suite
        .eval("variants")
        .cases(|| cases(&["a", "b"]))
        .variant("good", |_, _| Ok::<_, Error>(1.0))
        .variant("bad", |_, _| Ok::<_, Error>(0.25))
        .score_with("told", |_, out| *out)
        .threshold(0.5);
    suite
        .eval("spread")
        .cases(|| cases(&["a"]))
        .subject(|_, cx| Ok::<_, Error>(f64::from(cx.trial()) / 2.0))
        .score_with("told", |_, out| *out)
        .trials(3);
    suite
        .eval("retried")
        .cases(|| cases(&["once", "twice"]))
        .subject(|case, cx| match (case.input, cx.attempt()) {
            ("once", 0) | ("twice", 0 | 1) => Err("connection reset"),
            _ => Ok(()),
        })
        .score_with("any", |_, _| true)
        .retry_errors(1);
    static RUNNING: AtomicU32 = AtomicU32::new(0);
    suite
        .eval("narrow")
        .cases(|| cases(&["a", "b", "c", "d", "e", "f"]))
        .subject(|_, _| {
            let before = RUNNING.fetch_add(1, SeqCst);
            std::thread::sleep(Duration::from_millis(20));
            RUNNING.fetch_sub(1, SeqCst);
            Ok::<_, Error>(before)
        })
        .score(scorer("at most two", |_, before| *before < 2))
        .threshold(1.0)
        .concurrency(2);
    suite
        .eval("counted")
        .cases(|| cases(&["a", "b", "c", "d"]))
        .subject(|case, _| count(case.input))
        .score_with("any", |_, _| true)
        .threshold(1.0);
    if std::env::var_os("ALONE").is_some() {
        suite.eval("alone").cases(|| cases(&["a", "b"])).subject(echo).only(["b"]);
    }
}

/// Evals whose variants are in order, out of order, and not to be compared.
fn orders(suite: &mut Suite) {
    const IDS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let told =
        || scorer("told", |_: &Example<&str>, out: &Option<f64>| out.map_or_else(no_key, Scored::from));
    let constant = |value: f64| move |_: &Example<&str>, _: &Context| Ok::<_, Error>(Some(value));
    // Two cases of eight lose: that may be chance.
    let nearly =
        |case: &Example<&str>, _: &Context| Ok::<_, Error>(Some(if case.input < "c" { 0.5 } else { 0.75 }));
    suite
        .eval("in order")
        .cases(|| cases(&IDS))
        .variant("fast", constant(0.5))
        .variant("balanced", constant(0.75))
        .variant("thorough", nearly)
        .score(told())
        .score(latency(Duration::from_secs(60)))
        .ordered(["thorough", "balanced", "fast"]);
    suite
        .eval("out of order")
        .cases(|| cases(&IDS))
        .variant("thorough", |case, _| {
            count(case.input)?;
            Ok::<_, std::io::Error>(Some(if case.input == "g" { 0.25 } else { 0.5 }))
        })
        .variant("fast", constant(0.75))
        .score(told())
        .ordered(["thorough", "fast"]);
    suite
        .eval("not to compare")
        .cases(|| cases(&IDS))
        .variant("server", |_, _| Ok::<_, Error>(None))
        .variant("local", constant(0.75))
        .score(told())
        .ordered(["server", "local"]);
    suite
        .eval("half broken")
        .cases(|| cases(&IDS))
        .variant("server", |case, _| if case.input == "c" { Err("no route to host") } else { Ok(Some(1.0)) })
        .variant("local", constant(0.75))
        .score(told())
        .ordered(["server", "local"]);
    let mut refused = |name: &str, order: &[&str]| {
        let cases = suite.eval(name).cases(|| cases(&IDS));
        let eval = cases.variant("thorough", constant(1.0)).variant("fast", constant(0.5));
        eval.score(told()).ordered(order.iter().copied());
    };
    refused("unknown variant", &["thorogh", "fast"]);
    refused("one variant", &["fast"]);
    refused("same variant", &["fast", "fast"]);
    suite
        .eval("nothing to order")
        .cases(|| cases(&IDS))
        .variant("thorough", constant(1.0))
        .variant("fast", constant(1.0))
        .score(latency(Duration::from_secs(60)))
        .ordered(["thorough", "fast"]);
    // A judge that only informs: its score counts for nothing, and is shown.
    suite
        .eval("informed")
        .cases(|| cases(&["a", "b"]))
        .subject(|_, _| Ok::<_, Error>(Some(1.0)))
        .score(told())
        .score(scorer("judge", |_, _| {
            let why = "kappa 0.12 < 0.60".into();
            Scored::Informs { value: 0.1, detail: serde_json::Value::Null, why }
        }))
        .threshold(0.9);
}

fn no_key() -> Scored {
    Scored::skipped("no key")
}
