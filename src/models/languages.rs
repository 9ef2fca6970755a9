//! Language-neutral vectors.
//!
//! A multilingual embedder puts texts of one language close together: a question finds passages in its own
//! language first, whatever they say. What tells languages apart lies in few directions, and can be taken out
//! (Yang, Yang, Cer and Darve, *A Simple and Effective Method To Eliminate the Self Language Bias in Multilingual
//! Representations*, EMNLP 2021). Here the directions are those between the mean vectors of sentences that say the
//! same in every language, so that no topic is taken out with them. They are measured once a model and shipped, so
//! that vectors are the same on every machine.

/// Orthonormal directions to take out of vectors.
#[derive(Debug, Clone, Default)]
pub(super) struct Directions {
    dims: usize,
    rows: Vec<f32>,
}

impl Directions {
    /// Reads rows of `dims` little-endian `f32`.
    pub(super) fn decode(bytes: &[u8], dims: usize) -> Self {
        let rows = bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        Self { dims, rows }
    }

    /// Takes the directions out of `vector`, which gets shorter by it.
    pub(super) fn remove_from(&self, vector: &mut [f32]) {
        for direction in self.rows.chunks_exact(self.dims.max(1)) {
            let share: f32 = vector.iter().zip(direction).map(|(x, d)| x * d).sum();
            vector.iter_mut().zip(direction).for_each(|(x, d)| *x -= share * d);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::models::catalogue::{self, Use};
    use crate::models::embedder::OnnxEmbedder;
    use crate::models::resolve::Resolved;
    use crate::models::{Embedder, TextRole};
    use crate::settings::ModelSettings;

    /// Sixteen sentences in each of eleven languages.
    const PARALLEL: &str = include_str!("parallel.json");

    /// The directions in which `embedder` tells languages apart: one fewer than there are languages.
    fn measure(embedder: &dyn Embedder) -> Directions {
        let sentences: BTreeMap<String, Vec<String>> = serde_json::from_str(PARALLEL).expect("is JSON");
        let dims = embedder.dims();
        let mean = |texts: &Vec<String>| {
            let mut mean = vec![0.0; dims];
            for (text, role) in
                texts.iter().flat_map(|text| [(text, TextRole::Query), (text, TextRole::Passage)])
            {
                // One by one: with 8-bit arithmetic a vector depends a little on its batch.
                let vector = embedder.embed(&[text], role).expect("embeds").data;
                mean.iter_mut().zip(vector).for_each(|(sum, x)| *sum += x / (2 * texts.len()) as f32);
            }
            mean
        };
        let means: Vec<Vec<f32>> = sentences.values().map(mean).collect();
        let mut found = Directions { dims, rows: Vec::new() };
        for other in &means[1..] {
            let mut direction: Vec<f32> = other.iter().zip(&means[0]).map(|(a, b)| a - b).collect();
            found.remove_from(&mut direction);
            let norm = direction.iter().map(|x| x * x).sum::<f32>().sqrt();
            found.rows.extend(direction.iter().map(|x| x / norm));
        }
        found
    }

    /// Writes the file anew when `RANKGATE_BLESS` is set: after a change of the sentences or the model.
    #[test]
    fn the_shipped_directions_are_those_of_the_parallel_sentences() {
        let entry = catalogue::find("multilingual-e5-small").expect("is in the catalogue");
        let Use::Embedder(conventions) = entry.role else { panic!("is an embedder") };
        let settings = ModelSettings::default();
        let plain = catalogue::Conventions { languages: None, ..conventions };
        let embedder = OnnxEmbedder::new(Resolved::pinned(entry, plain), &settings).expect("opens");
        let measured = measure(&embedder);
        if std::env::var_os("RANKGATE_BLESS").is_some() {
            let bytes: Vec<u8> = measured.rows.iter().flat_map(|x| x.to_le_bytes()).collect();
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/models/e5-small-languages.f32");
            std::fs::write(path, bytes).expect("writes");
            return;
        }
        let shipped = Directions::decode(conventions.languages.expect("has directions"), conventions.dims);
        assert_eq!(shipped.rows.len(), 10 * 384);
        for direction in measured.rows.chunks_exact(384) {
            let mut rest = direction.to_vec();
            shipped.remove_from(&mut rest);
            let norm = rest.iter().map(|x| x * x).sum::<f32>().sqrt();
            assert!(norm < 0.05, "a direction lies outside the shipped ones by {norm}");
        }
    }

    #[test]
    fn what_is_taken_out_is_gone_and_the_rest_is_kept() {
        let directions = Directions { dims: 3, rows: vec![1.0, 0.0, 0.0] };
        let mut vector = [0.6, 0.8, 0.1];
        directions.remove_from(&mut vector);
        assert_eq!(vector, [0.0, 0.8, 0.1]);
        Directions::default().remove_from(&mut vector);
        assert_eq!(vector, [0.0, 0.8, 0.1]);
    }
}
