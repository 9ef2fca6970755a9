//! Finds `evals/**/*.eval.rs` and writes the list that `rankgate::evals!()` takes in; hashes what ranks.
//!
//! A crate with evals of its own copies this file: it needs nothing but the standard library.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=evals");
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let mut files = Vec::new();
    list(&root.join("evals"), ".eval.rs", &mut files);
    files.sort();

    let (mut modules, mut calls) = (String::new(), String::new());
    for (i, file) in files.iter().enumerate() {
        let file = file.to_str().unwrap_or_else(|| panic!("{}: the path is not UTF-8", file.display()));
        let path =
            file[root.to_str().map_or(0, str::len)..].trim_start_matches(['/', '\\']).replace('\\', "/");
        let stem = path.trim_start_matches("evals/").trim_end_matches(".eval.rs");
        let name = stem.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        // Numbered, so that `a-b` and `a_b` stay apart, and a name may be a keyword or begin with a digit.
        modules += &format!("#[path = {file:?}]\nmod eval_{i}_{name};\n");
        calls += &format!("    suite.file({path:?}, eval_{i}_{name}::register);\n");
    }
    // The parameter is unused in a crate that has no evals yet.
    let list = format!(
        "{modules}\n#[allow(unused_variables)]\nfn register_all(suite: &mut rankgate::harness::Suite) {{\n{calls}}}\n"
    );
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("evals.rs"), list).expect("OUT_DIR can be written");
    ranking_sources(&root);
}

/// What a ranking is computed by: rankgate notes the hash of it with each captured search. A change of these makes
/// the crate compile anew in any case; one of anything else leaves the hash, and what was compiled, as it is.
const RANKING: [&str; 4] = ["src/pipeline", "src/text", "src/models", "src/store/index.rs"];

/// Sets `RANKGATE_RANKING_SOURCES`. A crate with evals of its own has no such files, and gets no such variable.
fn ranking_sources(root: &Path) {
    let mut files = Vec::new();
    for part in RANKING.map(|part| root.join(part)) {
        if !part.exists() {
            return;
        }
        println!("cargo::rerun-if-changed={}", part.display());
        list(&part, "", &mut files);
    }
    files.sort();
    // FNV-1a of 64 bits: the standard library has no hash that stays the same. Line ends depend on the checkout.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for file in files {
        let bytes = fs::read(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        for byte in bytes.into_iter().filter(|byte| *byte != b'\r').chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    println!("cargo::rustc-env=RANKGATE_RANKING_SOURCES={hash:016x}");
}

/// A file, or all files below a folder, whose names end with `ending`.
fn list(path: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    if path.is_file() && path.to_string_lossy().ends_with(ending) {
        found.push(path.to_path_buf());
    }
    // Without a folder there are no evals.
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        list(&entry.path(), ending, found);
    }
}
