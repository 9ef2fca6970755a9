//! Presets: which generator a name stands for.

use std::sync::Arc;

use super::Generator;
use crate::error::{Error, Result};
use crate::settings::ModelSettings;
use crate::store::cache::Cache;

pub(super) fn open(name: &str, _: &ModelSettings, _: Option<Arc<Cache>>) -> Result<Arc<dyn Generator>> {
    Err(Error::not_found(format!("preset `{name}` is not known")))
}
