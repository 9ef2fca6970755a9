//! Which presets can be used here, and why not.

use std::collections::BTreeMap;

use rankgate::ErrorKind;
use rankgate::models::{self, PresetStatus};
use rankgate::settings::{ModelSettings, ServerPreset};
use serde_json::{Value, json};

use super::{Does, KEY_VARIABLE, Server, http, ok};
use crate::models::{Sandbox, expect};

fn statuses(settings: &ModelSettings) -> BTreeMap<String, PresetStatus> {
    models::presets(settings).unwrap().into_iter().map(|status| (status.name.clone(), status)).collect()
}

fn why_not(url: &str, change: impl FnOnce(&mut ServerPreset)) -> String {
    let mut preset = ServerPreset::new("m");
    preset.base_url = Some(url.into());
    change(&mut preset);
    let settings =
        ModelSettings { presets: [("mine".into(), preset)].into(), offline: true, ..Default::default() };
    let status = statuses(&settings).remove("mine").unwrap();
    assert_eq!(status.usable, status.why_not.is_none());
    status.why_not.unwrap_or_default()
}

#[test]
fn one_question_tells_which_models_a_server_has() {
    let models = json!({ "object": "list", "data": [{ "id": "qwen3:1.7b" }, { "id": "qwen2.5:3b" }] });
    let server = Server::answering(ok(&models));
    let settings = ModelSettings { server: server.url.clone(), preset: "slim".into(), ..Default::default() };
    let statuses = statuses(&settings);
    assert!(statuses["slim"].usable && statuses["slim"].configured && statuses["balanced"].usable);
    let why = statuses["quality"].why_not.clone().unwrap();
    assert!(why.contains("no model `qwen3:4b`") && why.contains("qwen3:1.7b, qwen2.5:3b"), "{why}");
    assert_eq!(statuses["nano"].server, None);
    let [seen] = server.requests().try_into().unwrap();
    assert_eq!(seen.line, "GET /v1/models");
}

#[test]
fn a_server_that_cannot_be_used_says_why() {
    let of = |answer: Vec<u8>| why_not(&Server::answering(answer).url, |_| ());
    assert_eq!(of(http("404 Not Found", "", "")), "", "no such route, but there");
    assert_eq!(of(ok(&json!({ "data": [{ "id": "m:latest" }] }))), "");
    assert!(of(http("500 Oh", "", "")).contains("500"));
    assert!(of(http("401 No", "", "")).contains("wants a key"));
    assert!(of(http("200 OK", "", "<html>")).contains("gives no list of models"));
    assert!(of(ok(&json!({ "data": [] }))).contains("it has none"));
    let hostile = of(ok(&json!({ "data": [{ "id": "\u{1b}[31mred\n" }] })));
    assert!(hostile.contains("red") && !hostile.contains('\u{1b}'), "{hostile}");

    let hanging = Server::start(|_, _| Does::Hangs(vec![]));
    assert!(why_not(&hanging.url, |_| ()).contains("did not answer within 1 s"));
    assert!(why_not("http://127.0.0.1:9/v1", |_| ()).contains("refuses the connection"));
    assert!(why_not("https://example.org/v1", |_| ()).contains("forbidden (offline)"));
    assert!(why_not("http://127.0.0.1:9/v1", |p| p.input_price = Some(1.0)).contains("output_price"));

    let refusing = Server::answering(http("403 No", "", ""));
    let why = why_not(&refusing.url, |preset| preset.key_variable = Some(KEY_VARIABLE.into()));
    assert!(why.contains(&format!("refuses the key in {KEY_VARIABLE}")), "{why}");
    let why = why_not(&refusing.url, |preset| preset.key_variable = Some("RANKGATE_NO_SUCH_KEY".into()));
    assert!(why.contains("RANKGATE_NO_SUCH_KEY is not set"), "{why}");
    assert_eq!(refusing.requests().len(), 1, "without a key it is not asked");
}

#[test]
fn an_address_with_a_password_is_refused_and_shown_without() {
    let preset =
        ServerPreset { base_url: Some("http://me:hunter2@127.0.0.1/v1".into()), ..ServerPreset::new("m") };
    let settings = ModelSettings {
        preset: "mine".into(),
        presets: [("mine".into(), preset)].into(),
        ..Default::default()
    };
    let error = models::generator(&settings, None).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Usage);
    let status = statuses(&settings).remove("mine").unwrap();
    assert_eq!(status.server.as_deref(), Some("http://127.0.0.1/v1"));
    let said = format!("{} {status:?}", error.report());
    assert!(said.contains("[models.presets.mine]") && !said.contains("hunter2"), "{said}");
}

#[test]
fn the_list_has_a_table_of_presets() {
    let server = Server::answering(ok(&json!({ "data": [{ "id": "qwen3:4b" }] })));
    let sandbox = Sandbox::new();
    let list = |args: &[&str]| {
        let mut command = sandbox.rankgate(args);
        expect(command.env("RANKGATE_SERVER", &server.url).env("RANKGATE_PRESET", "quality"), 0).0
    };
    let out = list(&["models", "list"]);
    let line =
        |name: &str| out.lines().find(|line| line.split_whitespace().any(|word| word == name)).unwrap();
    assert!(line("quality").starts_with("* quality") && line("quality").ends_with("usable"), "{out}");
    assert!(line("slim").contains("not usable: the server has no model"), "{out}");
    let document: Value = serde_json::from_str(&list(&["models", "list", "--json"])).unwrap();
    let quality = &document["presets"][3];
    assert_eq!(
        *quality,
        json!({ "name": "quality", "model": "qwen3:4b", "server": server.url, "configured": true, "usable": true,
                "why_not": null })
    );
}
