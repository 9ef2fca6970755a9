//! Opens files that are read to their end.

use std::fs::File;
use std::path::Path;

use crate::error::{Error, Result};

/// Opens `path` for reading; `what` says what it holds, for errors: `records`, `queries`. Pipes are taken.
///
/// Fails when it is not there or may not be read, and on a device: some never end.
pub fn open_file(path: &Path, what: &str) -> Result<File> {
    let failed = |e| Error::io(&format!("read the {what}"), path, e);
    let file = File::open(path).map_err(failed)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let kind = file.metadata().map_err(failed)?.file_type();
        if kind.is_char_device() || kind.is_block_device() {
            return Err(Error::input(format!("{}: a device, not a file", path.display()))
                .with_hint(format!("name a file or a pipe with the {what}")));
        }
    }
    Ok(file)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_never_ends_is_not_opened() {
        let error = open_file(Path::new("/dev/zero"), "records").expect_err("has no end").report();
        assert!(error.contains("/dev/zero: a device") && error.contains("with the records"), "{error}");
    }
}
