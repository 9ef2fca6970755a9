//! Progress on stderr: a bar on a terminal, else one line a piece of work.

use std::io::{IsTerminal, Write};

use indicatif::{ProgressBar, ProgressStyle};

/// A piece of work whose progress is shown until it is dropped.
#[derive(Debug)]
pub(super) struct Progress(Option<ProgressBar>);

impl Progress {
    /// Announces `what`, with `total` bytes to go (0: unknown).
    pub(super) fn start(what: &str, total: u64) -> Self {
        if !std::io::stderr().is_terminal() {
            note(&if total > 0 { format!("{what} ({})", size(total)) } else { what.to_string() });
            return Self(None);
        }
        let bar = if total > 0 { ProgressBar::new(total) } else { ProgressBar::new_spinner() };
        let template = if total > 0 {
            "{msg} [{wide_bar}] {bytes}/{total_bytes} {bytes_per_sec}"
        } else {
            "{spinner} {msg} {elapsed}"
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(what.to_string());
        bar.enable_steady_tick(std::time::Duration::from_millis(100));
        Self(Some(bar))
    }

    /// Bytes done so far.
    pub(super) fn set(&self, done: u64) {
        if let Some(bar) = &self.0 {
            bar.set_position(done);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

/// One line on stderr. A closed stderr is nobody's failure.
pub(super) fn note(line: &str) {
    let _ = writeln!(std::io::stderr(), "rankgate: {line}");
}

/// Bytes for a person: `71.6 MB`.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}
