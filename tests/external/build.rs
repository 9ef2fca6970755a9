//! Finds `evals/**/*.eval.rs` and writes the list that `rankgate::evals!()` takes in.
//!
//! A crate with evals of its own copies this file: it needs nothing but the standard library.

use std::path::{Path, PathBuf};
use std::{env, fs};

pub fn main() {
    println!("cargo::rerun-if-changed=evals");
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let mut files = Vec::new();
    find(&root.join("evals"), &mut files);
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
}

fn find(folder: &Path, found: &mut Vec<PathBuf>) {
    // Without a folder there are no evals.
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            find(&path, found);
        } else if path.to_string_lossy().ends_with(".eval.rs") {
            found.push(path);
        }
    }
}
