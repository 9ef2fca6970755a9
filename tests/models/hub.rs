//! A Hugging Face hub on loopback: the requests that its client really makes, answered as the hub does.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::sync::{Arc, Mutex};

use rankgate::corpus::hex;
use sha2::{Digest, Sha256};
use tiny_http::{Header, Request, Response, Server, StatusCode};

/// The commit that `main` is.
pub const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// A hub with one repository, `acme/tiny`, until it is dropped.
pub struct Hub {
    server: Arc<Server>,
    /// Method, path, `Range` and `Authorization` of every request.
    pub requests: Arc<Mutex<Vec<String>>>,
}

/// What the hub does wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fault {
    None,
    /// Every byte of the model is right but one.
    Damage,
    /// The model's bytes stop half-way and the connection stays open, but for the first half.
    Stall,
    /// Everybody needs a token.
    Gated,
}

impl Hub {
    pub fn start(files: BTreeMap<&'static str, Vec<u8>>, fault: Fault) -> Self {
        let server = Arc::new(Server::http("127.0.0.1:0").unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (serving, log) = (server.clone(), requests.clone());
        std::thread::spawn(move || {
            for request in serving.incoming_requests() {
                log.lock().unwrap().push(format!(
                    "{} {} {} {}",
                    request.method(),
                    request.url(),
                    header(&request, "Range"),
                    header(&request, "Authorization")
                ));
                let files = files.clone();
                // A stalled answer must not keep others waiting.
                std::thread::spawn(move || answer(request, &files, fault));
            }
        });
        Self { server, requests }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.server.server_addr())
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.server.unblock();
    }
}

fn header(request: &Request, name: &'static str) -> String {
    let found = request.headers().iter().find(|header| header.field.equiv(name));
    found.map(|header| header.value.to_string()).unwrap_or_default()
}

fn answer(request: Request, files: &BTreeMap<&str, Vec<u8>>, fault: Fault) {
    let set = |name: &str, value: &str| Header::from_bytes(name, value).unwrap();
    if fault == Fault::Gated && header(&request, "Authorization") != "Bearer secret" {
        let _ = request.respond(Response::empty(401));
        return;
    }
    if request.url().starts_with("/api/models/acme/tiny/revision/") {
        let siblings: Vec<_> = files.keys().map(|name| serde_json::json!({ "rfilename": name })).collect();
        let body = serde_json::json!({ "sha": COMMIT, "siblings": siblings }).to_string();
        let _ = request.respond(Response::from_string(body));
        return;
    }
    let file = request.url().strip_prefix(&format!("/acme/tiny/resolve/{COMMIT}/")).map(str::to_string);
    let Some(content) = file.as_deref().and_then(|file| files.get(file)) else {
        let _ = request.respond(Response::empty(404));
        return;
    };
    let range = header(&request, "Range");
    let (start, end) = range.trim_start_matches("bytes=").split_once('-').unwrap();
    let start: usize = start.parse().unwrap();
    let end = end.parse().map_or(content.len(), |last: usize| last + 1);
    let mut body = content[start..end].to_vec();
    let whole_rest = end == content.len() && body.len() > 1;
    if fault == Fault::Damage && whole_rest {
        *body.last_mut().unwrap() ^= 1;
    }
    let headers = vec![
        set("x-repo-commit", COMMIT),
        set("etag", &format!("\"{}\"", hex(&Sha256::digest(content)))),
        set("content-range", &format!("bytes {start}-{}/{}", end - 1, content.len())),
    ];
    let length = body.len();
    let stall =
        fault == Fault::Stall && start == 0 && whole_rest && file.as_deref() == Some("onnx/model.onnx");
    let body = Stalling { body: Cursor::new(body), left: if stall { length / 2 } else { usize::MAX } };
    let _ = request.respond(Response::new(StatusCode(206), headers, body, Some(length), None));
}

/// Gives `left` bytes, then nothing and no end.
struct Stalling {
    body: Cursor<Vec<u8>>,
    left: usize,
}

impl Read for Stalling {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 {
            // The test kills the reader and leaves; the process ends with it.
            std::thread::sleep(std::time::Duration::from_secs(600));
        }
        let room = buffer.len().min(self.left);
        let read = self.body.read(&mut buffer[..room])?;
        self.left -= read;
        Ok(read)
    }
}
