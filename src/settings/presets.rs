//! Presets: the generators that a name stands for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ModelSettings;
use crate::error::{Error, Result};

/// The preset that needs no server.
pub const LOCAL_PRESET: &str = "nano";

/// Presets that are there without a table of their own, and the model's name as a local model server lists it.
const ON_THE_SERVER: [(&str, &str); 3] =
    [("slim", "qwen3:1.7b"), ("balanced", "qwen2.5:3b"), ("quality", "qwen3:4b")];

/// Where the model of a preset runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Preset {
    /// In this process: the small model of the catalogue.
    Local,
    /// On a server.
    Server(ServerPreset),
}

/// `[models.presets.NAME]`: a model behind an OpenAI-compatible endpoint. A table with the name of a built-in
/// preset replaces that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerPreset {
    /// The model's name on the server.
    pub model: String,
    /// The endpoint up to and without `/chat/completions`; `server` of `[models]` when absent. No user and no
    /// password: a key comes from `key_variable`.
    #[serde(default)]
    pub base_url: Option<String>,
    /// The environment variable that holds the key. Local servers need none.
    #[serde(default)]
    pub key_variable: Option<String>,
    /// Whether the server can hold an answer to a JSON schema; without, the schema is put into the prompt.
    #[serde(default = "yes")]
    pub json_schema: bool,
    /// US dollars per million tokens read. Stated together with `output_price`.
    #[serde(default)]
    pub input_price: Option<f64>,
    /// US dollars per million tokens written.
    #[serde(default)]
    pub output_price: Option<f64>,
    /// Seconds that an answer may take, retries included, even where the caller would wait longer.
    #[serde(default)]
    pub timeout: Option<f64>,
    /// How often a request is repeated when the server is busy, fails or refuses the connection.
    #[serde(default = "three")]
    pub retries: u32,
}

impl ServerPreset {
    /// The preset of `model` on the server of `[models]`.
    pub fn new(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            base_url: None,
            key_variable: None,
            json_schema: true,
            input_price: None,
            output_price: None,
            timeout: None,
            retries: three(),
        }
    }
}

fn yes() -> bool {
    true
}

fn three() -> u32 {
    3
}

impl ModelSettings {
    /// The names of all presets: the built-in ones from small to large, then those of the settings.
    pub fn preset_names(&self) -> Vec<&str> {
        let mut names = vec![LOCAL_PRESET];
        names.extend(ON_THE_SERVER.iter().map(|(name, _)| *name));
        let own = self.presets.keys().map(String::as_str);
        let added: Vec<&str> = own.filter(|name| !names.contains(name)).collect();
        names.extend(added);
        names
    }

    /// The preset called `name`. Fails when there is none, with the known ones.
    ///
    /// ```
    /// use rankgate::settings::{ModelSettings, Preset};
    ///
    /// let settings = ModelSettings::default();
    /// assert_eq!(settings.find_preset("nano")?, Preset::Local);
    /// assert!(settings.find_preset("slm").unwrap_err().to_string().contains("did you mean `slim`?"));
    /// # Ok::<(), rankgate::Error>(())
    /// ```
    pub fn find_preset(&self, name: &str) -> Result<Preset> {
        if let Some(own) = self.presets.get(name) {
            return Ok(Preset::Server(own.clone()));
        }
        if name == LOCAL_PRESET {
            return Ok(Preset::Local);
        }
        if let Some((_, model)) = ON_THE_SERVER.iter().find(|(known, _)| *known == name) {
            return Ok(Preset::Server(ServerPreset::new(*model)));
        }
        let known = self.preset_names();
        let near = known
            .iter()
            .map(|known| (strsim::normalized_damerau_levenshtein(name, known), known))
            .filter(|(likeness, _)| *likeness > 0.5)
            .max_by(|a, b| a.0.total_cmp(&b.0));
        let mean = near.map_or(String::new(), |(_, known)| format!("did you mean `{known}`? "));
        Err(Error::not_found(format!("preset `{name}` is not known")).with_hint(format!(
            "{mean}known are {}; add others under [models.presets.NAME] in {}",
            known.join(", "),
            super::PROJECT_FILE
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_replaces_a_built_in_preset_and_adds_others() {
        let settings: ModelSettings = toml::from_str(
            "[presets.slim]\nmodel = \"small\"\nbase_url = \"https://example.org/v1\"\n[presets.mine]\nmodel = \"m\"\n",
        )
        .expect("parses");
        assert_eq!(settings.preset_names(), ["nano", "slim", "balanced", "quality", "mine"]);
        let Preset::Server(slim) = settings.find_preset("slim").expect("known") else { panic!("a server") };
        assert_eq!((slim.model.as_str(), slim.json_schema, slim.retries), ("small", true, 3));
        assert_eq!(
            settings.find_preset("quality").expect("known"),
            Preset::Server(ServerPreset::new("qwen3:4b"))
        );
    }

    #[test]
    fn an_unknown_preset_is_answered_with_the_known_ones() {
        let error = ModelSettings::default().find_preset("zzz").expect_err("unknown").to_string();
        assert!(error.contains("`zzz`") && error.contains("nano, slim, balanced, quality"), "{error}");
        assert!(!error.contains("did you mean"), "{error}");
    }
}
