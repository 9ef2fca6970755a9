//! Converts an E5S1 file (multilingual-e5-small with 4-bit weights) to ONNX and `tokenizer.json`.
//!
//! The weights keep their four bits: the graph uses ONNX Runtime's block-quantised operators. Both outputs
//! depend on the input alone, byte for byte, so the catalogue pins their SHA-256.

use std::collections::HashMap;
use std::fmt::Write;

use super::onnx_writer::{Attribute, Dim, ElementType, Graph};
use crate::error::{Error, Result};

/// What an E5S1 file becomes.
#[derive(Debug)]
pub struct Converted {
    /// The ONNX model: inputs `input_ids` and `attention_mask`, output `last_hidden_state`.
    pub model: Vec<u8>,
    /// The tokenizer, in the format of the `tokenizers` library.
    pub tokenizer: String,
}

/// Weights that share one scale.
const BLOCK: usize = 32;
/// Bytes of such a block: a half-precision scale and 32 nibbles.
const BLOCK_BYTES: usize = 18;
/// The domain of ONNX Runtime's own operators.
const MICROSOFT: &str = "com.microsoft";

/// Converts the bytes of an E5S1 file of version 1.
///
/// Fails when they are truncated, of another version, or lack a tensor.
pub fn convert(bytes: &[u8]) -> Result<Converted> {
    let mut reader = Reader { bytes, at: 0 };
    if reader.take(4)? != b"E5S1" {
        return Err(Error::input("not an E5S1 file: it does not begin with `E5S1`"));
    }
    let version = reader.u32()?;
    if version != 1 {
        return Err(Error::input(format!("E5S1 version {version}, expected 1")));
    }
    let shape = Shape::read(&mut reader)?;
    let tokenizer = tokenizer(&mut reader)?;
    let tensors = Tensors::read(&mut reader)?;
    Ok(Converted { model: model(&shape, &tensors)?, tokenizer })
}

struct Shape {
    hidden: usize,
    layers: usize,
    heads: usize,
    feed_forward: usize,
    vocabulary: usize,
    positions: usize,
    epsilon: f32,
}

impl Shape {
    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let mut next = || reader.u32().map(|n| n as usize);
        let [hidden, layers, heads, feed_forward, vocabulary, positions, _token_types] =
            [next()?, next()?, next()?, next()?, next()?, next()?, next()?];
        let epsilon = reader.f32()?;
        let block = reader.u32()? as usize;
        if block != BLOCK || hidden == 0 || hidden % BLOCK != 0 || feed_forward % BLOCK != 0 {
            return Err(Error::input(format!("an E5S1 file of an unknown shape: blocks of {block} weights")));
        }
        Ok(Self { hidden, layers, heads, feed_forward, vocabulary, positions, epsilon })
    }
}

/// Everything but the vocabulary of `tokenizer.json`: SentencePiece's NMT + NFKC normalisation, words marked
/// by `▁`, a Unigram model. `@` names stand for the ids.
const TOKENIZER_HEAD: &str = r#"{"version":"1.0","truncation":null,"padding":null,"added_tokens":[@ADDED],"normalizer":{"type":"Sequence","normalizers":[{"type":"Nmt"},{"type":"NFKC"},{"type":"Replace","pattern":{"Regex":" {2,}"},"content":" "}]},"pre_tokenizer":@METASPACE,"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"</s>","type_id":0}}],"pair":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"</s>","type_id":0}},{"SpecialToken":{"id":"</s>","type_id":0}},{"Sequence":{"id":"B","type_id":0}},{"SpecialToken":{"id":"</s>","type_id":0}}],"special_tokens":{"<s>":{"id":"<s>","ids":[@BOS],"tokens":["<s>"]},"</s>":{"id":"</s>","ids":[@EOS],"tokens":["</s>"]}}},"decoder":@METASPACE,"model":{"type":"Unigram","unk_id":@UNK,"byte_fallback":false,"vocab":["#;
const METASPACE: &str = r#"{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true}"#;

fn tokenizer(reader: &mut Reader<'_>) -> Result<String> {
    let pieces = reader.u32()? as usize;
    let [bos, eos, pad, unk] = [reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?];
    let blob_length = reader.length()?;
    let offsets = reader.array(pieces.saturating_add(1), u32::from_le_bytes)?;
    let scores = reader.array(pieces, f32::from_le_bytes)?;
    let blob = reader.take(blob_length)?;
    // The normalisation map that follows is what `Nmt` and `NFKC` do.
    let _entries = reader.u32()?;
    let map_length = reader.u32()? as usize;
    reader.take(map_length)?;

    let added: Vec<String> = [(bos, "<s>"), (pad, "<pad>"), (eos, "</s>"), (unk, "<unk>")]
        .iter()
        .map(|(id, content)| {
            format!(
                r#"{{"id":{id},"content":"{content}","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}}"#
            )
        })
        .collect();
    let mut json = TOKENIZER_HEAD
        .replace("@ADDED", &added.join(","))
        .replace("@METASPACE", METASPACE)
        .replace("@BOS", &bos.to_string())
        .replace("@EOS", &eos.to_string())
        .replace("@UNK", &unk.to_string());
    for (i, (span, score)) in offsets.windows(2).zip(&scores).enumerate() {
        let piece = blob
            .get(span[0] as usize..span[1] as usize)
            .and_then(|bytes| std::str::from_utf8(bytes).ok())
            .ok_or_else(|| Error::input(format!("E5S1 vocabulary: piece {i} is not a text")))?;
        let comma = if i == 0 { "" } else { "," };
        let quoted = serde_json::to_string(piece).map_err(|e| Error::input(e.to_string()))?;
        // Writing to a String cannot fail.
        let _ = write!(json, "{comma}[{quoted},{:?}]", f64::from(*score));
    }
    json.push_str("]}}");
    Ok(json)
}

/// The tensor directory: name → bytes.
struct Tensors<'a>(HashMap<&'a str, &'a [u8]>);

impl<'a> Tensors<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let count = reader.u32()?;
        let mut tensors = HashMap::new();
        for _ in 0..count {
            let name_length = u16::from_le_bytes(reader.fixed()?) as usize;
            let name = std::str::from_utf8(reader.take(name_length)?)
                .map_err(|_| Error::input("E5S1 directory: a tensor's name is not a text"))?;
            reader.take(1 + 4)?; // type and element count follow from the name
            let (offset, length) = (reader.length()?, reader.length()?);
            let bytes = offset
                .checked_add(length)
                .and_then(|end| reader.bytes.get(offset..end))
                .ok_or_else(|| Error::input(format!("E5S1 file is truncated: tensor `{name}`")))?;
            tensors.insert(name, bytes);
        }
        Ok(Self(tensors))
    }

    fn get(&self, name: &str, length: usize) -> Result<&'a [u8]> {
        let bytes = self.0.get(name).ok_or_else(|| Error::input(format!("E5S1 file lacks `{name}`")))?;
        if bytes.len() < length {
            return Err(Error::input(format!("E5S1 tensor `{name}`: {} bytes of {length}", bytes.len())));
        }
        Ok(&bytes[..length])
    }

    fn floats(&self, name: &str, count: usize) -> Result<Vec<f32>> {
        let bytes = self.get(name, count * 4)?;
        Ok(bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect())
    }

    /// 4-bit weights as (scales, nibbles): block order becomes pair order, two neighbours a byte. With
    /// `signed` a nibble n stands for n in two's complement, else for n − 8.
    fn quantised(&self, name: &str, count: usize, signed: bool) -> Result<(Vec<u8>, Vec<u8>)> {
        let blocks = self.get(name, count / BLOCK * BLOCK_BYTES)?;
        let mut scales = Vec::with_capacity(count / BLOCK * 4);
        let mut nibbles = Vec::with_capacity(count / 2);
        // n − 8 in two's complement is n with its top bit flipped.
        let flip = if signed { 0x88 } else { 0 };
        for block in blocks.as_chunks::<BLOCK_BYTES>().0 {
            scales.extend(half_to_f32(u16::from_le_bytes([block[0], block[1]])).to_le_bytes());
            let pairs = block[2..].as_chunks::<2>().0;
            nibbles.extend(pairs.iter().map(|[a, b]| ((a & 15) | (b & 15) << 4) ^ flip));
            nibbles.extend(pairs.iter().map(|[a, b]| ((a >> 4) | (b & 0xf0)) ^ flip));
        }
        Ok((scales, nibbles))
    }
}

/// Writes the network: BERT with the normalisation after each part, exact GELU, token type 0.
struct Network<'a> {
    shape: &'a Shape,
    tensors: &'a Tensors<'a>,
    graph: Graph,
}

fn model(shape: &Shape, tensors: &Tensors<'_>) -> Result<Vec<u8>> {
    let mut network = Network { shape, tensors, graph: Graph::new("e5") };
    let tokens = [Dim::Any("batch"), Dim::Any("length")];
    network.graph.input("input_ids", ElementType::Int64, &tokens);
    network.graph.input("attention_mask", ElementType::Int64, &tokens);
    network.embeddings()?;
    let mut x = String::from("x");
    for layer in 0..shape.layers {
        let last = layer + 1 == shape.layers;
        let output = if last { "last_hidden_state".into() } else { format!("l{layer}.x") };
        network.layer(layer, &x, &output)?;
        x = output;
    }
    let hidden = [tokens[0], tokens[1], Dim::Fixed(shape.hidden)];
    network.graph.output("last_hidden_state", ElementType::Float, &hidden);
    Ok(network.graph.into_model(&[("", 21), (MICROSOFT, 1)]))
}

impl Network<'_> {
    /// Word, position and type vectors, summed and normalised: `x`.
    fn embeddings(&mut self) -> Result<()> {
        let Shape { hidden, vocabulary, positions, .. } = *self.shape;
        let (scales, nibbles) = self.tensors.quantised("emb.word", vocabulary * hidden, true)?;
        self.graph.constant("emb.word", ElementType::Int4, &[vocabulary, hidden], &nibbles);
        self.graph.constant("emb.word.s", ElementType::Float, &[vocabulary, hidden / BLOCK], &scales);
        // Every token is of type 0, so its vector goes into the positions.
        let token_type = self.tensors.floats("emb.type", hidden)?;
        let position = self.tensors.floats("emb.pos", positions * hidden)?;
        let position: Vec<u8> =
            position.iter().zip(token_type.iter().cycle()).flat_map(|(p, t)| (p + t).to_le_bytes()).collect();
        self.graph.constant("emb.pos", ElementType::Float, &[positions, hidden], &position);
        self.graph.constant("zero", ElementType::Int64, &[1], &0i64.to_le_bytes());
        self.vector("emb.ln.w", hidden)?;
        self.vector("emb.ln.b", hidden)?;

        let graph = &mut self.graph;
        let int = Attribute::Int;
        let gather = [("block_size", int(BLOCK as i64)), ("gather_axis", int(0)), ("quantize_axis", int(1))];
        let words = ["emb.word", "input_ids", "emb.word.s"];
        graph.node("GatherBlockQuantized", MICROSOFT, &words, "words", &gather);
        graph.node("Shape", "", &["input_ids"], "length", &[("start", int(1)), ("end", int(2))]);
        graph.node("Slice", "", &["emb.pos", "zero", "length", "zero"], "positions", &[]);
        graph.node("Add", "", &["words", "positions"], "sum", &[]);
        let normal = [("axis", int(-1)), ("epsilon", Attribute::Float(self.shape.epsilon))];
        graph.node("LayerNormalization", "", &["sum", "emb.ln.w", "emb.ln.b"], "x", &normal);
        graph.node("Cast", "", &["attention_mask"], "mask", &[("to", int(ElementType::Int32 as i64))]);
        Ok(())
    }

    /// Attention and feed-forward network with their residual sums, from `x` to `output`.
    fn layer(&mut self, layer: usize, x: &str, output: &str) -> Result<()> {
        let Shape { hidden, heads, feed_forward, .. } = *self.shape;
        let n = |part: &str| format!("l{layer}.{part}");
        for part in ["q", "k", "v"] {
            self.projection(&n(part), x, hidden, hidden)?;
        }
        let attention = [&n("q"), &n("k"), &n("v"), "", "mask"];
        let heads = [("num_heads", Attribute::Int(heads as i64))];
        self.graph.node("MultiHeadAttention", MICROSOFT, &attention, &n("context"), &heads);
        self.projection(&n("ao"), &n("context"), hidden, hidden)?;
        self.add_and_normalise(x, &n("ao"), &n("aln"), &n("h"))?;
        self.projection(&n("fi"), &n("h"), feed_forward, hidden)?;
        self.graph.node("Gelu", MICROSOFT, &[&n("fi")], &n("g"), &[]);
        self.projection(&n("fo"), &n("g"), hidden, feed_forward)?;
        self.add_and_normalise(&n("h"), &n("fo"), &n("oln"), output)
    }

    /// `name` = input × weightsᵀ + bias, with the weights `name.w` [outputs, inputs] left at four bits.
    fn projection(&mut self, name: &str, input: &str, outputs: usize, inputs: usize) -> Result<()> {
        let [weights, scales_name, bias] = [format!("{name}.w"), format!("{name}.w.s"), format!("{name}.b")];
        let (scales, nibbles) = self.tensors.quantised(&weights, outputs * inputs, false)?;
        let dims = [outputs, inputs / BLOCK, BLOCK / 2];
        self.graph.constant(&weights, ElementType::Uint8, &dims, &nibbles);
        self.graph.constant(&scales_name, ElementType::Float, &[outputs * inputs / BLOCK], &scales);
        self.vector(&bias, outputs)?;
        let attributes = [
            ("K", inputs as i64),
            ("N", outputs as i64),
            ("bits", 4),
            ("block_size", BLOCK as i64),
            // 4: multiply in 8-bit integers, four times as fast as in floating point.
            ("accuracy_level", 4),
        ]
        .map(|(name, value)| (name, Attribute::Int(value)));
        let wiring = [input, &weights, &scales_name, "", "", &bias];
        self.graph.node("MatMulNBits", MICROSOFT, &wiring, name, &attributes);
        Ok(())
    }

    fn add_and_normalise(&mut self, x: &str, y: &str, norm: &str, output: &str) -> Result<()> {
        let [weight, bias] = [format!("{norm}.w"), format!("{norm}.b")];
        self.vector(&weight, self.shape.hidden)?;
        self.vector(&bias, self.shape.hidden)?;
        let epsilon = [("epsilon", Attribute::Float(self.shape.epsilon))];
        let wiring = [x, y, &weight, &bias];
        self.graph.node("SkipLayerNormalization", MICROSOFT, &wiring, output, &epsilon);
        Ok(())
    }

    /// Copies a vector of the file into the graph, under its own name.
    fn vector(&mut self, name: &str, length: usize) -> Result<()> {
        let bytes = self.tensors.get(name, length * 4)?;
        self.graph.constant(name, ElementType::Float, &[length], bytes);
        Ok(())
    }
}

/// IEEE 754 half precision to single precision, exactly.
fn half_to_f32(half: u16) -> f32 {
    let (exponent, fraction) = (u32::from(half >> 10 & 31), u32::from(half & 1023));
    let magnitude = match exponent {
        0 => fraction as f32 * 2f32.powi(-24),
        31 if fraction == 0 => f32::INFINITY,
        31 => f32::NAN,
        // The exponent's bias is 15 in half and 127 in single precision.
        _ => f32::from_bits((exponent + 112) << 23 | fraction << 13),
    };
    if half >> 15 == 1 { -magnitude } else { magnitude }
}

/// Reads little-endian values; running out of bytes is an error.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let taken = self.at.checked_add(count).and_then(|end| self.bytes.get(self.at..end));
        let taken = taken.ok_or_else(|| {
            Error::input(format!("E5S1 file is truncated: {} bytes, more expected", self.bytes.len()))
        })?;
        self.at += count;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut value = [0; N];
        value.copy_from_slice(self.take(N)?);
        Ok(value)
    }

    fn u32(&mut self) -> Result<u32> {
        self.fixed().map(u32::from_le_bytes)
    }

    fn f32(&mut self) -> Result<f32> {
        self.fixed().map(f32::from_le_bytes)
    }

    fn length(&mut self) -> Result<usize> {
        let value = u64::from_le_bytes(self.fixed()?);
        usize::try_from(value).map_err(|_| Error::input(format!("E5S1 file: impossible length {value}")))
    }

    fn array<T>(&mut self, count: usize, read: impl Fn([u8; 4]) -> T) -> Result<Vec<T>> {
        let bytes = self.take(count.saturating_mul(4))?;
        Ok(bytes.as_chunks().0.iter().map(|&b| read(b)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_is_read_exactly() {
        for (half, value) in [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x0001, 2f32.powi(-24)),
            (0x7bff, 65504.0),
            (0x3555, 0.333_251_95),
        ] {
            assert_eq!(half_to_f32(half), value);
        }
        assert!(half_to_f32(0x7c00).is_infinite() && half_to_f32(0x7c01).is_nan());
    }

    #[test]
    fn whatever_the_bytes_conversion_does_not_panic() {
        let mut file = b"E5S1".to_vec();
        for value in [1u32, 32, 1, 1, 32, 4, 8, 2, 0, 32, 3, 0, 2, 1, 3] {
            file.extend(value.to_le_bytes());
        }
        for length in 0..=file.len() {
            let error = convert(&file[..length]).expect_err("is truncated").to_string();
            assert!(error.contains("E5S1"), "{error}");
        }
        file.extend([0xff; 64]);
        assert!(convert(&file).is_err());
        assert!(convert(b"PK\x03\x04 something else").is_err());
    }
}
