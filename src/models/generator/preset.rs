//! Presets: which generator a name stands for.

use std::sync::Arc;

use super::Generator;
use crate::error::{Error, Result};
use crate::models::catalogue::GENERATOR;
use crate::settings::ModelSettings;
use crate::store::cache::Cache;

/// The preset of the model that runs in this process.
const LOCAL: &str = "nano";

/// The generator of the preset `name`; fails as [`generator`](super::generator).
pub(super) fn open(
    name: &str,
    settings: &ModelSettings,
    cache: Option<Arc<Cache>>,
) -> Result<Arc<dyn Generator>> {
    match name {
        LOCAL => local(settings, cache),
        _ => Err(Error::not_found(format!("preset `{name}` is not known"))),
    }
}

/// The catalogue's model that the preset of `settings` runs, in builds that can.
pub(in crate::models) fn local_model(settings: &ModelSettings) -> Option<&'static str> {
    (settings.preset == LOCAL && cfg!(feature = "local-llm")).then_some(GENERATOR)
}

#[cfg(feature = "local-llm")]
fn local(settings: &ModelSettings, cache: Option<Arc<Cache>>) -> Result<Arc<dyn Generator>> {
    Ok(Arc::new(super::cached::Cached::new(super::local::LocalGenerator::new(settings)?, cache)))
}

#[cfg(not(feature = "local-llm"))]
fn local(settings: &ModelSettings, _: Option<Arc<Cache>>) -> Result<Arc<dyn Generator>> {
    Err(crate::models::resolve::unknown(GENERATOR, settings).context(format!("preset `{LOCAL}`")))
}
