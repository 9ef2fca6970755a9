//! ONNX Runtime, loaded once a process from the library that settings or catalogue name.

use std::path::{Path, PathBuf};

use once_cell::sync::OnceCell;
use ort::environment::Environment;

use super::catalogue::{self, RUNTIME_VERSION};
use super::fetch::{Trust, ensure};
use crate::error::{Error, ErrorKind, Result};
use crate::settings::ModelSettings;

/// The oldest version whose interface the `ort` crate can use as it is built here.
const OLDEST: &str = "1.17";

/// The one environment of the process, and the library it came from. A failure is not kept: the library may
/// have been fetched when the next caller asks.
static LOADED: OnceCell<(PathBuf, Environment)> = OnceCell::new();

/// The runtime, loaded and, when the settings name no library, fetched if need be.
///
/// Fails when the library is missing, for another processor, not ONNX Runtime or too old, and when the
/// process already runs another one.
pub(super) fn environment(settings: &ModelSettings) -> Result<&'static Environment> {
    let library = match &settings.runtime {
        Some(library) => std::path::absolute(library).map_err(|e| Error::io("resolve", library, e))?,
        None => pinned_library(settings)?,
    };
    let (loaded, environment) =
        LOADED.get_or_try_init(|| load(&library).map(|environment| (library.clone(), environment)))?;
    if *loaded != library {
        return Err(Error::usage(format!(
            "{}: this process already runs {}, and only one ONNX Runtime fits into a process",
            library.display(),
            loaded.display()
        ))
        .with_hint("name one library everywhere"));
    }
    Ok(environment)
}

/// What the runtime adds to a fingerprint: the pinned version, or what another library says it is.
pub(super) fn version(settings: &ModelSettings) -> Result<String> {
    match settings.runtime {
        None => Ok(RUNTIME_VERSION.into()),
        Some(_) => environment(settings).map(|_| ort::info().to_string()),
    }
}

fn pinned_library(settings: &ModelSettings) -> Result<PathBuf> {
    let entry = catalogue::runtime().ok_or_else(|| {
        Error::not_found(format!(
            "no ONNX Runtime is pinned for {} on {}",
            std::env::consts::OS,
            std::env::consts::ARCH
        ))
        .with_hint("install ONNX Runtime and name its library in ORT_DYLIB_PATH")
    })?;
    // A library is taken as it comes; its hash is all there is to prove.
    let folder = ensure(entry, settings, Trust::Size, |_, _, _| Ok(()))?;
    Ok(folder.join(entry.parts[0].file.name))
}

/// The library reports about the machine to its maker unless this variable is set when it starts; its own switch
/// comes too late.
const NO_TELEMETRY: &str = "ORT_DISABLE_TELEMETRY";

fn load(library: &Path) -> Result<Environment> {
    if std::env::var_os(NO_TELEMETRY).is_none() {
        // SAFETY: Rust's readers and writers of the environment are locked against each other. What remains is C
        // code that reads it on another thread at this moment, once a process, before the first model runs.
        unsafe { std::env::set_var(NO_TELEMETRY, "1") };
    }
    let builder = ort::init_from(library).map_err(|e| not_loaded(library, &e))?;
    builder.with_name("rankgate").with_telemetry(false).build().map_err(|e| {
        Error::new(ErrorKind::Model, format!("{}: ONNX Runtime does not start", library.display()))
            .with_source(e)
    })
}

fn not_loaded(library: &Path, error: &ort::LoadDynamicError) -> Error {
    use ort::LoadDynamicError as Load;
    let fetch = "unset ORT_DYLIB_PATH to use the pinned library, or run `rankgate models fetch onnxruntime`";
    let subject = library.display();
    let model_error = |what: String| Error::new(ErrorKind::Model, what).with_hint(fetch);
    match error {
        Load::Dlopen { .. } if !library.exists() => {
            Error::not_found(format!("{subject}: there is no ONNX Runtime library")).with_hint(fetch)
        }
        Load::Dlopen { error, .. } => model_error(format!(
            "{subject}: not a shared library that {} on {} can load",
            std::env::consts::OS,
            std::env::consts::ARCH
        ))
        .with_source(error.to_string()),
        Load::MissingApi { .. } => model_error(format!("{subject}: a library, but not ONNX Runtime")),
        Load::BadVersion { version_str, .. } => model_error(format!(
            "{subject}: ONNX Runtime {version_str} is too old, {OLDEST} or newer is needed"
        )),
        other => model_error(format!("{subject}: cannot be used")).with_source(other.to_string()),
    }
}
