//! rankgate's build script: the list of its evals, which any crate with evals makes with `build.rs` alone, and the hash
//! of the sources that decide a ranking.

use std::path::{Path, PathBuf};
use std::{env, fs};

#[path = "../build.rs"]
mod evals;

/// What a ranking is computed by: rankgate notes the hash of it with each captured search. A change of these makes
/// the crate compile anew in any case; one of anything else leaves the hash, and what was compiled, as it is.
const RANKING: [&str; 4] = ["src/pipeline", "src/text", "src/models", "src/store/index.rs"];

fn main() {
    evals::main();
    println!("cargo::rerun-if-changed=build.rs");
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let mut files = Vec::new();
    for part in RANKING {
        println!("cargo::rerun-if-changed={part}");
        list(&root.join(part), &mut files);
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

/// A file, or all files below a folder.
fn list(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_file() {
        return found.push(path.to_path_buf());
    }
    let entries = fs::read_dir(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    entries.flatten().for_each(|entry| list(&entry.path(), found));
}
