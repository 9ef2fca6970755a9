//! The recorder of this process: opened with the first search that is to be kept, drained before the program ends.

use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use crate::error::Result;
use crate::pipeline::Pipeline;
use crate::settings::{self, Settings};
use crate::store::captures::{DB_FILE, Recorder};

static RECORDER: OnceLock<Arc<Recorder>> = OnceLock::new();

/// Where captured searches are kept.
pub(super) fn database() -> Result<PathBuf> {
    Ok(settings::home()?.join(DB_FILE))
}

/// The pipeline, recorded when capture is on.
pub(super) fn attach(pipeline: Pipeline, settings: &Settings) -> Result<Pipeline> {
    if !settings.eval.capture_state().on {
        return Ok(pipeline);
    }
    let path = database()?;
    let recorder = RECORDER.get_or_init(|| Arc::new(Recorder::start(&path, settings.eval.scrub_pii)));
    Ok(pipeline.with_recorder(recorder.clone()))
}

/// Waits, within bounds, until what was recorded is written; says on stderr what is lost.
pub(super) fn drain() {
    let Some(recorder) = RECORDER.get() else { return };
    let lost = recorder.drain(Recorder::GRACE).unfinished;
    if lost > 0 {
        let grace = Recorder::GRACE.as_secs();
        let mut stderr = std::io::stderr();
        let _ =
            writeln!(stderr, "note: {lost} searches were not captured: not written within {grace} seconds");
    }
}
