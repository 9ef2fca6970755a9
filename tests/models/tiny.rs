//! Small models that really run: generated here, so that no binary file need be kept.

use std::fs;
use std::path::Path;

use rankgate::models::onnx_writer::{Attribute, Dim, ElementType, Graph};

/// The vocabulary, id by position.
pub const WORDS: [&str; 10] =
    ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cancel", "contract", "weather", "today", "query", "passage"];

/// Components of the embedder's vectors.
pub const DIMS: usize = 8;

/// Writes `model.onnx` (named `file`) and `tokenizer.json` into `folder`.
pub fn write_embedder(folder: &Path, file: &str) {
    write(folder, file, &embedder());
}

/// Writes a cross-encoder and its tokenizer into `folder`.
pub fn write_cross_encoder(folder: &Path, file: &str) {
    write(folder, file, &cross_encoder());
}

fn write(folder: &Path, file: &str, model: &[u8]) {
    let model_path = folder.join(file);
    fs::create_dir_all(model_path.parent().unwrap()).unwrap();
    fs::write(model_path, model).unwrap();
    fs::write(folder.join("tokenizer.json"), tokenizer()).unwrap();
}

/// Bytes of weights that do nothing but make a download take more than one packet.
const BALLAST: usize = 1 << 18;

/// A word's vector has one large component, its id modulo the dimensions, and a trace of the next.
pub fn embedder() -> Vec<u8> {
    let table: Vec<u8> = (0..WORDS.len())
        .flat_map(|id| {
            (0..DIMS).map(move |d| match d {
                d if d == id % DIMS => 1.0f32,
                d if d == (id + 1) % DIMS => 0.25,
                _ => 0.0,
            })
        })
        .flat_map(f32::to_le_bytes)
        .collect();
    let mut graph = Graph::new("tiny embedder");
    graph.input("input_ids", ElementType::Int64, &[Dim::Any("b"), Dim::Any("l")]);
    graph.input("attention_mask", ElementType::Int64, &[Dim::Any("b"), Dim::Any("l")]);
    graph.constant("table", ElementType::Float, &[WORDS.len(), DIMS], &table);
    graph.constant("ballast", ElementType::Uint8, &[BALLAST], &[0; BALLAST]);
    graph.node("Gather", "", &["table", "input_ids"], "last_hidden_state", &[("axis", Attribute::Int(0))]);
    graph.output("last_hidden_state", ElementType::Float, &[Dim::Any("b"), Dim::Any("l"), Dim::Fixed(DIMS)]);
    graph.into_model(&[("", 21)])
}

/// The score is the sum of the words' weights; `contract` weighs most.
pub fn cross_encoder() -> Vec<u8> {
    let weights = [0.0f32, 0.0, 0.0, 0.0, 1.0, 5.0, -1.0, -2.0, 0.0, 0.0];
    let weights: Vec<u8> = weights.iter().flat_map(|w| w.to_le_bytes()).collect();
    let mut graph = Graph::new("tiny cross-encoder");
    for input in ["input_ids", "attention_mask", "token_type_ids"] {
        graph.input(input, ElementType::Int64, &[Dim::Any("b"), Dim::Any("l")]);
    }
    graph.constant("weights", ElementType::Float, &[WORDS.len(), 1], &weights);
    graph.constant("axis", ElementType::Int64, &[1], &1i64.to_le_bytes());
    graph.node("Gather", "", &["weights", "input_ids"], "each", &[("axis", Attribute::Int(0))]);
    graph.node("ReduceSum", "", &["each", "axis"], "logits", &[("keepdims", Attribute::Int(0))]);
    graph.output("logits", ElementType::Float, &[Dim::Any("b"), Dim::Fixed(1)]);
    graph.into_model(&[("", 21)])
}

/// Words by spaces, `[CLS] a [SEP]` and `[CLS] a [SEP] b [SEP]`.
pub fn tokenizer() -> String {
    let special = |id: usize| {
        serde_json::json!({"id": id, "content": WORDS[id], "single_word": false, "lstrip": false,
            "rstrip": false, "normalized": false, "special": true})
    };
    let token = |name: &str, kind: u32| serde_json::json!({"SpecialToken": {"id": name, "type_id": kind}});
    let text = |name: &str, kind: u32| serde_json::json!({"Sequence": {"id": name, "type_id": kind}});
    let vocabulary: serde_json::Map<String, serde_json::Value> =
        WORDS.iter().enumerate().map(|(id, word)| (word.to_string(), id.into())).collect();
    serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "decoder": null,
        "added_tokens": (0..4).map(special).collect::<Vec<_>>(),
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [token("[CLS]", 0), text("A", 0), token("[SEP]", 0)],
            "pair": [token("[CLS]", 0), text("A", 0), token("[SEP]", 0), text("B", 1), token("[SEP]", 1)],
            "special_tokens": {
                "[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]},
                "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}
            }
        },
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"}
    })
    .to_string()
}
