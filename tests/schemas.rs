//! Published schemas are those of the types.

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn committed_schemas_are_what_the_program_writes() {
    let dir = tempfile::tempdir().unwrap();
    let status =
        Command::new(env!("CARGO_BIN_EXE_rankgate")).arg("schemas").arg(dir.path()).status().unwrap();
    assert!(status.success());
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    let mut count = 0;
    for entry in fs::read_dir(dir.path()).unwrap() {
        let name = entry.unwrap().file_name();
        let written = fs::read_to_string(dir.path().join(&name)).unwrap();
        let known = fs::read_to_string(committed.join(&name)).unwrap_or_default();
        assert!(written == known, "{} is out of date: run `cargo run -- schemas schemas`", name.display());
        count += 1;
    }
    assert_eq!(count, fs::read_dir(&committed).unwrap().count(), "schemas/ holds files that nothing writes");
}
