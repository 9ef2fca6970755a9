//! Presets: which generator a name stands for, and whether it can be used here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::Generator;
use super::cached::Cached;
use super::client::{Client, without_credentials};
use super::server::ServerGenerator;
use crate::error::{Error, ErrorKind, Result};
use crate::models::catalogue::GENERATOR;
use crate::models::inventory::{self, State};
use crate::settings::{ModelSettings, Preset, ServerPreset};
use crate::store::cache::Cache;

/// How long a server has to say which models it has.
const ASK: Duration = Duration::from_secs(1);

/// The generator of the preset `name`; fails as [`generator`](super::generator).
pub(super) fn open(
    name: &str,
    settings: &ModelSettings,
    cache: Option<Arc<Cache>>,
) -> Result<Arc<dyn Generator>> {
    match settings.find_preset(name)? {
        Preset::Local => local(settings, cache),
        Preset::Server(preset) => {
            Ok(Arc::new(Cached::new(ServerGenerator::new(name, preset, settings)?, cache)))
        }
    }
}

#[cfg(feature = "local-llm")]
fn local(settings: &ModelSettings, cache: Option<Arc<Cache>>) -> Result<Arc<dyn Generator>> {
    Ok(Arc::new(Cached::new(super::local::LocalGenerator::new(settings)?, cache)))
}

#[cfg(not(feature = "local-llm"))]
fn local(settings: &ModelSettings, _: Option<Arc<Cache>>) -> Result<Arc<dyn Generator>> {
    Err(crate::models::catalogue::unknown(GENERATOR, settings))
}

/// A preset as it stands on this machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PresetStatus {
    /// The name that settings use.
    pub name: String,
    /// The model's name in the catalogue or on the server.
    pub model: String,
    /// The server's address, without credentials; `None` for a model in this process.
    pub server: Option<String>,
    /// Whether the settings use it.
    pub configured: bool,
    /// Whether it can be used now.
    pub usable: bool,
    /// Why it cannot be used, and the repair.
    pub why_not: Option<String>,
}

/// Every preset, built-in and of the settings, and whether it can be used now.
///
/// Each server is asked once for its models, all at the same time and for a second at most; offline, only servers
/// on this machine are. Fails when no home folder is known.
pub fn presets(settings: &ModelSettings) -> Result<Vec<PresetStatus>> {
    let names = settings.preset_names();
    let presets: Vec<(&str, Preset)> =
        names.into_iter().map(|name| Ok((name, settings.find_preset(name)?))).collect::<Result<_>>()?;
    let servers = ask_servers(&presets, settings);
    presets
        .into_iter()
        .map(|(name, preset)| {
            let (model, server, why_not) = match preset {
                Preset::Local => (GENERATOR.into(), None, local_why_not(settings)?),
                Preset::Server(preset) => {
                    let said = servers.get(&question(&preset, settings));
                    let why_not = server_why_not(name, &preset, settings, said);
                    let url = without_credentials(base_url(&preset, settings));
                    (preset.model, Some(url), why_not)
                }
            };
            let configured = name == settings.preset;
            Ok(PresetStatus {
                name: name.into(),
                model,
                server,
                configured,
                usable: why_not.is_none(),
                why_not,
            })
        })
        .collect()
}

fn local_why_not(settings: &ModelSettings) -> Result<Option<String>> {
    if !cfg!(feature = "local-llm") {
        return Ok(Some("this program was built without the feature `local-llm`".into()));
    }
    let model = inventory::list(settings)?.into_iter().find(|model| model.name == GENERATOR);
    Ok(match model.map(|model| model.state) {
        None => Some(format!("`{GENERATOR}` is not in the catalogue")),
        Some(State::Present | State::Verified) => None,
        Some(State::Damaged) => Some(format!("is damaged: rankgate models fetch {GENERATOR}")),
        Some(State::Missing) if settings.offline && settings.local_folder.is_none() => Some(format!(
            "is not on this machine, and the network is forbidden: unset RANKGATE_OFFLINE, and rankgate models \
             fetch {GENERATOR}"
        )),
        // Fetched when it is first asked.
        Some(State::Missing) => None,
    })
}

fn base_url<'a>(preset: &'a ServerPreset, settings: &'a ModelSettings) -> &'a str {
    preset.base_url.as_deref().unwrap_or(&settings.server)
}

/// Address and name of the key: what makes one question to a server.
type Question = (String, Option<String>);

fn question(preset: &ServerPreset, settings: &ModelSettings) -> Question {
    (base_url(preset, settings).trim_end_matches('/').into(), preset.key_variable.clone())
}

/// What a server has: its models, or `None` when it does not tell.
type Models = Option<Vec<String>>;

/// Asks each server of `presets` once.
fn ask_servers(presets: &[(&str, Preset)], settings: &ModelSettings) -> BTreeMap<Question, Result<Models>> {
    let mut answers = BTreeMap::new();
    for (_, preset) in presets {
        if let Preset::Server(preset) = preset {
            answers.insert(question(preset, settings), Ok(None));
        }
    }
    std::thread::scope(|scope| {
        for ((url, key_variable), answer) in &mut answers {
            scope.spawn(move || *answer = ask(url, key_variable.as_deref(), settings.offline));
        }
    });
    answers
}

fn ask(base_url: &str, key_variable: Option<&str>, offline: bool) -> Result<Models> {
    let client = Client::new(base_url, key_variable, offline)?;
    let key = client.key()?;
    let (status, body) = client.get("/models", &key, ASK)?;
    match status.as_u16() {
        200..=299 => {}
        // It is there, and has no such route.
        404 | 405 | 501 => return Ok(None),
        401 | 403 => {
            let why = key_variable
                .map_or("wants a key: name its variable as `key_variable`".into(), |variable| {
                    format!("refuses the key in {variable}")
                });
            return Err(Error::new(ErrorKind::Access, format!("{} {why}", client.base_url())));
        }
        _ => return Err(Error::new(ErrorKind::Network, format!("{} answers {status}", client.base_url()))),
    }
    let listed = serde_json::from_str::<Value>(&body).ok().and_then(|answer| {
        let models = answer.get("data")?.as_array()?;
        Some(models.iter().filter_map(|model| Some(key.quote(model.get("id")?.as_str()?))).collect())
    });
    listed.map(Some).ok_or_else(|| {
        Error::new(ErrorKind::Model, format!("{}/models gives no list of models", client.base_url()))
            .with_hint("check the address: most end in /v1")
    })
}

fn server_why_not(
    name: &str,
    preset: &ServerPreset,
    settings: &ModelSettings,
    said: Option<&Result<Models>>,
) -> Option<String> {
    if let Err(error) = ServerGenerator::new(name, preset.clone(), settings) {
        return Some(error.report());
    }
    let models = match said? {
        Err(error) => return Some(error.report()),
        Ok(None) => return None,
        Ok(Some(models)) => models,
    };
    // Some servers add the tag that is meant by none.
    let same = |listed: &String| listed.strip_suffix(":latest").unwrap_or(listed) == preset.model;
    if models.iter().any(|listed| *listed == preset.model || same(listed)) {
        return None;
    }
    let mut has = models.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ");
    if models.len() > 5 {
        has.push_str(&format!(" and {} more", models.len() - 5));
    }
    let has = if has.is_empty() { "it has none".into() } else { format!("it has {has}") };
    Some(format!("the server has no model `{}` ({has})", preset.model))
}
