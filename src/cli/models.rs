//! `rankgate models`: what there is, fetching it, checking it.

use std::process::ExitCode;

use serde_json::json;

use crate::error::{Result, exit};
use crate::models::catalogue::GENERATOR;
use crate::models::inventory::{self, ModelStatus, State};
use crate::models::progress::size;
use crate::models::{self, PresetStatus, models_folder};
use crate::settings::{ModelSettings, Settings};

mod preset;

/// List, fetch and verify models, and choose the generator
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Show every model of the catalogue and of the settings and whether it is here, and every preset and
    /// whether it can be used
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
    /// Choose the preset of the language model: `preset` under `[models]` of the settings
    Use {
        /// A preset's name, as `rankgate models list` shows it
        preset: String,
        /// Write to .config/rankgate.toml of this folder instead of the settings of the user
        #[arg(long)]
        project: bool,
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
    let folder = super::working_folder()?;
    let settings = Settings::load(&folder)?.models;
    match command {
        Command::List { json } => {
            show(&inventory::list(&settings)?, Some(&models::presets(&settings)?), json)?;
            Ok(ExitCode::from(exit::PASS))
        }
        Command::Fetch { names, all, json } => {
            let fetched = fetch(names, all, &settings)?;
            show(&fetched, None, json)?;
            Ok(ExitCode::from(exit::PASS))
        }
        Command::Use { preset, project } => {
            preset::choose(&preset, project, &folder)?;
            Ok(ExitCode::from(exit::PASS))
        }
        Command::Verify { json } => {
            let models = inventory::verify(&settings)?;
            show(&models, None, json)?;
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

fn show(models: &[ModelStatus], presets: Option<&[PresetStatus]>, as_json: bool) -> Result<()> {
    if as_json {
        let mut document = json!({ "version": 1, "folder": models_folder()?, "models": models });
        if let Some(presets) = presets {
            document["presets"] = json!(presets);
        }
        return super::print(&super::json(&document));
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
    let missing = models.iter().any(|model| model.name == GENERATOR && model.state == State::Missing);
    text.push_str(&presets.map(|presets| table_of_presets(presets, missing)).unwrap_or_default());
    super::print(&text)
}

/// The presets; `missing` says that the local one's model is fetched when it is first asked.
fn table_of_presets(presets: &[PresetStatus], missing: bool) -> String {
    let width =
        |column: fn(&PresetStatus) -> &str| presets.iter().map(|p| column(p).len()).max().unwrap_or(0);
    let place = |preset: &PresetStatus| preset.server.clone().unwrap_or("in this process".into());
    let (names, models) = (width(|preset| &preset.name), width(|preset| &preset.model));
    let places = presets.iter().map(|preset| place(preset).len()).max().unwrap_or(0);
    let mut text = String::from("\npresets, chosen with `rankgate models use PRESET`:\n");
    for preset in presets {
        let mark = if preset.configured { '*' } else { ' ' };
        let usable = match &preset.why_not {
            None if missing && preset.server.is_none() => {
                "usable, its model is fetched at the first use".to_string()
            }
            None => "usable".to_string(),
            Some(why) => format!("not usable: {why}"),
        };
        text.push_str(&format!(
            "{mark} {:names$}  {:models$}  {:places$}  {usable}\n",
            preset.name,
            preset.model,
            place(preset)
        ));
    }
    text
}
