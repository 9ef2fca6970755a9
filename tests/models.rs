//! Models as a user meets them: the program in a home of its own, with real files, processes and servers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use rankgate::models::{catalogue, inventory};
use rankgate::settings::ModelSettings;

mod faults;
mod from_hub;
mod hub;
mod real;
mod tiny;

/// A home, a project and a local folder that vanish with it.
pub struct Sandbox {
    pub dir: tempfile::TempDir,
}

impl Sandbox {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["home", "project/.config", "local"] {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        Self { dir }
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    /// Writes the project's settings.
    pub fn settings(&self, toml: &str) -> &Self {
        fs::write(self.path("project/.config/rankgate.toml"), toml).unwrap();
        self
    }

    /// `rankgate ARGS` in this sandbox, with the models of `local` and nothing else of the outer world.
    pub fn rankgate(&self, args: &[&str]) -> Command {
        self.command(Path::new(env!("CARGO_BIN_EXE_rankgate")), args)
    }

    pub fn command(&self, program: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.path("project")).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if ["RANKGATE_", "HF_", "ORT_"].iter().any(|prefix| text.starts_with(prefix)) {
                command.env_remove(&name);
            }
        }
        command.env("RANKGATE_HOME", self.path("home")).env("RANKGATE_MODELS_FROM", self.path("local"));
        command
    }
}

/// What a command said: exit code, stdout and stderr.
pub fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Runs `command` and expects `code`; returns stdout and stderr.
pub fn expect(command: &mut Command, code: i32) -> (String, String) {
    let (found, out, err) = said(&command.output().unwrap());
    assert_eq!(found, Some(code), "stdout: {out}\nstderr: {err}");
    (out, err)
}

/// The pinned runtime of this machine's own models folder, fetched if need be; `None`, with a word on
/// stderr, where that is impossible.
pub fn runtime_library() -> Option<&'static Path> {
    static LIBRARY: OnceLock<Option<PathBuf>> = OnceLock::new();
    let fetch = || {
        let folder = pinned(catalogue::RUNTIME)?;
        Some(folder.join(catalogue::runtime()?.parts[0].file.name))
    };
    LIBRARY.get_or_init(fetch).as_deref()
}

/// The folder of a pinned model in this machine's own models folder, fetched if need be.
pub fn pinned(name: &str) -> Option<PathBuf> {
    let settings = ModelSettings::default();
    let here = inventory::list(&settings).unwrap().into_iter().find(|model| model.name == name)?;
    if here.state == inventory::State::Present {
        return Some(here.folder);
    }
    match inventory::fetch(name, &settings) {
        Ok(model) => Some(model.folder),
        Err(error) => {
            eprintln!("skipped, {name} cannot be fetched: {}", error.report());
            None
        }
    }
}

/// Waits until `ready`, at most a minute.
pub fn wait_until(what: &str, ready: impl Fn() -> bool) {
    for _ in 0..6000 {
        if ready() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("waited a minute for {what}");
}

/// Names in a folder, sorted.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A sandbox whose local folder has MiniLM; `None` where that cannot be fetched.
pub fn with_minilm() -> Option<Sandbox> {
    let folder = pinned("all-minilm-l6-v2")?;
    let sandbox = Sandbox::new();
    let local = sandbox.path("local/all-minilm-l6-v2");
    fs::create_dir(&local).unwrap();
    for name in ["model.onnx", "tokenizer.json"] {
        fs::copy(folder.join(name), local.join(name)).unwrap();
    }
    Some(sandbox)
}

#[test]
fn list_names_every_model_and_what_the_settings_use() {
    let sandbox = Sandbox::new();
    sandbox.settings("[models]\nembedder = \"tiny\"\n[models.custom.tiny]\nrepo = \"acme/tiny\"\n");
    let (out, _) = expect(&mut sandbox.rankgate(&["models", "list"]), 0);
    assert!(out.contains("* tiny") && out.contains("  multilingual-e5-small"), "{out}");
    assert_eq!(out.matches("missing").count(), 5, "{out}");

    let (out, _) = expect(&mut sandbox.rankgate(&["models", "list", "--json"]), 0);
    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(document["version"], 1);
    assert_eq!(document["models"][4]["source"], "hub: acme/tiny at main");
    assert_eq!(names(&sandbox.path("home")), [""; 0], "listing writes nothing");
}

#[test]
fn a_fetched_model_is_verified_and_damage_is_found_and_repaired() {
    let Some(sandbox) = with_minilm() else { return };
    let (out, _) = expect(&mut sandbox.rankgate(&["models", "fetch", "all-minilm-l6-v2"]), 0);
    assert!(out.contains("present"), "{out}");
    let (out, _) = expect(&mut sandbox.rankgate(&["models", "verify"]), 0);
    assert!(out.contains("verified"), "{out}");

    // One byte of equal length: only hashing finds it.
    let model = sandbox.path("home/models/all-minilm-l6-v2/model.onnx");
    let mut bytes = fs::read(&model).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&model, &bytes).unwrap();
    expect(&mut sandbox.rankgate(&["models", "list"]), 0);
    let (out, _) = expect(&mut sandbox.rankgate(&["models", "verify"]), 1);
    assert!(
        out.contains("DAMAGED") && out.contains("to repair: rankgate models fetch all-minilm-l6-v2"),
        "{out}"
    );

    expect(&mut sandbox.rankgate(&["models", "fetch", "all-minilm-l6-v2"]), 0);
    bytes[middle] ^= 1;
    assert!(fs::read(&model).unwrap() == bytes, "repaired");
    expect(&mut sandbox.rankgate(&["models", "verify"]), 0);
}

#[test]
fn a_copied_models_folder_works_offline() {
    let Some(sandbox) = with_minilm() else { return };
    expect(&mut sandbox.rankgate(&["models", "fetch", "all-minilm-l6-v2"]), 0);
    fs::rename(sandbox.path("home/models"), sandbox.path("elsewhere")).unwrap();
    let mut command = sandbox.rankgate(&["models", "fetch", "all-minilm-l6-v2"]);
    command.env_remove("RANKGATE_MODELS_FROM").env("RANKGATE_OFFLINE", "1");
    expect(command.env("RANKGATE_MODELS", sandbox.path("elsewhere")), 0);

    let mut command = sandbox.rankgate(&["models", "fetch", "all-minilm-l6-v2"]);
    command.env_remove("RANKGATE_MODELS_FROM").env("RANKGATE_OFFLINE", "1");
    let (_, err) = expect(&mut command, 2);
    assert!(
        err.contains("all-minilm-l6-v2") && err.contains("offline") && err.contains("rankgate models fetch"),
        "{err}"
    );
}

#[test]
fn an_unknown_name_is_answered_with_the_known_ones() {
    let sandbox = Sandbox::new();
    let (_, err) = expect(&mut sandbox.rankgate(&["models", "fetch", "minilm"]), 2);
    assert!(err.contains("`minilm`") && err.contains("all-minilm-l6-v2"), "{err}");
}
