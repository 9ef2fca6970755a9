//! The layers of the crate are a promise: a module imports only from lower numbers, never from its own.

use std::fs;
use std::path::Path;

/// Modules from the ground up. `lib.rs` lists them in the same order.
const LAYERS: &[(u32, &str)] = &[
    (1, "error"),
    (2, "corpus"),
    (2, "settings"),
    (2, "text"),
    (3, "metrics"),
    (3, "trace"),
    (4, "record"),
    (5, "store"),
    (6, "models"),
    (7, "pipeline"),
    (7, "harness"),
    (8, "gate"),
    (8, "replay"),
    (9, "benchmarks"),
    (10, "cli"),
];

#[test]
fn imports_point_only_downwards() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    for (layer, module) in LAYERS {
        for (file, text) in sources(&src, module) {
            for import in imports(&text) {
                let target = LAYERS.iter().find(|(_, name)| *name == import);
                match target {
                    Some((_, name)) if name == module => {}
                    Some((below, _)) if below < layer => {}
                    Some((above, name)) => {
                        wrong.push(format!("{file}: layer {layer} imports {name} of layer {above}"));
                    }
                    None => wrong.push(format!("{file}: imports crate::{import}, which has no layer")),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_module_has_a_layer() {
    let lib = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    for line in lib.lines() {
        let Some(module) = line.strip_prefix("pub mod ").and_then(|rest| rest.strip_suffix(';')) else {
            continue;
        };
        // The prelude only re-exports.
        assert!(
            module == "prelude" || LAYERS.iter().any(|(_, name)| *name == module),
            "src/lib.rs: module `{module}` has no layer in tests/layers.rs"
        );
    }
}

#[test]
fn the_reader_of_imports_sees_every_form() {
    let text = "use crate::error::Error;\nuse crate::{corpus::Hit, text::{a, b}};\nlet x = crate::trace::capture(f);\n\
                // crate::comment::only\n";
    assert_eq!(imports(text), ["error", "trace", "corpus", "text"]);
}

/// Every source file of a module: `src/x.rs`, or all below `src/x/`.
fn sources(src: &Path, module: &str) -> Vec<(String, String)> {
    fn walk(path: &Path, found: &mut Vec<(String, String)>) {
        if path.is_dir() {
            for entry in fs::read_dir(path).unwrap() {
                walk(&entry.unwrap().path(), found);
            }
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push((path.display().to_string(), fs::read_to_string(path).unwrap()));
        }
    }
    let mut found = Vec::new();
    for path in [src.join(module), src.join(format!("{module}.rs"))] {
        if path.exists() {
            walk(&path, &mut found);
        }
    }
    assert!(!found.is_empty(), "module `{module}` of the list does not exist");
    found
}

/// The first path segment after each `crate::`, grouped imports included.
fn imports(text: &str) -> Vec<String> {
    let code: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .fold(String::new(), |code, line| code + line + "\n");
    let mut found = Vec::new();
    let mut grouped = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$') {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            let mut depth = 0;
            let mut name = String::new();
            let mut first = true;
            for c in group.chars() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => {
                        grouped.push(std::mem::take(&mut name));
                        first = true;
                    }
                    ':' => first = false,
                    c if depth == 0 && first && (c.is_alphanumeric() || c == '_') => name.push(c),
                    _ => {}
                }
            }
            grouped.push(name);
        } else {
            found.push(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
        }
    }
    found.extend(grouped.into_iter().filter(|name| !name.is_empty()));
    found.retain(|name: &String| name.starts_with(|c: char| c.is_lowercase()));
    found
}
