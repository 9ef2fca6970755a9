//! Scores from a loaded cross-encoder.

use super::onnx::{Files, Model, Output};
use crate::error::Result;
use crate::settings::ModelSettings;

/// Loads a cross-encoder's files.
pub(super) fn open(files: Files, settings: &ModelSettings) -> Result<Model> {
    Model::open(files, settings, &["logits"])
}

/// Loads a cross-encoder and scores one pair: proves that it is one.
pub(super) fn probe(files: Files, settings: &ModelSettings) -> Result<()> {
    score(&open(files, settings)?, "query", &["passage".into()]).map(|_| ())
}

/// One score a passage, in order.
pub(super) fn score(model: &Model, query: &str, passages: &[String]) -> Result<Vec<f32>> {
    let pairs: Vec<_> =
        passages.iter().map(|passage| model.tokens(query, Some(passage))).collect::<Result<_>>()?;
    tracing::Span::current().record("truncated", pairs.iter().filter(|pair| pair.truncated).count());
    let mut scores = vec![0.0; passages.len()];
    model.run_all(&pairs, |batch, output| {
        for (row, &i) in batch.iter().enumerate() {
            scores[i] = relevance(&output, row).ok_or_else(|| model.unexpected(output.shape))?;
        }
        Ok(())
    })?;
    Ok(scores)
}

/// The score of row `row`: its one logit, or how far "relevant" is above "not relevant" when it has two.
fn relevance(output: &Output<'_>, row: usize) -> Option<f32> {
    let score = match *output.shape {
        [_] | [_, 1] => output.data[row],
        [_, 2] => output.data[row * 2 + 1] - output.data[row * 2],
        _ => return None,
    };
    // A score that is no number would order nothing.
    score.is_finite().then_some(score)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_logit_or_two_make_a_score() {
        let two = Output { shape: &[2, 2], data: &[1.0, 3.0, 4.0, 0.0] };
        assert_eq!((relevance(&two, 0), relevance(&two, 1)), (Some(2.0), Some(-4.0)));
        let one = Output { shape: &[2, 1], data: &[0.5, f32::NAN] };
        assert_eq!((relevance(&one, 0), relevance(&one, 1)), (Some(0.5), None));
        assert_eq!(relevance(&Output { shape: &[1, 3], data: &[0.0; 3] }, 0), None);
    }
}
