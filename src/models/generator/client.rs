//! HTTP to a model server: one request within a time limit, repeated where that may help. The key is sent and
//! never shown.

use std::hash::BuildHasher;
use std::io;
use std::net::IpAddr;
use std::time::{Duration, Instant, SystemTime};

use tracing::field::Empty;
use tracing::info_span;
use ureq::http::{HeaderValue, Response, StatusCode, Uri, header};
use ureq::{Agent, Body};

use crate::error::{Error, ErrorKind, Result};

mod shown;

use shown::said;
pub(super) use shown::{Key, without_credentials};

/// Bytes of an answer, unpacked. The longest answers of models are some hundred kilobytes.
const LARGEST_BODY: u64 = 8 << 20;
/// A server that cannot be connected to in this time is away, however long its answers may take.
const CONNECT: Duration = Duration::from_secs(5);
/// Pause before the first repetition; it doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// A model server and how to talk to it.
#[derive(Debug)]
pub(super) struct Client {
    base_url: String,
    key_variable: Option<String>,
    agent: Agent,
}

/// What a server answered with a status of 200 to 299.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) body: String,
    pub(super) content_type: String,
}

/// Why a request failed, and what may help.
struct Failure {
    error: Error,
    status: Option<StatusCode>,
    /// `Some` when repeating may help, with the pause that the server asked for.
    repeat: Option<Option<Duration>>,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { error, status: None, repeat: None }
    }
}

impl Client {
    /// A client of the endpoint `base_url`. Fails when that is no HTTP address, has a user or a query in it, would
    /// carry a key unencrypted to another machine, or needs the network while that is forbidden.
    pub(super) fn new(base_url: &str, key_variable: Option<&str>, offline: bool) -> Result<Self> {
        let shown = without_credentials(base_url);
        let refused = |why: &str| Error::usage(format!("base_url `{shown}`: {why}"));
        if base_url.contains('@') {
            return Err(refused("has a user or a password in it")
                .with_hint("put the key into an environment variable and name it as `key_variable`"));
        }
        if base_url.contains(['?', '#']) {
            return Err(refused("has a query in it").with_hint("give the address up to `/chat/completions`"));
        }
        let uri: Uri = base_url.parse().map_err(|_| refused("is not an address"))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none_or(str::is_empty) {
            return Err(refused("is not an address").with_hint("it looks like http://127.0.0.1:11434/v1"));
        }
        let loopback = is_loopback(&uri);
        if key_variable.is_some() && uri.scheme_str() == Some("http") && !loopback {
            return Err(refused("would carry the key unencrypted").with_hint("use https"));
        }
        if offline && !loopback {
            return Err(Error::new(
                ErrorKind::Network,
                format!("{shown} needs the network, which is forbidden (offline)"),
            )
            .with_hint("unset RANKGATE_OFFLINE, or choose another preset with `rankgate models use`"));
        }
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            // A redirect is an answer: the key and the prompt go to the host that was named and to no other.
            .max_redirects(0)
            .max_redirects_will_error(false)
            // Idle connections may be dead ones, and a request on a dead one could not be told from one that was cut.
            .max_idle_connections(0)
            .timeout_connect(Some(CONNECT))
            .user_agent(concat!("rankgate/", env!("CARGO_PKG_VERSION")));
        if loopback {
            config = config.proxy(None);
        }
        Ok(Self {
            base_url: base_url.trim_end_matches('/').into(),
            key_variable: key_variable.map(Into::into),
            agent: config.build().new_agent(),
        })
    }

    /// The address without a slash at its end.
    pub(super) fn base_url(&self) -> &str {
        &self.base_url
    }

    /// The key as the environment has it now. Fails when the variable is not set.
    pub(super) fn key(&self) -> Result<Key> {
        let Some(variable) = &self.key_variable else { return Ok(Key(None)) };
        match std::env::var(variable).map(|value| value.trim().to_string()) {
            Ok(key) if !key.is_empty() => Ok(Key(Some(key))),
            _ => Err(Error::new(ErrorKind::Access, format!("{variable} is not set"))
                .with_hint(format!("it must hold the key for {}", self.base_url))),
        }
    }

    /// Asks `GET {base_url}{path}` once: the status and the body.
    pub(super) fn get(&self, path: &str, key: &Key, limit: Duration) -> Result<(StatusCode, String)> {
        let mut request = self.agent.get(format!("{}{path}", self.base_url));
        if let Some(value) = self.authorization(key)? {
            request = request.header(header::AUTHORIZATION, value);
        }
        let sent = request.config().timeout_global(Some(limit)).build().call();
        let mut response = sent.map_err(|e| self.not_answered(e, key, limit).error)?;
        let body = self.body(&mut response, key, limit)?;
        Ok((response.status(), body))
    }

    /// Sends `json` to `POST {base_url}{path}` and repeats that at most `retries` times within `limit`, when the
    /// connection was refused or the answer was 429 or 5xx.
    ///
    /// Reports itself as the stage `request` with the number of attempts. Fails with
    /// [`Network`](ErrorKind::Network) when there is no connection, or 429, 5xx or a redirect was the last answer;
    /// [`Access`](ErrorKind::Access) for 401 and 403; [`NotFound`](ErrorKind::NotFound) for 404;
    /// [`Model`](ErrorKind::Model) for another status and a body that is cut, too large or no text;
    /// [`Timeout`](ErrorKind::Timeout) after `limit`.
    pub(super) fn post(
        &self,
        path: &str,
        json: &str,
        key: &Key,
        limit: Duration,
        retries: u32,
    ) -> Result<Reply> {
        let span = info_span!("request", server = self.base_url, attempts = Empty, error = Empty);
        let _entered = span.enter();
        let started = Instant::now();
        let mut attempt = 0;
        loop {
            attempt += 1;
            span.record("attempts", attempt);
            let left = limit.saturating_sub(started.elapsed());
            let failure = match self.post_once(path, json, key, left, limit) {
                Ok(reply) => return Ok(reply),
                Err(failure) => failure,
            };
            let pause = match failure.repeat {
                Some(asked) if attempt <= retries => asked.unwrap_or_else(|| backoff(attempt)),
                _ => {
                    let error = if attempt > 1 { tried(failure.error, attempt) } else { failure.error };
                    span.record("error", error.to_string());
                    return Err(error);
                }
            };
            let left = limit.saturating_sub(started.elapsed());
            if pause >= left {
                let error = self.no_time(failure, pause, attempt, limit);
                span.record("error", error.to_string());
                return Err(error);
            }
            std::thread::sleep(pause);
        }
    }

    fn post_once(
        &self,
        path: &str,
        json: &str,
        key: &Key,
        left: Duration,
        limit: Duration,
    ) -> std::result::Result<Reply, Failure> {
        if left.is_zero() {
            return Err(self.timed_out(limit).into());
        }
        let mut request = self.agent.post(format!("{}{path}", self.base_url));
        request = request.header(header::CONTENT_TYPE, "application/json");
        if let Some(value) = self.authorization(key)? {
            request = request.header(header::AUTHORIZATION, value);
        }
        let sent = request.config().timeout_global(Some(left)).build().send(json);
        let mut response = sent.map_err(|e| self.not_answered(e, key, limit))?;
        if !response.status().is_success() {
            return Err(self.refused(&mut response, key, limit));
        }
        let body = self.body(&mut response, key, limit)?;
        let content_type = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        Ok(Reply { body, content_type: key.quote(content_type.unwrap_or("of no stated type")) })
    }

    fn authorization(&self, key: &Key) -> Result<Option<HeaderValue>> {
        let Some(key) = &key.0 else { return Ok(None) };
        let mut value = HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| {
            let variable = self.key_variable.as_deref().unwrap_or_default();
            Error::new(ErrorKind::Access, format!("{variable} holds characters that no key can have"))
        })?;
        value.set_sensitive(true);
        Ok(Some(value))
    }

    /// The error for a request that got no answer at all.
    fn not_answered(&self, error: ureq::Error, key: &Key, limit: Duration) -> Failure {
        if let ureq::Error::Timeout(_) = error {
            return self.timed_out(limit).into();
        }
        let refused = matches!(&error, ureq::Error::Io(e) if e.kind() == io::ErrorKind::ConnectionRefused);
        let what = if refused { "refuses the connection" } else { "cannot be reached" };
        let error = Error::new(ErrorKind::Network, format!("{} {what}", self.base_url))
            .with_source(key.quote(&error.to_string()))
            .with_hint(
                "start the server, correct its address, or choose the preset `nano`, which needs none",
            );
        Failure { error, status: None, repeat: refused.then_some(None) }
    }

    /// The error for an answer with a status other than 200 to 299.
    fn refused(&self, response: &mut Response<Body>, key: &Key, limit: Duration) -> Failure {
        let status = response.status();
        let header = |name| response.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let asked = header(header::RETRY_AFTER).and_then(|value| pause_asked(value, SystemTime::now()));
        let target = header(header::LOCATION).map(|to| {
            // As `base_url` is written.
            let to = to.strip_suffix("/chat/completions").unwrap_or(to);
            key.quote(&without_credentials(to))
        });
        let said = self.body(response, key, limit).map(|body| key.quote(&said(&body))).unwrap_or_default();
        let said = if said.is_empty() { said } else { format!(": {said}") };
        let failed = |kind, hint: String| {
            Error::new(kind, format!("{} answers {status}{said}", self.base_url)).with_hint(hint)
        };
        let variable = self.key_variable.as_deref();
        let error = match status.as_u16() {
            300..=399 => failed(
                ErrorKind::Network,
                format!(
                    "redirects are not followed: set `base_url` to where it points, {}",
                    target.as_deref().unwrap_or("which it does not say")
                ),
            ),
            401 | 403 => failed(
                ErrorKind::Access,
                match variable {
                    Some(variable) => format!("the key in {variable} is wrong or may not use this model"),
                    None => "it wants a key: name its variable as `key_variable` of the preset".into(),
                },
            ),
            404 => failed(ErrorKind::NotFound, "check `base_url` and `model` of the preset".into()),
            429 => failed(ErrorKind::Network, "it is asked too often: wait, or ask for less at once".into()),
            500..=599 => failed(ErrorKind::Network, "the fault is the server's: try again later".into()),
            _ => failed(ErrorKind::Model, "it does not take this request: check the preset's options".into()),
        };
        let repeat = matches!(status.as_u16(), 429 | 500..=599).then_some(asked);
        Failure { error, status: Some(status), repeat }
    }

    /// The whole body as text, without the key.
    fn body(&self, response: &mut Response<Body>, key: &Key, limit: Duration) -> Result<String> {
        let read = response.body_mut().with_config().limit(LARGEST_BODY).read_to_vec();
        let bytes = read.map_err(|e| match e {
            ureq::Error::Timeout(_) => self.timed_out(limit),
            ureq::Error::BodyExceedsLimit(_) => self.damaged("is larger than 8 MiB"),
            e => self.damaged("was cut off").with_source(key.quote(&e.to_string())),
        })?;
        let text = String::from_utf8(bytes).map_err(|_| self.damaged("is not UTF-8"))?;
        Ok(key.removed_from(text))
    }

    fn damaged(&self, how: &str) -> Error {
        Error::new(ErrorKind::Model, format!("{}: the answer {how}", self.base_url))
    }

    fn timed_out(&self, limit: Duration) -> Error {
        Error::new(
            ErrorKind::Timeout,
            format!("{} did not answer within {} s", self.base_url, limit.as_secs_f64()),
        )
        .with_hint("allow more time, or choose a smaller model")
    }

    /// The error for a repetition that would come after the time limit.
    fn no_time(&self, failure: Failure, pause: Duration, attempts: u32, limit: Duration) -> Error {
        let wait = format!(
            "the next attempt would be due in {:.1} s, after the time limit of {} s",
            pause.as_secs_f64(),
            limit.as_secs_f64()
        );
        let error = if attempts > 1 { tried(failure.error, attempts) } else { failure.error };
        match failure.status {
            Some(_) => error.with_hint(wait),
            // A refused connection says more by its own hint.
            None => error,
        }
    }
}

fn tried(error: Error, attempts: u32) -> Error {
    error.context(format!("after {attempts} attempts"))
}

/// The pause that `Retry-After` asks for: seconds, or a date (RFC 9110, section 10.2.3).
fn pause_asked(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

/// The pause after the `attempt`-th failure: doubled each time, and shortened at random by up to a half, so that
/// many who failed together do not come back together.
fn backoff(attempt: u32) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(1 << attempt.saturating_sub(1).min(16)).min(LONGEST_PAUSE);
    let random = std::hash::RandomState::new().hash_one(attempt) as f64 / u64::MAX as f64;
    doubled.mul_f64(0.5 + random / 2.0)
}

/// Whether a server is on this machine.
fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_with_credentials_is_refused_and_not_shown() {
        for url in [
            "http://user:hunter2@host/v1",
            "user:hunter2@host/v1",
            "http://host/v1?key=hunter2",
            "http://user:hunt@er2@host/v1",
            "ftp://host",
            "host/v1",
            "",
        ] {
            let error = Client::new(url, None, false).expect_err(url);
            assert_eq!(error.kind(), ErrorKind::Usage, "{url}");
            let said = format!("{error} {error:?}");
            assert!(!said.contains("hunt"), "{said}");
        }
    }

    #[test]
    fn a_key_leaves_this_machine_only_encrypted() {
        let error = Client::new("http://10.0.0.1/v1", Some("KEY"), false).expect_err("in the clear");
        assert!(error.report().contains("use https"), "{error}");
        for url in ["https://example.org/v1", "http://127.0.0.1:1/v1"] {
            assert!(Client::new(url, Some("KEY"), false).is_ok(), "{url}");
        }
    }

    #[test]
    fn offline_only_this_machine_is_asked() {
        for url in ["http://127.0.0.1:1/v1", "http://localhost/v1", "http://[::1]:8080/v1/"] {
            assert!(Client::new(url, None, true).is_ok(), "{url}");
        }
        for url in ["https://example.org/v1", "http://localhost.example.org/v1", "http://10.0.0.1/v1"] {
            assert_eq!(Client::new(url, None, true).expect_err(url).kind(), ErrorKind::Network, "{url}");
            assert!(Client::new(url, None, false).is_ok(), "{url}");
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").expect("a date");
        assert_eq!(pause_asked(" 7 ", now), Some(Duration::from_secs(7)));
        assert_eq!(pause_asked("Sun, 06 Nov 1994 08:50:07 GMT", now), Some(Duration::from_secs(30)));
        assert_eq!(pause_asked("Sun, 06 Nov 1994 08:00:00 GMT", now), Some(Duration::ZERO));
        assert_eq!(pause_asked("soon", now), None);
        assert_eq!(pause_asked("-1", now), None);
        assert_eq!(pause_asked("99999999999999999999999", now), None);
    }

    #[test]
    fn pauses_grow_and_stay_bounded() {
        for attempt in 1..200 {
            let pause = backoff(attempt);
            assert!(pause <= LONGEST_PAUSE && pause >= FIRST_PAUSE / 2, "{attempt}: {pause:?}");
        }
        assert!(backoff(1) <= FIRST_PAUSE && backoff(20) >= LONGEST_PAUSE / 2);
    }
}
