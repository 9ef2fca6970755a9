//! The transformer: reads tokens, says how likely each token is to come next.

use std::collections::VecDeque;
use std::io::{Read, Seek};

use candle_core::quantized::gguf_file::Content;
use candle_core::{Context, Device, Tensor};
use candle_transformers::models::quantized_llama::{MAX_SEQ_LEN, ModelWeights};

use crate::error::{Error, ErrorKind, Result};

/// Tokens read at once: few enough that a time limit is kept, and that attention is not spread over threads of
/// its own.
const CHUNK: usize = 16;

/// Beginnings of prompts that are kept as they were read.
const KEPT: usize = 4;

/// The weights, and what was read of common beginnings.
pub(super) struct Llama {
    weights: ModelWeights,
    /// Newest last.
    beginnings: VecDeque<(Vec<u32>, Reading)>,
    /// The most tokens that prompt and answer can have together.
    pub(super) context: usize,
}

/// A text half read. A copy shares weights and what was read.
#[derive(Clone)]
pub(super) struct Reading {
    weights: ModelWeights,
    tokens: usize,
}

impl Llama {
    pub(super) fn read(content: Content, file: &mut (impl Read + Seek)) -> candle_core::Result<Self> {
        let context = content.metadata.get("llama.context_length").context("no context length")?.to_u32()?;
        let weights = ModelWeights::from_gguf(content, file, &Device::Cpu)?;
        Ok(Self { weights, beginnings: VecDeque::new(), context: MAX_SEQ_LEN.min(context as usize) })
    }

    /// A reading that is through with `beginning`. `in_time` is asked before each chunk.
    ///
    /// Chunks begin anew after a beginning, so that an answer does not depend on whether it was kept.
    pub(super) fn after(&mut self, beginning: &[u32], in_time: &dyn Fn() -> Result<()>) -> Result<Reading> {
        if let Some(kept) = self.beginnings.iter().position(|(tokens, _)| tokens == beginning) {
            let found = self.beginnings.remove(kept);
            self.beginnings.extend(found);
        } else {
            let mut reading = Reading { weights: self.weights.clone(), tokens: 0 };
            reading.read(beginning, in_time)?;
            self.beginnings.push_back((beginning.to_vec(), reading));
            if self.beginnings.len() > KEPT {
                self.beginnings.pop_front();
            }
        }
        Ok(self.beginnings[self.beginnings.len() - 1].1.clone())
    }
}

impl Reading {
    /// Reads on, and returns the score of every token of the vocabulary to be the next.
    pub(super) fn read(&mut self, tokens: &[u32], in_time: &dyn Fn() -> Result<()>) -> Result<Vec<f32>> {
        let mut scores = Vec::new();
        for chunk in tokens.chunks(CHUNK) {
            in_time()?;
            scores = self.forward(chunk).map_err(failed)?;
        }
        Ok(scores)
    }

    fn forward(&mut self, tokens: &[u32]) -> candle_core::Result<Vec<f32>> {
        let input = Tensor::new(tokens, &Device::Cpu)?.unsqueeze(0)?;
        let scores = self.weights.forward(&input, self.tokens)?;
        self.tokens += tokens.len();
        scores.squeeze(0)?.to_vec1()
    }
}

/// A failed computation.
pub(super) fn failed(e: candle_core::Error) -> Error {
    Error::new(ErrorKind::Model, "cannot run").with_source(e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::catalogue::{self, GENERATOR};
    use crate::models::fetch::{Trust, ensure};
    use crate::models::generator::local::tokens::Vocabulary;

    /// What was read before counts, and how it was divided does not, but for rounding.
    #[test]
    fn reading_in_pieces_gives_the_scores_of_reading_at_once() {
        let entry = catalogue::find(GENERATOR).expect("is in the catalogue");
        let Ok(folder) = ensure(entry, &Default::default(), Trust::Size, |_, _, _| Ok(())) else {
            eprintln!("skipped: {GENERATOR} cannot be fetched");
            return;
        };
        let mut file = std::fs::File::open(folder.join("model.gguf")).expect("is there");
        let content = Content::read(&mut file).expect("is GGUF");
        let vocabulary = Vocabulary::read(&content).expect("has a vocabulary");
        let mut llama = Llama::read(content, &mut file).expect("is a model");
        let text = "The capital of France is Paris. The capital of Italy is Rome. The capital of Japan is Tokyo. The \
                    capital of Spain is";
        let tokens = vocabulary.tokens(text).expect("are tokens");
        assert!(tokens.len() > CHUNK);
        let mut whole = Reading { weights: llama.weights.clone(), tokens: 0 };
        let whole = whole.forward(&tokens).expect("runs");
        for cut in [3, CHUNK + 1] {
            let mut reading = llama.after(&tokens[..cut], &|| Ok(())).expect("runs");
            let scores = reading.read(&tokens[cut..], &|| Ok(())).expect("runs");
            assert_eq!(vocabulary.text(&[best(&scores)]), " Madrid");
            // Scores are about 10 apart; each reading rounds its activations to eight bits.
            let apart = whole.iter().zip(&scores).map(|(a, b)| (a - b).abs()).sum::<f32>();
            assert!(apart < 0.3 * whole.len() as f32, "{apart}");
            let again = llama.after(&tokens[..cut], &|| Ok(())).expect("is kept");
            assert_eq!(again.clone().read(&tokens[cut..], &|| Ok(())).expect("runs"), scores);
        }
        assert_eq!(llama.beginnings.len(), 2);
    }

    fn best(scores: &[f32]) -> u32 {
        (0..).zip(scores).fold((0, f32::MIN), |best, (t, &s)| if s > best.1 { (t, s) } else { best }).0
    }
}
