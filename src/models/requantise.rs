//! A GGUF file whose 4-bit tensors become 8-bit ones: more to read, but several times faster,
//! since candle has vector code for Q8_0 and none for Q4_1.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::Path;

use candle_core::quantized::gguf_file::{self, Content, Value};
use candle_core::quantized::{GgmlDType, QStorage, QTensor};
use candle_core::{Device, bail};
use half::f16;

use crate::error::{Error, ErrorKind, Result};

/// Weights that share one scale.
const BLOCK: usize = 32;

/// Writes the GGUF file `source` to `to` with every Q4_1 tensor as Q8_0 and all else as it is.
///
/// Equal sources give equal bytes on every machine: keys and tensors are written in alphabetical order, and the
/// arithmetic is scalar. Fails when `source` is no GGUF file or the disk is full.
pub(super) fn to_q8_0(source: &Path, to: &Path) -> Result<()> {
    let mut reader = BufReader::new(File::open(source).map_err(|e| Error::io("read", source, e))?);
    let mut writer = BufWriter::new(File::create(to).map_err(|e| Error::io("write", to, e))?);
    convert(&mut reader, &mut writer).map_err(|e| match e {
        candle_core::Error::Io(e) => Error::io("write", to, e),
        e => Error::new(ErrorKind::Model, format!("{}: cannot be converted", source.display()))
            .with_source(e.to_string()),
    })?;
    writer.into_inner().map_err(|e| Error::io("write", to, e.into_error()))?;
    Ok(())
}

fn convert(reader: &mut BufReader<File>, writer: &mut BufWriter<File>) -> candle_core::Result<()> {
    let content = Content::read(reader)?;
    let mut names: Vec<&String> = content.tensor_infos.keys().collect();
    names.sort_unstable();
    let mut tensors = Vec::with_capacity(names.len());
    for name in names {
        let tensor = content.tensor(reader, name, &Device::Cpu)?;
        let tensor = if tensor.dtype() == GgmlDType::Q4_1 { eight_bits(&tensor)? } else { tensor };
        tensors.push((name.as_str(), tensor));
    }
    let tensors: Vec<(&str, &QTensor)> = tensors.iter().map(|(name, tensor)| (*name, tensor)).collect();
    let mut metadata: Vec<(&str, &Value)> =
        content.metadata.iter().map(|(key, value)| (key.as_str(), value)).collect();
    metadata.sort_unstable_by_key(|(key, _)| *key);
    gguf_file::write(writer, &metadata, &tensors)
}

fn eight_bits(tensor: &QTensor) -> candle_core::Result<QTensor> {
    let shape = tensor.shape().clone();
    let blocks = q8_0(&q4_1(&tensor.data()?)?);
    let storage = QStorage::from_data(Cow::Owned(blocks), &Device::Cpu, GgmlDType::Q8_0)?;
    QTensor::new(storage, shape)
}

/// The weights of Q4_1 blocks: scale d and least weight m as 16-bit floats, then 16 bytes, of which byte j
/// holds weight j in its low half and weight j + 16 in its high half; a weight is d × q + m.
fn q4_1(blocks: &[u8]) -> candle_core::Result<Vec<f32>> {
    let (blocks, []) = blocks.as_chunks::<20>() else { bail!("a Q4_1 tensor ends inside a block") };
    let mut weights = Vec::with_capacity(blocks.len() * BLOCK);
    for [d0, d1, m0, m1, quants @ ..] in blocks {
        let (d, m) = (f16::from_le_bytes([*d0, *d1]).to_f32(), f16::from_le_bytes([*m0, *m1]).to_f32());
        weights.extend(quants.iter().map(|q| f32::from(q & 15) * d + m));
        weights.extend(quants.iter().map(|q| f32::from(q >> 4) * d + m));
    }
    Ok(weights)
}

/// Q8_0 blocks: a scale as a 16-bit float, the largest weight's 127th part, then 32 signed bytes.
///
/// By hand, because candle's own rounds halves differently on ARM, and the file's hash is pinned.
fn q8_0(weights: &[f32]) -> Vec<u8> {
    let (blocks, _) = weights.as_chunks::<BLOCK>();
    let mut bytes = Vec::with_capacity(blocks.len() * (BLOCK + 2));
    for block in blocks {
        let scale = block.iter().fold(0.0_f32, |largest, x| largest.max(x.abs())) / 127.0;
        let inverse = if scale == 0.0 { 0.0 } else { 1.0 / scale };
        bytes.extend(f16::from_f32(scale).to_le_bytes());
        bytes.extend(block.iter().map(|x| (x * inverse).round() as i8 as u8));
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One block: d = 0.5, m = -4, so that q is the weight -4 + q / 2.
    fn block() -> Vec<u8> {
        let mut block = [f16::from_f32(0.5).to_le_bytes(), f16::from_f32(-4.0).to_le_bytes()].concat();
        block.extend((0..16).map(|j| j | (15 - j) << 4));
        block
    }

    #[test]
    fn four_bits_are_read_as_they_were_written() {
        let weights = q4_1(&block()).expect("is whole");
        assert_eq!(weights[..3], [-4.0, -3.5, -3.0]);
        assert_eq!(weights[16..19], [3.5, 3.0, 2.5]);
        assert!(q4_1(&block()[1..]).is_err(), "a torn block is refused");
    }

    /// candle reads what is written here, and no weight moves by more than half a step and the scale's rounding.
    #[test]
    fn eight_bits_keep_the_weights() {
        let weights = q4_1(&block()).expect("is whole");
        let storage = QStorage::from_data(Cow::Owned(q8_0(&weights)), &Device::Cpu, GgmlDType::Q8_0);
        let tensor = QTensor::new(storage.expect("stores"), (1, 32)).expect("has one block");
        let read = tensor.dequantize(&Device::Cpu).expect("reads").flatten_all().expect("is a row");
        for (found, weight) in read.to_vec1::<f32>().expect("is f32").iter().zip(&weights) {
            assert!((found - weight).abs() <= 4.0 / 127.0 * 0.5 + 0.002, "{found} for {weight}");
        }
        assert!(q8_0(&[0.0; 32]).iter().all(|&byte| byte == 0), "nothing stays nothing");
    }
}
