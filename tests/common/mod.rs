//! Helpers that the integration tests share.

use std::path::PathBuf;

/// A folder of the public test data, or `None` with a word on stderr when it is not there.
pub fn shared_data(name: &str) -> Option<PathBuf> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data")).join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: no test data in {}", folder.display());
    None
}
