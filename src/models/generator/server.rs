//! A language model behind an OpenAI-compatible endpoint.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::client::{Client, Key, Reply};
use super::{Generated, Generator, Prompt};
use crate::corpus::hex;
use crate::error::{Error, ErrorKind, Result};
use crate::settings::{ModelSettings, ServerPreset};

/// Changed whenever equal prompts are put to a server in other words.
const REQUEST_VERSION: u32 = 1;

/// Nobody waits longer for an answer, whatever limit is set.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// A generator on a server: `POST {base_url}/chat/completions`, answers in one piece.
#[derive(Debug)]
pub(super) struct ServerGenerator {
    client: Client,
    preset: ServerPreset,
    fingerprint: String,
}

impl ServerGenerator {
    /// The model of the preset called `name`. Sends nothing. Fails when an option cannot be used.
    pub(super) fn new(name: &str, preset: ServerPreset, settings: &ModelSettings) -> Result<Self> {
        let subject = format!("[models.presets.{name}]");
        let refused = |why: String| Err(Error::usage(format!("{subject}: {why}")));
        if preset.model.trim().is_empty() {
            return refused("`model` is empty".into());
        }
        let prices = [("input_price", preset.input_price), ("output_price", preset.output_price)];
        for (key, price) in prices {
            if price.is_some_and(|price| !price.is_finite() || price < 0.0) {
                return refused(format!("`{key}` is not a price"));
            }
        }
        if preset.input_price.is_some() != preset.output_price.is_some() {
            return refused("states one price: give both `input_price` and `output_price`, or none".into());
        }
        if preset
            .timeout
            .is_some_and(|seconds| Duration::try_from_secs_f64(seconds).is_err() || seconds <= 0.0)
        {
            return refused("`timeout` is not a number of seconds".into());
        }
        let base_url = preset.base_url.as_deref().unwrap_or(&settings.server);
        let client = Client::new(base_url, preset.key_variable.as_deref(), settings.offline)
            .map_err(|e| e.context(&subject))?;
        // Prices, time and retries change what an answer costs, not what it says.
        let identity = json!([client.base_url(), preset.model, preset.json_schema, REQUEST_VERSION]);
        let fingerprint = hex(&Sha256::digest(identity.to_string()));
        Ok(Self { client, preset, fingerprint })
    }

    fn failed(&self, what: impl std::fmt::Display) -> Error {
        Error::new(
            ErrorKind::Model,
            format!("model `{}` at {}: {what}", self.preset.model, self.client.base_url()),
        )
    }

    fn request(&self, prompt: &Prompt) -> String {
        let mut system = prompt.system.clone();
        let mut response_format = None;
        match &prompt.schema {
            Some(schema) if self.preset.json_schema => {
                response_format = Some(json!({
                    "type": "json_schema",
                    "json_schema": { "name": "answer", "strict": true, "schema": schema }
                }));
            }
            Some(schema) => system.push_str(&format!(
                "\n\nAnswer with one JSON object that is valid under this JSON schema, and with nothing else:\n{schema}"
            )),
            None => {}
        }
        let mut messages = Vec::new();
        if !system.is_empty() {
            messages.push(Message { role: "system", content: system.trim_start() });
        }
        for (asked, answered) in &prompt.examples {
            messages.push(Message { role: "user", content: asked });
            messages.push(Message { role: "assistant", content: answered });
        }
        messages.push(Message { role: "user", content: &prompt.user });
        let request = Request {
            model: &self.preset.model,
            messages,
            stream: false,
            temperature: prompt.temperature,
            // Servers take 31 bits at least.
            seed: prompt.seed.wrapping_add(prompt.trial.into()) & i32::MAX as u64,
            max_tokens: prompt.max_tokens,
            response_format,
        };
        serde_json::to_string(&request).expect("text and numbers with text keys")
    }

    /// What the server answered, if it is an answer.
    fn read(&self, reply: &Reply, prompt: &Prompt, key: &Key) -> Result<Generated> {
        let Reply { body, content_type } = reply;
        if body.trim().is_empty() {
            return Err(self.failed("the answer is empty"));
        }
        let completion: Completion = serde_json::from_str(body).map_err(|e| {
            let how = if e.is_data() { "is not a chat completion" } else { "is not JSON" };
            self.failed(format!("the answer ({content_type}) {how}: {}", key.quote(body)))
                .with_source(key.quote(&e.to_string()))
        })?;
        let Some(Choice { message, finish_reason }) = completion.choices.into_iter().next() else {
            return Err(self.failed("the answer has no choices"));
        };
        if let Some(refusal) = message.refusal.filter(|refusal| !refusal.is_empty()) {
            return Err(self.failed(format!("the model refuses: {}", key.quote(&refusal))));
        }
        if finish_reason.as_deref() == Some("content_filter") {
            return Err(self.failed("a content filter of the server stopped the answer"));
        }
        let cut = finish_reason.as_deref() == Some("length");
        let content = message.content.as_deref().map(without_thoughts).unwrap_or_default();
        if cut && (prompt.schema.is_some() || content.is_empty()) {
            return Err(self
                .failed(format!("the answer was cut at {} tokens", prompt.max_tokens))
                .with_hint("allow more tokens, or ask for less"));
        }
        if content.is_empty() {
            return Err(self.failed("the answer has no text"));
        }
        let text = match &prompt.schema {
            Some(schema) => self.checked(content, schema, key)?,
            None => content,
        };
        let Usage { prompt_tokens, completion_tokens } = completion.usage.unwrap_or_default();
        let cost = match (completion.usage, self.preset.input_price, self.preset.output_price) {
            (Some(_), Some(input), Some(output)) => {
                Some((prompt_tokens as f64 * input + completion_tokens as f64 * output) / 1e6)
            }
            _ => None,
        };
        Ok(Generated { text: text.into(), prompt_tokens, output_tokens: completion_tokens, cost, cut })
    }

    /// The JSON in `content`, which must be valid under `schema`.
    fn checked<'a>(&self, content: &'a str, schema: &Value, key: &Key) -> Result<&'a str> {
        let found = if self.preset.json_schema {
            serde_json::from_str(content).ok().map(|value| (content, value))
        } else {
            first_object(content)
        };
        let Some((text, value)) = found else {
            return Err(self
                .failed(format!("was asked for JSON and wrote: {}", key.quote(content)))
                .with_hint(if self.preset.json_schema {
                    "if the server cannot hold a schema, set `json_schema = false` in the preset"
                } else {
                    "choose a larger model"
                }));
        };
        let validator = validator(schema)?;
        if let Err(violation) = validator.validate(&value) {
            let path = violation.instance_path().to_string();
            let at = if path.is_empty() { String::new() } else { format!(" at {}", key.quote(&path)) };
            return Err(self.failed(format!(
                "the answer is not valid under the schema{at}: {}",
                key.quote(&violation.to_string())
            )));
        }
        Ok(text)
    }
}

impl Generator for ServerGenerator {
    fn name(&self) -> &str {
        &self.preset.model
    }

    fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    fn generate(&self, prompt: &Prompt) -> Result<Generated> {
        if let Some(schema) = &prompt.schema {
            validator(schema)?; // before anything is paid for
        }
        let key = self.client.key()?;
        let own = self.preset.timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let limit = own.map_or(prompt.timeout, |own| own.min(prompt.timeout)).min(LONGEST);
        let request = self.request(prompt);
        let reply = self.client.post("/chat/completions", &request, &key, limit, self.preset.retries);
        let reply = reply.map_err(|e| e.context(format!("model `{}`", self.preset.model)))?;
        self.read(&reply, prompt, &key)
    }
}

fn validator(schema: &Value) -> Result<jsonschema::Validator> {
    jsonschema::validator_for(schema)
        .map_err(|e| Error::usage("the schema of the prompt is not one").with_source(e.to_string()))
}

/// `content` without the thoughts that some models put before their answer.
fn without_thoughts(content: &str) -> &str {
    let content = content.trim();
    match content.strip_prefix("<think>").map(|thoughts| thoughts.split_once("</think>")) {
        Some(Some((_, answer))) => answer.trim(),
        Some(None) => "", // nothing but thoughts
        None => content,
    }
}

/// The first JSON object in a text, and where it stands.
fn first_object(text: &str) -> Option<(&str, Value)> {
    text.match_indices('{').find_map(|(start, _)| {
        let mut stream = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
        let value = stream.next()?.ok()?;
        Some((&text[start..start + stream.byte_offset()], value))
    })
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    stream: bool,
    temperature: f32,
    seed: u64,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a str,
}

#[derive(Deserialize)]
struct Completion {
    choices: Vec<Choice>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Choice {
    message: Answer,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Answer {
    content: Option<String>,
    refusal: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct Usage {
    prompt_tokens: u64,
    completion_tokens: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(change: impl FnOnce(&mut ServerPreset)) -> Result<ServerGenerator> {
        let mut preset = ServerPreset::new("m");
        change(&mut preset);
        ServerGenerator::new("mine", preset, &ModelSettings::default())
    }

    #[test]
    fn options_that_cannot_be_used_are_named() {
        let refused = |change: fn(&mut ServerPreset)| open(change).expect_err("refused").to_string();
        assert!(refused(|p| p.model = " ".into()).contains("[models.presets.mine]: `model`"));
        assert!(refused(|p| p.input_price = Some(1.0)).contains("output_price"));
        assert!(refused(|p| p.input_price = Some(f64::NAN)).contains("input_price"));
        assert!(refused(|p| p.output_price = Some(-1.0)).contains("output_price"));
        assert!(refused(|p| p.timeout = Some(0.0)).contains("timeout"));
        assert!(refused(|p| p.timeout = Some(f64::INFINITY)).contains("timeout"));
        assert!(refused(|p| p.base_url = Some("nowhere".into())).contains("[models.presets.mine]: base_url"));
    }

    #[test]
    fn the_fingerprint_is_server_model_and_schema_mode() {
        let of = |change: fn(&mut ServerPreset)| open(change).expect("opens").fingerprint;
        let plain = of(|_| ());
        assert_eq!(plain, of(|p| (p.timeout, p.retries) = (Some(1.0), 0)));
        assert_eq!(plain, of(|p| p.base_url = Some("http://127.0.0.1:11434/v1/".into())));
        assert_ne!(plain, of(|p| p.base_url = Some("http://127.0.0.1:1/v1".into())));
        assert_ne!(plain, of(|p| p.json_schema = false));
        assert_ne!(plain, of(|p| p.model = "n".into()));
    }

    #[test]
    fn the_first_object_is_taken_out_of_fences_and_prose() {
        let found = |text| first_object(text).map(|(text, _)| text);
        assert_eq!(found("```json\n{\"a\": \"}\"}\n```"), Some("{\"a\": \"}\"}"));
        assert_eq!(found("use {braces}, then {\"a\":{}} {\"b\":1}"), Some("{\"a\":{}}"));
        assert_eq!(found("{\"a\": "), None);
        assert_eq!(found(&"{\"a\":".repeat(5000)), None);
    }

    #[test]
    fn thoughts_are_no_answer() {
        assert_eq!(without_thoughts("<think>\n{} hm\n</think>\n\nyes "), "yes");
        assert_eq!(without_thoughts("<think>never ending"), "");
        assert_eq!(without_thoughts("a <think>"), "a <think>");
    }
}
