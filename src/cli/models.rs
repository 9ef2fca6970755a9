//! `rankgate models`: what there is, fetching it, checking it.

use std::process::ExitCode;

use serde_json::json;

use crate::error::{Result, exit};
use crate::models::inventory::{self, ModelStatus, State};
use crate::models::models_folder;
use crate::models::progress::size;
use crate::settings::{ModelSettings, Settings};

/// List, fetch and verify models
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Show every model of the catalogue and of the settings, and whether it is here
    List {
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Fetch models, by default those that the settings need; damaged files are replaced
    Fetch {
        /// Names, as `rankgate models list` shows them
        #[arg(value_name = "NAME", conflicts_with = "all")]
        names: Vec<String>,
        /// Fetch every model of the catalogue and of the settings
        #[arg(long)]
        all: bool,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Hash every file again; exit with 1 when one is damaged
    Verify {
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
}

/// Runs `rankgate models …`. Exit code 1 says that `verify` found damage.
pub fn run(command: Command) -> Result<ExitCode> {
    let settings = Settings::load(
        &std::env::current_dir()
            .map_err(|e| crate::error::Error::io("read", std::path::Path::new("."), e))?,
    )?
    .models;
    match command {
        Command::List { json } => {
            show(&inventory::list(&settings)?, json)?;
            Ok(ExitCode::from(exit::PASS))
        }
        Command::Fetch { names, all, json } => {
            let fetched = fetch(names, all, &settings)?;
            show(&fetched, json)?;
            Ok(ExitCode::from(exit::PASS))
        }
        Command::Verify { json } => {
            let models = inventory::verify(&settings)?;
            show(&models, json)?;
            let damaged: Vec<&ModelStatus> = models.iter().filter(|m| m.state == State::Damaged).collect();
            if damaged.is_empty() {
                return Ok(ExitCode::from(exit::PASS));
            }
            if !json {
                let names: Vec<&str> = damaged.iter().map(|model| model.name.as_str()).collect();
                super::print(&format!("\nto repair: rankgate models fetch {}\n", names.join(" ")))?;
            }
            Ok(ExitCode::from(exit::GATE_FAILED))
        }
    }
}

fn fetch(names: Vec<String>, all: bool, settings: &ModelSettings) -> Result<Vec<ModelStatus>> {
    let names = match (all, names.is_empty()) {
        (true, _) => inventory::list(settings)?.into_iter().map(|model| model.name).collect(),
        (false, true) => inventory::needed(settings),
        (false, false) => names,
    };
    names.iter().map(|name| inventory::fetch(name, settings)).collect()
}

fn show(models: &[ModelStatus], as_json: bool) -> Result<()> {
    if as_json {
        let document = json!({ "version": 1, "folder": models_folder()?, "models": models });
        return super::print(&format!("{document:#}\n"));
    }
    let mut text = String::new();
    let width = models.iter().map(|model| model.name.len()).max().unwrap_or(0);
    for model in models {
        let mark = if model.configured { '*' } else { ' ' };
        let state = match model.state {
            State::Missing => "missing",
            State::Present => "present",
            State::Verified => "verified",
            State::Damaged => "DAMAGED",
        };
        text.push_str(&format!(
            "{mark} {:width$}  {:13}  {:>8}  {:10}  {state:8}  {}\n",
            model.name,
            model.role,
            model.size.map_or("?".into(), size),
            model.licence,
            model.source,
        ));
        for problem in &model.problems {
            text.push_str(&format!("    {problem}\n"));
        }
    }
    text.push_str(&format!("* used by the settings; in {}\n", models_folder()?.display()));
    super::print(&text)
}
