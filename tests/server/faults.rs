//! What servers answer when they do not answer.

use std::net::TcpListener;

use rankgate::ErrorKind;
use rankgate::models::Prompt;
use serde_json::{Value, json};

use super::{Does, KEY_VARIABLE, Server, ask, completion, field, generator, http, ok, prompt, schema};

/// The error of a server that always answers `answer`, and the requests it took.
fn fault(answer: Vec<u8>, prompt: &Prompt) -> (ErrorKind, String, usize) {
    let server = Server::answering(answer);
    let (answer, trace) = ask(&*server.generator(|preset| preset.retries = 1), prompt);
    let error = answer.expect_err("no answer");
    let attempts = server.requests().len();
    assert_eq!(field(&trace, "attempts"), attempts);
    (error.kind(), error.report(), attempts)
}

#[test]
fn a_status_has_its_own_error_and_only_some_are_repeated() {
    let json = "content-type: application/json\r\n";
    let body = r#"{"error": {"message": "no such\nthing", "type": "x"}}"#;
    for (status, kind, words, attempts) in [
        ("400 Bad Request", ErrorKind::Model, "400 Bad Request: no such thing", 1),
        ("401 Unauthorized", ErrorKind::Access, "key_variable", 1),
        ("403 Forbidden", ErrorKind::Access, "403", 1),
        ("404 Not Found", ErrorKind::NotFound, "base_url", 1),
        ("422 Unprocessable", ErrorKind::Model, "422", 1),
        ("429 Too Many Requests", ErrorKind::Network, "after 2 attempts: ", 2),
        ("500 Internal Server Error", ErrorKind::Network, "500 Internal Server Error: no such thing", 2),
        ("503 Service Unavailable", ErrorKind::Network, "503", 2),
    ] {
        let (found, said, requests) = fault(http(status, json, body), &prompt());
        assert_eq!((found, requests), (kind, attempts), "{status}: {said}");
        assert!(said.contains(words) && said.starts_with("model `m`: "), "{status}: {said}");
    }
}

#[test]
fn an_answer_that_is_none_is_named() {
    let html = "content-type: text/html\r\n";
    let with = |path: &str, value: Value| {
        let mut answer = completion("x");
        *answer.pointer_mut(path).unwrap() = value;
        ok(&answer)
    };
    let cut = {
        let mut whole = ok(&completion("a long answer"));
        whole.truncate(whole.len() - 40);
        whole
    };
    let huge = ok(&completion(&"x".repeat(9 << 20)));
    let endless = format!("HTTP/1.1 200 OK\r\n\r\n{}", " ".repeat(9 << 20)).into_bytes();
    for (answer, words) in [
        (http("200 OK", html, "<html>Please log in</html>"), "(text/html) is not JSON: <html>Please log in"),
        (http("200 OK", "content-type: text/event-stream\r\n", "data: {}\n\n"), "(text/event-stream)"),
        (http("200 OK", "", "not json"), "is not JSON: not json"),
        (http("200 OK", "", ""), "the answer is empty"),
        (http("204 No Content", "", ""), "the answer is empty"),
        (http("200 OK", "", "[1, 2]"), "is not a chat completion"),
        (http("200 OK", "", "{\"choices\": [{\"mess"), "is not JSON"),
        (cut, "was cut off"),
        (huge, "is larger than 8 MiB"),
        (endless, "is larger than 8 MiB"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n\xff\xfe".to_vec(), "is not UTF-8"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel".to_vec(), "was cut off"),
        (ok(&json!({ "error": { "message": "out of memory" } })), "out of memory"),
        (with("/choices", json!([])), "no choices"),
        (with("/choices", json!("one")), "is not a chat completion"),
        (with("/choices/0/message/content", Value::Null), "no text"),
        (with("/choices/0/message/content", json!(3)), "is not a chat completion"),
        (with("/choices/0/message/content", json!(" ")), "no text"),
        (
            with("/choices/0/message", json!({ "content": null, "refusal": "I must not" })),
            "refuses: I must not",
        ),
        (with("/choices/0/finish_reason", json!("content_filter")), "content filter"),
        (with("/usage/prompt_tokens", json!(-1)), "is not a chat completion"),
    ] {
        let (kind, said, requests) = fault(answer, &prompt());
        assert_eq!((kind, requests), (ErrorKind::Model, 1), "{words}: {said}");
        assert!(said.contains(words) && said.len() < 1000, "{words}: {said}");
    }
}

#[test]
fn an_answer_that_the_schema_does_not_allow_is_an_error_that_names_the_first_violation() {
    for json_schema in [true, false] {
        for (content, words) in [
            ("{\"queries\":[\"a\", 1]}", "at /queries/1: 1 is not of type"),
            ("{\"query\":\"a\"}", "not valid under the schema"),
            ("no braces at all", "was asked for JSON and wrote: no braces at all"),
            ("{\"queries\":[", "was asked for JSON"),
        ] {
            let server = Server::answering(ok(&completion(content)));
            let generator = server.generator(|preset| preset.json_schema = json_schema);
            let error = generator.generate(&Prompt { schema: Some(schema()), ..prompt() }).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Model);
            assert!(error.to_string().contains(words), "{content}: {error}");
        }
    }
    // A server that holds schemas writes nothing around the answer.
    let server = Server::answering(ok(&completion("Sure: {\"queries\":[]}")));
    assert!(server.generator(|_| ()).generate(&Prompt { schema: Some(schema()), ..prompt() }).is_err());
    let error =
        server.generator(|_| ()).generate(&Prompt { schema: Some(json!(3)), ..prompt() }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert_eq!(server.requests().len(), 1, "a wrong schema is not sent");
}

#[test]
fn a_busy_server_is_asked_again_when_it_says_so() {
    let busy = |headers: &str| http("429 Too Many Requests", headers, "slow down");
    let server = Server::start(move |_, before| {
        Does::Answers(match before {
            0 => busy("retry-after: 1\r\n"),
            1 => busy("retry-after: Sun, 06 Nov 1994 08:49:37 GMT\r\n"),
            2 => http("500 Internal Server Error", "", ""),
            _ => ok(&completion("at last")),
        })
    });
    let (answer, trace) = ask(&*server.generator(|preset| preset.retries = 3), &prompt());
    assert_eq!(answer.unwrap().text, "at last");
    assert_eq!(field(&trace, "attempts"), 4);
    assert_eq!(field(&trace, "error"), Value::Null);

    // A pause that ends after the time limit is not begun.
    let server = Server::answering(busy("retry-after: 3600\r\n"));
    let (answer, trace) = ask(&*server.generator(|preset| preset.retries = 3), &prompt());
    let error = answer.unwrap_err();
    assert_eq!((error.kind(), server.requests().len()), (ErrorKind::Network, 1));
    assert!(error.to_string().contains("due in 3600.0 s, after the time limit of 20 s"), "{error}");
    assert_eq!(field(&trace, "error"), error.to_string()["model `m`: ".len()..]);
}

#[test]
fn a_refused_connection_is_a_network_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let (answer, trace) = ask(&*generator(&url, |preset| preset.retries = 1), &prompt());
    let error = answer.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Network);
    assert!(error.to_string().contains(&format!("{url} refuses the connection")), "{error}");
    assert_eq!(field(&trace, "attempts"), 2);
}

#[test]
fn a_redirect_is_not_followed_and_the_key_goes_nowhere() {
    let elsewhere = Server::answering(ok(&completion("stolen")));
    for status in ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let location = format!("location: {}/chat/completions\r\n", elsewhere.url);
        let (kind, said, _) = fault(http(status, &location, ""), &prompt());
        assert_eq!(kind, ErrorKind::Network);
        assert!(said.contains("redirects are not followed") && said.contains(&elsewhere.url), "{said}");
        assert!(!said.contains("completions"), "{said}");
    }
    assert_eq!(elsewhere.requests().len(), 0);
}

#[test]
fn a_key_that_is_missing_is_named_and_nothing_is_sent() {
    let server = Server::answering(ok(&completion("x")));
    let generator = server.generator(|preset| preset.key_variable = Some("RANKGATE_NO_SUCH_KEY".into()));
    let error = generator.generate(&prompt()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Access);
    assert!(error.to_string().contains("RANKGATE_NO_SUCH_KEY is not set"), "{error}");
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn the_key_is_never_shown_whatever_the_server_sends_back() {
    let key = std::env::var(KEY_VARIABLE).unwrap();
    let server = Server::start(|seen, before| {
        let key = seen.authorization.strip_prefix("Bearer ").unwrap();
        let echo = format!("you sent {}, {key}", seen.authorization);
        let message = json!({ "error": { "message": echo } }).to_string();
        let escaped: String = key.chars().map(|c| format!("\\u{:04x}", c as u32)).collect();
        let mut refusal = completion("");
        refusal["choices"][0]["message"]["refusal"] = echo.as_str().into();
        Does::Answers(match before {
            0 => http("401 Unauthorized", "", &message),
            1 => http("401 Unauthorized", "", &echo),
            2 => http("400 Bad Request", "", &format!("{{\"error\":{{\"message\":\"{escaped}\"}}}}")),
            3 => http("500 Internal Server Error", "", &message),
            4 => http("302 Found", &format!("location: http://127.0.0.1/{key}\r\n"), &echo),
            5 => http("200 OK", &format!("content-type: {key}\r\n"), &echo),
            6 => ok(&json!({ "choices": echo })),
            7 => ok(&refusal),
            8 => ok(&completion(&echo)),
            9 => ok(&completion(&json!({ "queries": [echo, 1] }).to_string())),
            _ => ok(&completion(&json!({ "queries": [echo] }).to_string())),
        })
    });
    let generator = server.generator(|preset| preset.key_variable = Some(KEY_VARIABLE.into()));
    for request in 0..11 {
        let (answer, trace) = ask(&*generator, &Prompt { schema: Some(schema()), ..prompt() });
        let report = answer.as_ref().err().map(|error| error.report());
        let shown = format!("{answer:?} {report:?} {trace:?} {}", json!(trace));
        assert!(!shown.contains(&key), "request {request}: {shown}");
        assert_eq!(answer.is_err(), request < 10, "request {request}: {shown}");
        if request < 2 {
            assert!(shown.contains("[key]") && shown.contains(KEY_VARIABLE), "{shown}");
        }
    }
    assert_eq!(server.requests().len(), 11);
    assert!(server.requests().iter().all(|seen| seen.authorization.contains(&key)), "it was sent");
}
