//! Settings and where they come from.
//!
//! Order, strongest first: a flag (applied by the caller), a `RANKGATE_*` variable, `.config/rankgate.toml`
//! of the project, `config.toml` in `RANKGATE_HOME`, the default. A file that names an unknown key is refused.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

mod eval;
mod origin;
mod presets;

pub use eval::{CONTRIBUTOR_MODE, CaptureState, EvalSettings};
pub use origin::Origin;
pub use presets::{LOCAL_PRESET, Preset, ServerPreset};

/// Where the project's settings file is, relative to the project's folder.
pub const PROJECT_FILE: &str = ".config/rankgate.toml";

/// The effective settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Which models run, and how.
    pub models: ModelSettings,
    /// How a search works.
    pub search: SearchSettings,
    /// What is kept of searches.
    pub eval: EvalSettings,
}

/// `[models]`: which models run, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelSettings {
    /// The embedder: a name of the catalogue or of `[models.custom.…]`. Variable `RANKGATE_EMBEDDER`.
    pub embedder: String,
    /// A cross-encoder of `[models.custom.…]`; empty for none. Variable `RANKGATE_RERANKER`.
    pub reranker: String,
    /// Whether what tells languages apart is taken out of vectors, where it was measured for the embedder: texts that
    /// mean the same are then near each other in any language. Another value is another model to an index.
    pub language_neutral: bool,
    /// The generator: `nano`, `slim`, `balanced`, `quality` or one of `[models.presets.…]`. Variable `RANKGATE_PRESET`.
    pub preset: String,
    /// Where the presets `slim`, `balanced` and `quality` run: an OpenAI-compatible endpoint. Variable
    /// `RANKGATE_SERVER`.
    pub server: String,
    /// Threads inside one model; 0 takes one under parallel tests, else two or the machine's cores, whichever
    /// is less. The local generator takes one, or, when this is no less, as many as `CANDLE_NUM_THREADS` says, by
    /// default one a core. Variable `RANKGATE_THREADS`.
    pub threads: usize,
    /// Never use the network. Variable `RANKGATE_OFFLINE`.
    pub offline: bool,
    /// Folder looked into for model files before anything is fetched. Variable `RANKGATE_MODELS_FROM`.
    pub local_folder: Option<PathBuf>,
    /// The ONNX Runtime library to load instead of the pinned one. Variable `ORT_DYLIB_PATH`.
    pub runtime: Option<PathBuf>,
    /// Models of the Hugging Face hub, by the name they get here.
    pub custom: BTreeMap<String, CustomModel>,
    /// Generators on servers, by the name they get here.
    pub presets: BTreeMap<String, ServerPreset>,
}

impl Default for ModelSettings {
    fn default() -> Self {
        Self {
            embedder: "multilingual-e5-small".into(),
            reranker: String::new(),
            language_neutral: true,
            preset: LOCAL_PRESET.into(),
            server: "http://127.0.0.1:11434/v1".into(),
            threads: 0,
            offline: false,
            local_folder: None,
            runtime: None,
            custom: BTreeMap::new(),
            presets: BTreeMap::new(),
        }
    }
}

/// `[models.custom.NAME]`: a hub repository with an ONNX model and `tokenizer.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CustomModel {
    /// Hub repository, `owner/name`.
    pub repo: String,
    /// Branch, tag or commit. A commit pins the model.
    #[serde(default = "main_branch")]
    pub revision: String,
    /// The model's file in the repository.
    #[serde(default = "default_onnx_file")]
    pub file: String,
    /// What the model is for.
    #[serde(default)]
    pub role: ModelRole,
    /// How token vectors become one vector.
    #[serde(default)]
    pub pooling: Pooling,
    /// Put before every query.
    #[serde(default)]
    pub query_prefix: String,
    /// Put before every passage.
    #[serde(default)]
    pub passage_prefix: String,
    /// Longest input in tokens, special tokens included.
    #[serde(default = "default_max_tokens")]
    pub max_tokens: usize,
}

fn main_branch() -> String {
    "main".into()
}

fn default_onnx_file() -> String {
    "onnx/model.onnx".into()
}

fn default_max_tokens() -> usize {
    512
}

/// What a configured model is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ModelRole {
    /// Texts to vectors.
    #[default]
    Embedder,
    /// Query and passage to one score.
    CrossEncoder,
}

/// How token vectors become one vector.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pooling {
    /// The mean over all tokens of the text.
    #[default]
    Mean,
    /// The first token's vector.
    Cls,
}

/// `[search]`: how a search works.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SearchSettings {
    /// How the lexical and the vector list become one. Variable `RANKGATE_FUSION`.
    pub fusion: Fusion,
    /// The constant k of reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009), at least 0.
    pub rrf_k: f64,
    /// Documents taken from each lane before fusion, at least 1.
    pub candidates: usize,
    /// Documents of the fused list that a reranker sees.
    pub rerank_depth: usize,
    /// Follow Markdown and wiki links one hop from the best documents.
    pub graph: bool,
    /// How much work a hybrid search does. Variable `RANKGATE_THOROUGHNESS`.
    pub thoroughness: Thoroughness,
    /// Seconds that an expansion may take before the plain query is searched.
    pub expand_seconds: u32,
}

impl Default for SearchSettings {
    fn default() -> Self {
        Self {
            fusion: Fusion::Adaptive,
            rrf_k: 60.0,
            candidates: 100,
            rerank_depth: 20,
            graph: false,
            thoroughness: Thoroughness::Balanced,
            expand_seconds: 10,
        }
    }
}

impl SearchSettings {
    /// Whether these numbers mean anything.
    fn check(&self) -> Result<()> {
        if !(self.rrf_k >= 0.0 && self.rrf_k.is_finite()) {
            let what = format!("rrf_k is {}, which is no constant to add to a rank", self.rrf_k);
            return Err(Error::usage(what).with_hint("60 is usual"));
        }
        if self.candidates == 0 {
            return Err(Error::usage("candidates is 0: nothing would be found").with_hint("100 is usual"));
        }
        Ok(())
    }

    /// How long an expansion may take.
    pub fn expand_within(&self) -> Duration {
        Duration::from_secs(self.expand_seconds.into())
    }
}

/// How much work a hybrid search does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Thoroughness {
    /// Words only, nothing reranked.
    Fast,
    /// Words and meaning, fused and reranked.
    #[default]
    Balanced,
    /// The query is expanded first, and more documents are reranked.
    Thorough,
}

/// How the lexical and the vector list become one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fusion {
    /// Weighted by how much the collection's words say about the query.
    #[default]
    Adaptive,
    /// Reciprocal rank fusion, both lanes equal.
    Rrf,
}

impl Settings {
    /// The settings in force for a project in `project`: both files read, variables applied.
    ///
    /// Fails when a file cannot be read or does not parse (naming file and line), or when a variable has a
    /// value that its setting cannot take.
    pub fn load(project: &Path) -> Result<Self> {
        let mut table = toml::Table::new();
        for file in [home()?.join("config.toml"), project.join(PROJECT_FILE)] {
            if let Some(layer) = read_table(&file)? {
                merge(&mut table, layer);
            }
        }
        let mut settings: Self = table
            .try_into()
            .map_err(|e: toml::de::Error| Error::input(e.message().to_string()).context(PROJECT_FILE))?;
        settings.apply_variables(|name| std::env::var(name).ok())?;
        settings.search.check().map_err(|e| e.context("[search]"))?;
        Ok(settings)
    }

    fn apply_variables(&mut self, variable: impl Fn(&str) -> Option<String>) -> Result<()> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        if let Some(name) = set("RANKGATE_EMBEDDER") {
            self.models.embedder = name;
        }
        if let Some(name) = set("RANKGATE_RERANKER") {
            self.models.reranker = name;
        }
        if let Some(name) = set("RANKGATE_PRESET") {
            self.models.preset = name;
        }
        if let Some(url) = set("RANKGATE_SERVER") {
            self.models.server = url;
        }
        if let Some(value) = set("RANKGATE_THREADS") {
            self.models.threads = value.parse().map_err(|_| {
                Error::usage(format!("RANKGATE_THREADS: `{value}` is not a number of threads"))
            })?;
        }
        if let Some(value) = set("RANKGATE_OFFLINE") {
            self.models.offline = flag("RANKGATE_OFFLINE", &value)?;
        }
        if let Some(folder) = set("RANKGATE_MODELS_FROM") {
            self.models.local_folder = Some(folder.into());
        }
        if let Some(library) = set("ORT_DYLIB_PATH") {
            self.models.runtime = Some(library.into());
        }
        if let Some(value) = set("RANKGATE_FUSION") {
            self.search.fusion = match value.as_str() {
                "adaptive" => Fusion::Adaptive,
                "rrf" => Fusion::Rrf,
                _ => return Err(Error::usage(format!("RANKGATE_FUSION: `{value}` is not adaptive or rrf"))),
            };
        }
        if let Some(value) = set("RANKGATE_THOROUGHNESS") {
            self.search.thoroughness = match value.as_str() {
                "fast" => Thoroughness::Fast,
                "balanced" => Thoroughness::Balanced,
                "thorough" => Thoroughness::Thorough,
                _ => {
                    let what = format!("RANKGATE_THOROUGHNESS: `{value}` is not fast, balanced or thorough");
                    return Err(Error::usage(what));
                }
            };
        }
        Ok(())
    }
}

/// Reads `1`, `true`, `yes`, `on` and their opposites.
fn flag(name: &str, value: &str) -> Result<bool> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err(Error::usage(format!("{name}: `{value}` is neither 1 nor 0"))),
    }
}

fn read_table(file: &Path) -> Result<Option<toml::Table>> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::io("read the settings", file, e)),
    };
    // Typed once on its own, so that an error names the file and the line in it.
    toml::from_str::<Settings>(&text)
        .map_err(|e| Error::input(e.to_string().trim_end()).context(file.display()))?;
    toml::from_str(&text).map(Some).map_err(|e| Error::input(e.to_string()).context(file.display()))
}

/// Puts `layer` over `base`, table by table.
fn merge(base: &mut toml::Table, layer: toml::Table) {
    for (key, value) in layer {
        match (base.get_mut(&key), value) {
            (Some(toml::Value::Table(below)), toml::Value::Table(above)) => merge(below, above),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

/// The folder of user data: `RANKGATE_HOME`, else the platform's data folder for `rankgate`.
///
/// Fails when neither is known (no `HOME`).
pub fn home() -> Result<PathBuf> {
    if let Some(home) = std::env::var_os("RANKGATE_HOME").filter(|home| !home.is_empty()) {
        return std::path::absolute(&home).map_err(|e| Error::io("resolve", Path::new(&home), e));
    }
    directories::ProjectDirs::from("", "", "rankgate")
        .map(|dirs| dirs.data_dir().to_path_buf())
        .ok_or_else(|| Error::usage("no home folder is known").with_hint("set RANKGATE_HOME"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(dir: &Path, text: &str) {
        std::fs::create_dir_all(dir.join(".config")).expect("creates");
        std::fs::write(dir.join(PROJECT_FILE), text).expect("writes");
    }

    #[test]
    fn an_unknown_key_is_refused_with_file_and_line() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        write(dir.path(), "[models]\nembeder = \"x\"\n");
        let error = Settings::load(dir.path()).expect_err("a typing error").report();
        assert!(
            error.contains("rankgate.toml") && error.contains("embeder") && error.contains("line 2"),
            "{error}"
        );
    }

    #[test]
    fn numbers_without_a_meaning_are_refused() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        for (line, said) in [
            ("rrf_k = -60.0", "rrf_k is -60"),
            ("rrf_k = nan", "rrf_k is NaN"),
            ("candidates = 0", "candidates is 0"),
        ] {
            write(dir.path(), &format!("[search]\n{line}\n"));
            let error = Settings::load(dir.path()).expect_err(line).report();
            assert!(error.contains(said) && error.contains("usual"), "{error}");
        }
    }

    #[test]
    fn variables_beat_files() {
        let mut settings: Settings =
            toml::from_str("[models]\nthreads = 4\n[search]\nfusion = \"rrf\"").expect("parses");
        settings
            .apply_variables(|name| match name {
                "RANKGATE_THREADS" => Some("1".into()),
                "RANKGATE_OFFLINE" => Some("yes".into()),
                _ => None,
            })
            .expect("applies");
        assert_eq!((settings.models.threads, settings.models.offline), (1, true));
        assert_eq!(settings.search.fusion, Fusion::Rrf);
        assert!(settings.apply_variables(|_| Some("maybe".into())).is_err());
    }
}
