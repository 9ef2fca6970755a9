//! `rankgate models use`: one setting, and the rest of the file as it was.

use std::fs;

use crate::models::{Sandbox, expect, names};

/// A sandbox whose default server refuses connections at once.
fn use_preset(sandbox: &Sandbox, args: &[&str]) -> std::process::Command {
    let mut all = vec!["models", "use"];
    all.extend(args);
    let mut command = sandbox.rankgate(&all);
    command.env("RANKGATE_SERVER", "http://127.0.0.1:9/v1");
    command
}

#[test]
fn the_preset_is_written_for_the_user_or_the_project() {
    let sandbox = Sandbox::new();
    fs::remove_dir(sandbox.path("home")).unwrap();
    let (out, _) = expect(&mut use_preset(&sandbox, &["slim"]), 0);
    let home = sandbox.path("home/config.toml");
    assert!(out.contains(&format!("preset `slim` is set in {}", home.display())), "{out}");
    assert!(out.contains("it cannot be used now: http://127.0.0.1:9/v1 refuses the connection"), "{out}");
    assert_eq!(fs::read_to_string(&home).unwrap(), "[models]\npreset = \"slim\"\n");
    assert!(expect(&mut use_preset(&sandbox, &["slim"]), 0).0.contains("is already set"));

    fs::remove_dir(sandbox.path("project/.config")).unwrap();
    let (out, _) = expect(&mut use_preset(&sandbox, &["quality", "--project"]), 0);
    assert!(!out.contains("stronger"), "{out}");
    let project = fs::read_to_string(sandbox.path("project/.config/rankgate.toml")).unwrap();
    assert_eq!(project, "[models]\npreset = \"quality\"\n");
    assert_eq!(names(&sandbox.path("project/.config")), ["rankgate.toml"], "nothing beside it");
    let (out, _) = expect(&mut sandbox.rankgate(&["models", "list", "--json"]), 0);
    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(document["presets"][3]["configured"], true, "the project's is stronger: {out}");
}

#[test]
fn comments_and_order_stay() {
    let sandbox = Sandbox::new();
    sandbox.settings(
        "# ours\n[search]   # how\nrrf_k = 30.0\n\n[models]\n# small is enough\npreset = \"nano\" # for now\nthreads = 1\n",
    );
    expect(&mut use_preset(&sandbox, &["balanced", "--project"]), 0);
    assert_eq!(
        fs::read_to_string(sandbox.path("project/.config/rankgate.toml")).unwrap(),
        "# ours\n[search]   # how\nrrf_k = 30.0\n\n[models]\n# small is enough\npreset = \"balanced\" # for now\nthreads = 1\n"
    );
}

#[test]
fn a_file_that_is_broken_stays_as_it_is() {
    let sandbox = Sandbox::new();
    for broken in ["[models\npreset = 1", "[models]\npresset = \"x\"\n", "models = 3\n", "\u{0}"] {
        for (file, args) in
            [("home/config.toml", &["slim"][..]), ("project/.config/rankgate.toml", &["slim", "--project"])]
        {
            fs::write(sandbox.path(file), broken).unwrap();
            let (_, err) = expect(&mut use_preset(&sandbox, args), 2);
            assert!(err.contains("config.toml") || err.contains("rankgate.toml"), "{err}");
            assert_eq!(fs::read_to_string(sandbox.path(file)).unwrap(), broken);
            fs::remove_file(sandbox.path(file)).unwrap();
        }
    }
    fs::write(sandbox.path("home/config.toml"), b"# \xff\n").unwrap();
    expect(&mut use_preset(&sandbox, &["slim"]), 2);
    assert_eq!(fs::read(sandbox.path("home/config.toml")).unwrap(), b"# \xff\n");
}

#[test]
fn an_unknown_preset_is_not_written() {
    let sandbox = Sandbox::new();
    let (_, err) = expect(&mut use_preset(&sandbox, &["balancd"]), 2);
    assert!(err.contains("did you mean `balanced`?") && err.contains("nano, slim"), "{err}");
    assert_eq!(names(&sandbox.path("home")), [""; 0]);

    // Known here, but not wherever else the user's settings count.
    sandbox.settings("[models.presets.mine]\nmodel = \"m\"\n");
    let (_, err) = expect(&mut use_preset(&sandbox, &["mine"]), 2);
    assert!(err.contains("known in this project only") && err.contains("--project"), "{err}");
    assert_eq!(names(&sandbox.path("home")), [""; 0]);
    expect(&mut use_preset(&sandbox, &["mine", "--project"]), 0);
}

#[test]
fn what_is_stronger_is_told() {
    let sandbox = Sandbox::new();
    sandbox.settings("[models]\npreset = \"nano\"\n");
    let (out, _) = expect(&mut use_preset(&sandbox, &["slim"]), 0);
    assert!(out.contains("but .config/rankgate.toml of this project is stronger: `nano` is used"), "{out}");
    let (out, _) = expect(use_preset(&sandbox, &["slim", "--project"]).env("RANKGATE_PRESET", "quality"), 0);
    assert!(out.contains("but RANKGATE_PRESET is set and stronger: `quality` is used"), "{out}");
    let (out, _) = expect(use_preset(&sandbox, &["slim"]).env("RANKGATE_PRESET", "slim"), 0);
    assert!(!out.contains("stronger"), "{out}");
}

#[test]
fn many_at_once_leave_a_whole_file() {
    let sandbox = Sandbox::new();
    let comment = format!("# {}\n", "x".repeat(20_000));
    fs::write(sandbox.path("home/config.toml"), &comment).unwrap();
    let children: Vec<_> = ["slim", "balanced", "quality", "nano"]
        .map(|preset| use_preset(&sandbox, &[preset]).stdout(std::process::Stdio::null()).spawn().unwrap())
        .into();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let text = fs::read_to_string(sandbox.path("home/config.toml")).unwrap();
    let set = text.strip_prefix(&format!("{comment}\n[models]\npreset = ")).unwrap();
    assert!(["\"slim\"\n", "\"balanced\"\n", "\"quality\"\n", "\"nano\"\n"].contains(&set), "{set}");
    assert_eq!(names(&sandbox.path("home")), ["config.toml"]);
}
