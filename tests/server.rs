//! Generators on servers: real HTTP on loopback, with everything that can go wrong on the way.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rankgate::models::{self, Generated, Generator, Prompt};
use rankgate::settings::{ModelSettings, ServerPreset};
use rankgate::store::cache::{Cache, CacheMode};
use rankgate::{Error, ErrorKind, Trace, trace};
use serde_json::{Value, json};

mod chosen;
mod evals;
mod faults;
mod presets;

/// A variable that is set wherever tests run. Its value serves as a key: long, and nowhere else in a test.
pub const KEY_VARIABLE: &str = "PATH";

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Method and path.
    pub line: String,
    pub authorization: String,
    pub body: String,
}

impl Seen {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// What a server does with a request.
pub enum Does {
    /// Writes these bytes and closes.
    Answers(Vec<u8>),
    /// Writes these bytes and then nothing, for as long as the test lives.
    Hangs(Vec<u8>),
}

/// A server on loopback; each connection has one request.
pub struct Server {
    pub url: String,
    pub seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// A server that does what `act` says for a request and the number of those before it.
    pub fn start(act: impl Fn(&Seen, usize) -> Does + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (log, act) = (seen.clone(), Arc::new(act));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (log, act) = (log.clone(), act.clone());
                std::thread::spawn(move || serve(stream.unwrap(), &log, &*act));
            }
        });
        Self { url, seen }
    }

    /// A server that always answers the same.
    pub fn answering(answer: Vec<u8>) -> Self {
        Self::start(move |_, _| Does::Answers(answer.clone()))
    }

    pub fn requests(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// The generator of a preset on this server.
    pub fn generator(&self, change: impl FnOnce(&mut ServerPreset)) -> Arc<dyn Generator> {
        generator(&self.url, change)
    }
}

fn serve(mut stream: TcpStream, log: &Mutex<Vec<Seen>>, act: &dyn Fn(&Seen, usize) -> Does) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let (mut length, mut authorization) = (0, String::new());
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).unwrap();
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "authorization" => authorization = value.into(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let line = line.trim_end().trim_end_matches(" HTTP/1.1").to_string();
    let seen = Seen { line, authorization, body: String::from_utf8(body).unwrap() };
    let before = {
        let mut log = log.lock().unwrap();
        log.push(seen.clone());
        log.len() - 1
    };
    match act(&seen, before) {
        // A client that has seen enough may have closed.
        Does::Answers(bytes) => drop(stream.write_all(&bytes)),
        Does::Hangs(bytes) => {
            let _ = stream.write_all(&bytes);
            // Ends when the client does.
            let _ = stream.read(&mut [0]);
        }
    }
}

/// An HTTP answer, headers as lines.
pub fn http(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}")
        .into_bytes()
}

pub fn ok(body: &Value) -> Vec<u8> {
    http("200 OK", "content-type: application/json\r\n", &body.to_string())
}

/// A chat completion as servers answer it.
pub fn completion(content: &str) -> Value {
    json!({
        "id": "x", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": content }, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500 }
    })
}

pub fn generator(url: &str, change: impl FnOnce(&mut ServerPreset)) -> Arc<dyn Generator> {
    let mut preset = ServerPreset::new("m");
    preset.base_url = Some(url.into());
    preset.retries = 0;
    change(&mut preset);
    let settings = ModelSettings {
        preset: "mine".into(),
        presets: [("mine".into(), preset)].into(),
        ..Default::default()
    };
    models::generator(&settings, None).unwrap()
}

pub fn prompt() -> Prompt {
    Prompt { user: "why?".into(), timeout: Duration::from_secs(20), ..Default::default() }
}

pub fn schema() -> Value {
    json!({
        "type": "object",
        "properties": { "queries": { "type": "array", "items": { "type": "string" }, "maxItems": 2 } },
        "required": ["queries"],
        "additionalProperties": false
    })
}

/// Asks, and says what the trace says of the request.
pub fn ask(generator: &dyn Generator, prompt: &Prompt) -> (Result<Generated, Error>, Trace) {
    trace::capture(|| generator.generate(prompt))
}

/// The field of the stage `request`.
pub fn field(trace: &Trace, name: &str) -> Value {
    let stage = trace.stages.iter().find(|stage| stage.name == "request").unwrap();
    stage.fields.get(name).cloned().unwrap_or_default()
}

#[test]
fn a_question_is_sent_as_the_protocol_has_it_and_the_answer_is_counted_and_priced() {
    let server = Server::answering(ok(&completion("because")));
    let generator = server.generator(|preset| {
        preset.key_variable = Some(KEY_VARIABLE.into());
        (preset.input_price, preset.output_price) = (Some(0.5), Some(2.0));
    });
    let prompt = Prompt {
        system: "Be brief.".into(),
        examples: vec![("who?".into(), "me".into())],
        temperature: 0.8,
        seed: 7,
        trial: 2,
        max_tokens: 99,
        ..prompt()
    };
    let answer = generator.generate(&prompt).unwrap();
    let cost = 1000.0 * 0.5 / 1e6 + 500.0 * 2.0 / 1e6;
    assert_eq!(
        answer,
        Generated {
            text: "because".into(),
            prompt_tokens: 1000,
            output_tokens: 500,
            cost: Some(cost),
            cut: false
        }
    );
    let [seen] = server.requests().try_into().unwrap();
    assert_eq!(seen.line, "POST /v1/chat/completions");
    assert_eq!(seen.authorization, format!("Bearer {}", std::env::var(KEY_VARIABLE).unwrap()));
    assert_eq!(
        seen.body,
        r#"{"model":"m","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"who?"},"#
            .to_string()
            + r#"{"role":"assistant","content":"me"},{"role":"user","content":"why?"}],"stream":false,"#
            + r#""temperature":0.8,"seed":9,"max_tokens":99}"#
    );
}

#[test]
fn without_prices_there_is_no_cost_and_without_a_key_no_header() {
    let server = Server::answering(ok(&completion("yes")));
    let answer = server.generator(|_| ()).generate(&prompt()).unwrap();
    assert_eq!((answer.cost, answer.prompt_tokens), (None, 1000));
    assert_eq!(server.requests()[0].authorization, "");
}

#[test]
fn a_schema_is_held_by_the_server_or_stands_in_the_prompt() {
    let valid = "{\"queries\":[\"a\"]}";
    let prompt = Prompt { system: "Expand.".into(), schema: Some(schema()), ..prompt() };

    let server = Server::answering(ok(&completion(valid)));
    assert_eq!(server.generator(|_| ()).generate(&prompt).unwrap().text, valid);
    let request = server.requests()[0].json();
    assert_eq!(
        request["response_format"],
        json!({ "type": "json_schema", "json_schema": { "name": "answer", "strict": true, "schema": schema() } })
    );
    assert_eq!(request["messages"][0]["content"], "Expand.");

    let server =
        Server::answering(ok(&completion(&format!("Here it is:\n```json\n{valid}\n```\nGood luck!"))));
    let plain = server.generator(|preset| preset.json_schema = false);
    assert_eq!(plain.generate(&prompt).unwrap().text, valid);
    let request = server.requests()[0].json();
    assert_eq!(request.get("response_format"), None);
    let system = request["messages"][0]["content"].as_str().unwrap();
    assert!(system.starts_with("Expand.\n\n") && system.ends_with(&schema().to_string()), "{system}");
}

#[test]
fn a_cut_text_says_so_and_cut_json_is_an_error() {
    let mut cut = completion("{\"queries\":[\"a");
    cut["choices"][0]["finish_reason"] = "length".into();
    let server = Server::answering(ok(&cut));
    let generator = server.generator(|_| ());
    assert!(generator.generate(&prompt()).unwrap().cut);
    let error = generator.generate(&Prompt { schema: Some(schema()), ..prompt() }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Model);
    assert!(error.to_string().contains("cut at 512 tokens"), "{error}");
}

#[test]
fn an_answer_is_kept_by_trial_and_a_failure_is_not() {
    let server = Server::start(|_, before| {
        Does::Answers(match before {
            0 => http("400 Bad Request", "", ""),
            _ => ok(&completion(&format!("answer {before}"))),
        })
    });
    let mut preset = ServerPreset::new("m");
    preset.key_variable = Some(KEY_VARIABLE.into());
    (preset.input_price, preset.output_price) = (Some(1.0), Some(1.0));
    let settings = ModelSettings {
        preset: "mine".into(),
        server: server.url.clone(),
        presets: [("mine".into(), preset)].into(),
        ..Default::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let ask = |trial| {
        let cache = Cache::with_mode(&folder.path().join("cache.db"), CacheMode::On);
        let generator = models::generator(&settings, Some(Arc::new(cache))).unwrap();
        let (answer, trace) = ask(&*generator, &Prompt { trial, ..prompt() });
        let stage = trace.stages.iter().find(|stage| stage.name == "generate").unwrap();
        (answer.map(|answer| answer.text).ok(), stage.fields.clone())
    };
    let (answer, fields) = ask(0);
    assert!(answer.is_none() && fields["error"].as_str().unwrap().contains("400"));
    let (answer, fields) = ask(0);
    assert_eq!(answer.unwrap(), "answer 1");
    assert_eq!((&fields["prompt_tokens"], &fields["output_tokens"]), (&json!(1000), &json!(500)));
    assert_eq!((&fields["cost"], &fields["cached"]), (&json!(0.0015), &json!(false)));
    let (answer, fields) = ask(0);
    assert_eq!((answer.unwrap().as_str(), &fields["cached"]), ("answer 1", &json!(true)));
    assert_eq!(fields.get("cost"), None, "nothing was spent");
    assert_eq!(ask(1).0.unwrap(), "answer 2", "another trial is another question");
    assert_eq!(server.requests().len(), 3);

    let key = std::env::var(KEY_VARIABLE).unwrap();
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains(&key), "no key on disk");
    }
}

#[test]
fn two_threads_get_their_own_answers() {
    let server = Server::start(|seen, _| {
        let asked = seen.json()["messages"][0]["content"].as_str().unwrap().to_string();
        Does::Answers(ok(&completion(&format!("to {asked}"))))
    });
    let generator = server.generator(|_| ());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let generator = &generator;
            scope.spawn(move || {
                for n in 0..5 {
                    let user = format!("{thread}.{n}");
                    let answer = generator.generate(&Prompt { user: user.clone(), ..prompt() }).unwrap();
                    assert_eq!(answer.text, format!("to {user}"));
                }
            });
        }
    });
    assert_eq!(server.requests().len(), 20);
}

#[test]
fn a_hang_ends_with_the_time_limit() {
    let half = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{\"choices\":".to_vec();
    for before in [vec![], b"HTTP/1.1 200 OK\r\n".to_vec(), half] {
        let server = Server::start(move |_, _| Does::Hangs(before.clone()));
        let started = Instant::now();
        let limit = Duration::from_millis(400);
        let (answer, _) = ask(&*server.generator(|p| p.retries = 3), &Prompt { timeout: limit, ..prompt() });
        assert_eq!(answer.unwrap_err().kind(), ErrorKind::Timeout);
        // The preset's own limit counts where it is the shorter one.
        let (answer, _) = ask(&*server.generator(|p| p.timeout = Some(0.4)), &prompt());
        assert_eq!(answer.unwrap_err().kind(), ErrorKind::Timeout);
        assert!(started.elapsed() < Duration::from_secs(18), "not the prompt's 20 s");
        assert_eq!(server.requests().len(), 2, "a time-out is not repeated");
    }
}
