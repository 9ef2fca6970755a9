//! Models of the hub, from a server on loopback to vectors and scores.

use std::collections::BTreeMap;
use std::process::Command;

use rankgate::models::{self, TextRole};
use rankgate::settings::{CustomModel, ModelRole, ModelSettings};

use super::hub::{COMMIT, Fault, Hub};
use super::{Sandbox, expect, names, runtime_library, tiny, wait_until};

fn embedder_files() -> BTreeMap<&'static str, Vec<u8>> {
    [
        ("onnx/model.onnx", tiny::embedder()),
        ("tokenizer.json", tiny::tokenizer().into_bytes()),
        ("README.md", vec![]),
    ]
    .into()
}

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.settings(
        "[models.custom.tiny]\nrepo = \"acme/tiny\"\n\
         query_prefix = \"query \"\npassage_prefix = \"passage \"\nmax_tokens = 8\n",
    );
    sandbox
}

fn fetch(sandbox: &Sandbox, hub: &Hub) -> Option<Command> {
    let mut command = sandbox.rankgate(&["models", "fetch", "tiny"]);
    command.env("HF_ENDPOINT", hub.url()).env("ORT_DYLIB_PATH", runtime_library()?);
    // Not the login of whoever runs the tests.
    command.env("HF_HOME", sandbox.path("hf"));
    Some(command)
}

#[test]
fn an_embedder_comes_from_the_hub_and_is_pinned_from_then_on() {
    let (sandbox, hub) = (sandbox(), Hub::start(embedder_files(), Fault::None));
    let Some(mut command) = fetch(&sandbox, &hub) else { return };
    expect(&mut command, 0);
    let folder = sandbox.path("home/models/tiny");
    assert_eq!(names(&folder), ["manifest.json", "model.onnx", "tokenizer.json"]);
    let manifest = std::fs::read_to_string(folder.join("manifest.json")).unwrap();
    assert!(manifest.contains(COMMIT) && manifest.contains("\"dims\": 8"), "{manifest}");
    let requests = hub.requests.lock().unwrap().clone();
    assert!(requests[0].starts_with("GET /api/models/acme/tiny/revision/main"), "{requests:?}");
    assert!(!requests.iter().any(|request| request.contains("README")), "only what is needed: {requests:?}");

    // From now on the hub may be gone.
    drop(hub);
    expect(command.env("RANKGATE_OFFLINE", "1"), 0);
    let (out, _) = expect(&mut sandbox.rankgate(&["models", "verify"]), 0);
    assert!(out.contains("verified"), "{out}");
    let mut model = std::fs::read(folder.join("model.onnx")).unwrap();
    *model.last_mut().unwrap() ^= 1;
    std::fs::write(folder.join("model.onnx"), model).unwrap();
    expect(&mut sandbox.rankgate(&["models", "verify"]), 1);
}

#[test]
fn a_gated_model_needs_the_token() {
    let (sandbox, hub) = (sandbox(), Hub::start(embedder_files(), Fault::Gated));
    let Some(mut command) = fetch(&sandbox, &hub) else { return };
    let (_, err) = expect(&mut command, 2);
    assert!(err.contains("access refused") && err.contains("HF_TOKEN"), "{err}");
    expect(command.env("HF_TOKEN", "secret"), 0);
}

#[test]
fn a_damaged_download_is_refused_and_fetched_anew() {
    let sandbox = sandbox();
    let hub = Hub::start(embedder_files(), Fault::Damage);
    let Some(mut command) = fetch(&sandbox, &hub) else { return };
    let (_, err) = expect(&mut command, 2);
    assert!(err.contains("came damaged"), "{err}");
    assert!(!sandbox.path("home/models/tiny").exists());
    let hub = Hub::start(embedder_files(), Fault::None);
    expect(&mut fetch(&sandbox, &hub).unwrap(), 0);
}

#[test]
fn a_killed_download_is_resumed() {
    let (sandbox, hub) = (sandbox(), Hub::start(embedder_files(), Fault::Stall));
    let Some(mut command) = fetch(&sandbox, &hub) else { return };
    let mut child = command.spawn().unwrap();
    let blobs = sandbox.path("home/models/.tiny.work/hub/models--acme--tiny/blobs");
    wait_until("half of the model", || {
        std::fs::read_dir(&blobs).is_ok_and(|mut files| {
            files.any(|file| file.unwrap().metadata().is_ok_and(|found| found.len() > 1 << 16))
        })
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let hub = Hub::start(embedder_files(), Fault::None);
    expect(&mut fetch(&sandbox, &hub).unwrap(), 0);
    let requests = hub.requests.lock().unwrap().clone();
    let resumed = |request: &String| request.contains("model.onnx bytes=") && !request.contains("bytes=0-");
    assert!(requests.iter().any(resumed), "{requests:?}");
    assert!(!sandbox.path("home/models/.tiny.work").exists());
    expect(&mut sandbox.rankgate(&["models", "verify"]), 0);
}

#[test]
fn what_the_repository_lacks_is_named_with_what_it_has() {
    let sandbox = sandbox();
    let hub = Hub::start([("model_quantized.onnx", tiny::embedder())].into(), Fault::None);
    let Some(mut command) = fetch(&sandbox, &hub) else { return };
    let (_, err) = expect(&mut command, 2);
    assert!(err.contains("no `onnx/model.onnx`") && err.contains("model_quantized.onnx"), "{err}");
    sandbox.settings("[models.custom.tiny]\nrepo = \"acme/other\"\n");
    let (_, err) = expect(&mut command, 2);
    assert!(err.contains("acme/other") && err.contains("not found"), "{err}");
    // Nobody listens there: a hub that is being closed may still take a connection and never answer.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    command.env("HF_ENDPOINT", format!("http://{closed}"));
    let (_, err) = expect(&mut command, 2);
    assert!(err.contains("check the network and HF_ENDPOINT"), "{err}");
}

#[test]
fn a_cross_encoder_is_no_embedder() {
    let sandbox = sandbox();
    let mut files = embedder_files();
    files.insert("onnx/model.onnx", tiny::cross_encoder());
    let hub = Hub::start(files, Fault::None);
    let Some(mut command) = fetch(&sandbox, &hub) else { return };
    let (_, err) = expect(&mut command, 2);
    assert!(err.contains("output `logits` has the shape [1, 1]") && err.contains("role"), "{err}");
}

/// Run by [`tiny_models_embed_and_score`] in a process of its own, whose environment is the sandbox's.
#[test]
#[ignore = "needs the environment that tiny_models_embed_and_score sets"]
fn in_a_process_of_its_own() {
    let custom = |role| CustomModel {
        repo: "acme/tiny".into(),
        revision: "main".into(),
        file: "model.onnx".into(),
        role,
        pooling: Default::default(),
        query_prefix: "query ".into(),
        passage_prefix: String::new(),
        max_tokens: 8,
    };
    let mut settings =
        ModelSettings { embedder: "tiny".into(), reranker: "judge".into(), ..Default::default() };
    settings.local_folder = std::env::var_os("RANKGATE_MODELS_FROM").map(Into::into);
    settings.runtime = std::env::var_os("ORT_DYLIB_PATH").map(Into::into);
    settings.custom.insert("tiny".into(), custom(ModelRole::Embedder));
    settings.custom.insert(
        "judge".into(),
        CustomModel { query_prefix: String::new(), ..custom(ModelRole::CrossEncoder) },
    );

    let embedder = models::embedder(&settings, None).unwrap();
    assert_eq!(embedder.dims(), tiny::DIMS);
    let long = "contract ".repeat(20);
    let texts = ["cancel contract", long.as_str(), "weather today", "cancel contract"];
    let (vectors, trace) = rankgate::trace::capture(|| embedder.embed(&texts, TextRole::Passage).unwrap());
    let rows: Vec<&[f32]> = vectors.rows().collect();
    assert_eq!(rows[0], rows[3], "order is kept across batches");
    assert_ne!(rows[0], rows[2]);
    assert!(rows.iter().all(|row| (row.iter().map(|x| x * x).sum::<f32>() - 1.0).abs() < 1e-5));
    assert_eq!(vectors.truncated, 1);
    let stage = trace.stage("embed").unwrap();
    assert_eq!(stage.model(), Some(embedder.fingerprint()));
    assert_eq!((&stage.fields["texts"], &stage.fields["truncated"]), (&4.into(), &1.into()));

    // [CLS] and [SEP] are left out, and so is the prefix `query`.
    let tokens = embedder.embed_tokens(&["cancel contract"], TextRole::Query).unwrap();
    assert_eq!(tokens[0].data.len(), 2 * tiny::DIMS);
    assert!(tokens[0].data[4] > 0.9 && tokens[0].data[tiny::DIMS + 5] > 0.9, "{:?}", tokens[0].data);

    let reranker = models::reranker(&settings, None).unwrap().unwrap();
    let scores = reranker.score("cancel", &["weather today", "contract", "cancel cancel"]).unwrap();
    assert_eq!(scores, [-2.0, 6.0, 3.0]);
    assert!(models::embedder(&ModelSettings { embedder: "judge".into(), ..settings }, None).is_err());
}

#[test]
fn tiny_models_embed_and_score() {
    let Some(library) = runtime_library() else { return };
    let sandbox = Sandbox::new();
    tiny::write_embedder(&sandbox.path("local/tiny"), "model.onnx");
    tiny::write_cross_encoder(&sandbox.path("local/judge"), "model.onnx");
    let name = format!("{}::in_a_process_of_its_own", module_path!().split_once("::").unwrap().1);
    let program = std::env::current_exe().unwrap();
    let mut command = sandbox.command(&program, &["--ignored", "--exact", &name]);
    let (out, _) = expect(command.env("ORT_DYLIB_PATH", library), 0);
    assert!(out.contains("1 passed"), "{out}");
}
