//! `rankgate models use`: one setting changed, all else in the file kept.

use std::io::Write;
use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, Item, Table, value};

use crate::corpus::write_file;
use crate::error::{Error, ErrorKind, Result};
use crate::models;
use crate::settings::{PROJECT_FILE, Settings, home};

/// Makes `preset` the one of the user, or of the project in `folder`, and says so.
pub(super) fn choose(preset: &str, project: bool, folder: &Path) -> Result<()> {
    let mut settings = Settings::load(folder)?.models;
    settings.find_preset(preset)?;
    let file = if project { folder.join(PROJECT_FILE) } else { home()?.join("config.toml") };
    let old = read(&file)?;
    let new = with_preset(&old, preset).map_err(|e| e.context(file.display()))?;
    let typed: Settings = toml::from_str(&new)
        .map_err(|e| Error::new(ErrorKind::Internal, e.to_string()).context(file.display()))?;
    if !project && typed.models.find_preset(preset).is_err() {
        return Err(Error::usage(format!("preset `{preset}` is known in this project only"))
            .with_hint(format!("add --project, or put its table into {}", file.display())));
    }
    if new == old {
        super::super::print(&format!("preset `{preset}` is already set in {}\n", file.display()))?;
    } else {
        create_parent(&file)?;
        write_file(&file, "settings", |out| out.write_all(new.as_bytes()))?;
        super::super::print(&format!("preset `{preset}` is set in {}\n", file.display()))?;
    }
    if let Some(stronger) = stronger(preset, project, folder)? {
        super::super::print(&format!("{stronger}\n"))?;
    }
    settings.preset = preset.into();
    let status = models::presets(&settings)?.into_iter().find(|status| status.name == preset);
    super::super::print(&match status.and_then(|status| status.why_not) {
        None => "it can be used now\n".to_string(),
        Some(why) => format!("it cannot be used now: {why}\n"),
    })
}

fn read(file: &Path) -> Result<String> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(text),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(e) => Err(Error::io("read the settings", file, e)),
    }
}

/// The folder of `file`, made if need be.
fn create_parent(file: &Path) -> Result<()> {
    let folder: PathBuf = file.parent().unwrap_or(Path::new(".")).into();
    std::fs::create_dir_all(&folder).map_err(|e| Error::io("create the folder", &folder, e))
}

/// `text` with `preset` under `[models]`; comments, order and everything else stay.
fn with_preset(text: &str, preset: &str) -> Result<String> {
    let mut document: DocumentMut =
        text.parse().map_err(|e: toml_edit::TomlError| Error::input(e.to_string().trim_end()))?;
    if !document.contains_key("models") {
        let mut table = Table::new();
        // What stands at the end of the file stays before the new table.
        let end = document.trailing().as_str().unwrap_or_default().to_string();
        if !end.is_empty() {
            table.decor_mut().set_prefix(format!("{end}\n"));
            document.set_trailing("");
        }
        document.insert("models", Item::Table(table));
    }
    let Some(models) = document.get_mut("models").and_then(Item::as_table_like_mut) else {
        return Err(Error::input("`models` is not a table"));
    };
    match models.get_mut("preset").and_then(Item::as_value_mut) {
        Some(old) => {
            // What stands around the value, a comment behind it for one, stays where it is.
            let around = old.decor().clone();
            *old = preset.into();
            *old.decor_mut() = around;
        }
        None => {
            models.insert("preset", value(preset));
        }
    }
    let new = document.to_string();
    // The writer ends its lines in one way; the file keeps its own.
    Ok(if text.contains("\r\n") { new.replace("\r\n", "\n").replace('\n', "\r\n") } else { new })
}

/// What is stronger than the file that was written, if it names another preset.
fn stronger(preset: &str, project: bool, folder: &Path) -> Result<Option<String>> {
    let variable = std::env::var("RANKGATE_PRESET").ok().filter(|set| !set.is_empty());
    if let Some(set) = variable {
        let overrides = set != preset;
        return Ok(overrides.then(|| format!("but RANKGATE_PRESET is set and stronger: `{set}` is used")));
    }
    if project {
        return Ok(None);
    }
    let file = folder.join(PROJECT_FILE);
    let table: toml::Table = toml::from_str(&read(&file)?)
        .map_err(|e| Error::input(e.to_string().trim_end()).context(file.display()))?;
    let set = table.get("models").and_then(|models| models.get("preset")).and_then(toml::Value::as_str);
    Ok(set.filter(|set| *set != preset).map(|set| {
        format!(
            "but {PROJECT_FILE} of this project is stronger: `{set}` is used here (change it with --project)"
        )
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_preset_changes() {
        let cases = [
            ("", "[models]\npreset = \"slim\"\n"),
            ("# top\n", "# top\n\n[models]\npreset = \"slim\"\n"),
            (
                "# top\n[models] # of models\nthreads = 2 # two\npreset = \"nano\"   # small\n\n[search]\nrrf_k = 60.0\n",
                "# top\n[models] # of models\nthreads = 2 # two\npreset = \"slim\"   # small\n\n[search]\nrrf_k = 60.0\n",
            ),
            ("models.preset = 'nano' # here\n", "models.preset = \"slim\" # here\n"),
            ("models = { threads = 1 }\n", "models = { threads = 1 , preset = \"slim\" }\n"),
        ];
        for (old, new) in cases {
            assert_eq!(with_preset(old, "slim").expect("parses"), new);
            assert_eq!(with_preset(new, "slim").expect("parses"), new, "again");
        }
        let windows = with_preset("[models] # x\r\nthreads = 1\r\n\r\n[search]\r\n", "slim").expect("parses");
        assert_eq!(windows, "[models] # x\r\nthreads = 1\r\npreset = \"slim\"\r\n\r\n[search]\r\n");
        let of_others = "[models.presets.mine]\nmodel = \"m\"\n\n# last\n[search]\n";
        let new = with_preset(of_others, "mine").expect("parses");
        let settings: Settings = toml::from_str(&new).expect("settings");
        assert_eq!(settings.models.preset, "mine");
        assert!(
            new.contains("[models.presets.mine]\nmodel = \"m\"") && new.contains("# last\n[search]"),
            "{new}"
        );
    }

    #[test]
    fn what_is_not_settings_is_refused() {
        for broken in ["[models", "models = 3", "[[models]]\n", "preset = \"a\"\npreset = \"b\""] {
            assert_eq!(with_preset(broken, "slim").expect_err(broken).kind(), ErrorKind::Input);
        }
    }
}
