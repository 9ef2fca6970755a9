//! The one error type: what went wrong, with which subject, and what to do about it.

use std::error::Error as StdError;
use std::fmt;
use std::path::Path;

/// Shorthand for a result that fails with an [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What sort of failure it was. Kinds let a caller react; the words are for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A flag, an argument or a setting that cannot be used.
    Usage,
    /// A file, a record or a text that is not what it should be.
    Input,
    /// Something that was named does not exist.
    NotFound,
    /// A file of a version that this program does not read.
    Version,
    /// A model, its files or its runtime.
    Model,
    /// The network is needed and was forbidden or failed.
    Network,
    /// A server wants a key and got none, or a wrong one.
    Access,
    /// Another process holds what is needed.
    Busy,
    /// The operating system refused.
    Io,
    /// A time limit ran out.
    Timeout,
    /// A fault of this program.
    Internal,
}

/// A failure: its subject and cause in lower case, and how to repair it.
///
/// `Display` prints one line, `what (hint)`. [`Error::report`] adds the causes.
#[derive(Debug, thiserror::Error)]
pub struct Error {
    kind: ErrorKind,
    what: String,
    hint: Option<String>,
    #[source]
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if let Some(hint) = &self.hint {
            write!(f, " ({hint})")?;
        }
        Ok(())
    }
}

impl Error {
    /// A failure of `kind`; `what` names the subject first: ``queries.json: query `q7` …``.
    pub fn new(kind: ErrorKind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into(), hint: None, source: None }
    }

    /// A wrong flag, argument or setting.
    pub fn usage(what: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, what)
    }

    /// A file or record that is not what it should be.
    pub fn input(what: impl Into<String>) -> Self {
        Self::new(ErrorKind::Input, what)
    }

    /// Something named that does not exist.
    pub fn not_found(what: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, what)
    }

    /// A failed operation on `path`, with a hint for the common causes.
    ///
    /// A missing file becomes [`ErrorKind::NotFound`], all else [`ErrorKind::Io`].
    pub fn io(doing: &str, path: &Path, source: std::io::Error) -> Self {
        use std::io::ErrorKind as Io;
        let (kind, hint) = match source.kind() {
            Io::NotFound => (ErrorKind::NotFound, None),
            Io::PermissionDenied | Io::ReadOnlyFilesystem => {
                (ErrorKind::Io, Some("check the permissions, or choose another folder with RANKGATE_HOME"))
            }
            Io::StorageFull | Io::QuotaExceeded => (
                ErrorKind::Io,
                Some("the disk is full: free some space and run it again, finished parts are kept"),
            ),
            _ => (ErrorKind::Io, None),
        };
        let error = Self::new(kind, format!("{}: cannot {doing}", path.display())).with_source(source);
        match hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }

    /// Adds the repair, printed in brackets.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the cause, printed by [`Error::report`].
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Puts a subject in front: `prefix: what`.
    #[must_use]
    pub fn context(mut self, prefix: impl fmt::Display) -> Self {
        self.what = format!("{prefix}: {}", self.what);
        self
    }

    /// The sort of failure.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The repair, if one is known.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The line of `Display`, the causes after it: `what: cause: cause (hint)`.
    pub fn report(&self) -> String {
        let mut text = with_causes(self.what.clone(), StdError::source(self));
        if let Some(hint) = &self.hint {
            text.push_str(&format!(" ({hint})"));
        }
        text
    }
}

/// `text` with the chain of causes behind it, separated by colons; what is said already is not repeated.
pub(crate) fn with_causes(mut text: String, mut cause: Option<&(dyn StdError + 'static)>) -> String {
    while let Some(error) = cause {
        let line = error.to_string();
        if !text.contains(&line) {
            text.push_str(": ");
            text.push_str(&line);
        }
        cause = error.source();
    }
    text
}

/// Process exit codes, the same for every command.
pub mod exit {
    /// Everything asked for was done and every gate passed.
    pub const PASS: u8 = 0;
    /// A gate failed: the run is complete and its answer is no.
    pub const GATE_FAILED: u8 = 1;
    /// Usage, input or infrastructure error: there is no answer.
    pub const ERROR: u8 = 2;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_is_one_line_and_report_adds_the_cause_once() {
        let error = Error::io("read the file", Path::new("a/b.json"), std::io::Error::from_raw_os_error(28))
            .context("fixtures");
        assert!(error.to_string().starts_with("fixtures: a/b.json: cannot read the file (the disk is full"));
        assert!(error.report().contains("No space left on device"));
        assert_eq!(error.kind(), ErrorKind::Io);
    }
}
