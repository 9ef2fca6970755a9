//! `rankgate schemas`: writes the published JSON schemas from the types.

use std::path::PathBuf;
use std::process::ExitCode;

use schemars::{JsonSchema, Schema, schema_for};

use crate::error::{Error, Result};

/// Write the JSON schema of every published format into a folder.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Folder to write to.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Writes one file a format; unchanged files are left alone.
pub fn run(args: Args) -> Result<ExitCode> {
    std::fs::create_dir_all(&args.folder).map_err(|e| Error::io("create the folder", &args.folder, e))?;
    for (name, schema) in all() {
        let path = args.folder.join(format!("{name}.schema.json"));
        if std::fs::read_to_string(&path).is_ok_and(|old| old == schema) {
            continue;
        }
        std::fs::write(&path, schema).map_err(|e| Error::io("write", &path, e))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Every published format: file stem and schema.
fn all() -> Vec<(&'static str, String)> {
    vec![
        ("ask", schema::<super::ask::Output>()),
        ("bench-candidates", schema::<crate::benchmarks::candidates::Artefact>()),
        ("bench-cjk-lexical", schema::<super::bench::cjk_lexical::Output>()),
        ("bench-delta", schema::<crate::benchmarks::candidates::Delta>()),
        ("bench-diff", schema::<crate::benchmarks::rankings::Changes>()),
        ("bench-publish", schema::<super::bench::publish::Output>()),
        ("doctor", schema::<super::doctor::Output>()),
        ("eval-qrels", schema::<super::eval::qrels::Output>()),
        ("expansion", pretty(&crate::pipeline::expansion::schema())),
        ("gate", schema::<crate::gate::GateReport>()),
        ("metrics", schema::<crate::metrics::Report>()),
        ("replay", schema::<super::eval::replay::Output>()),
        ("run-record", schema::<crate::record::RunRecord>()),
        ("score", schema::<super::score::Output>()),
        ("search", schema::<super::search::Output>()),
        ("settings", schema::<crate::settings::Settings>()),
    ]
}

fn schema<T: JsonSchema>() -> String {
    pretty(&schema_for!(T))
}

fn pretty(schema: &Schema) -> String {
    let mut text = serde_json::to_string_pretty(schema).expect("a schema is plain JSON");
    text.push('\n');
    text
}
