//! How far indexing is, on stderr: a bar on a terminal, nothing elsewhere but what a person must know.

use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};

use super::indexer::Progress;

/// From so many documents on, embedding takes long enough to be told where no bar is seen.
const WORTH_A_WORD: u64 = 20;

/// Shows the progress of one collection. The bar goes away when it is dropped.
pub struct IndexBar {
    bar: ProgressBar,
    dir: PathBuf,
    doing: &'static str,
}

impl IndexBar {
    /// A bar for `collection` of the index in `dir`, which gets vectors or not.
    pub fn new(collection: &str, dir: &Path, vectors: bool) -> Self {
        let bar = ProgressBar::no_length().with_prefix(collection.to_string());
        bar.set_style(style("{prefix}: {pos} documents read {spinner}"));
        Self { bar, dir: dir.to_path_buf(), doing: if vectors { "embedding" } else { "indexing" } }
    }

    /// Shows `progress`.
    pub fn show(&mut self, progress: Progress) {
        match progress {
            Progress::Waiting => eprintln!("waiting for another process that writes {}", self.dir.display()),
            Progress::Read(documents) => self.bar.set_position(documents),
            Progress::Embedded { done, total } => {
                if self.bar.length() != Some(total) {
                    if self.bar.is_hidden() && total >= WORTH_A_WORD {
                        eprintln!("{} {total} documents, once", self.doing);
                    }
                    self.bar.set_style(style("{prefix}: {wide_bar} {pos}/{len} documents, {eta} left"));
                    self.bar.set_length(total);
                    self.bar.reset_eta();
                }
                self.bar.set_position(done);
            }
        }
    }
}

impl Drop for IndexBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
