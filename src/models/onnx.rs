//! A transformer in ONNX with its tokenizer: texts to tokens, tokens to batches, batches through one session.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ort::session::Session;
use ort::session::builder::GraphOptimizationLevel;
use ort::value::Tensor;
use tokenizers::{EncodeInput, Encoding, Tokenizer, TruncationParams};

use super::runtime;
use crate::error::{Error, ErrorKind, Result};
use crate::settings::ModelSettings;

/// Padded tokens a batch. More amortises little, and memory grows with it.
const BATCH_TOKENS: usize = 2048;

/// What a model is loaded from.
#[derive(Debug, Clone)]
pub(super) struct Files {
    /// The model's name, for errors.
    pub(super) name: String,
    /// The graph.
    pub(super) model: PathBuf,
    /// `tokenizer.json`.
    pub(super) tokenizer: PathBuf,
    /// Longest input in tokens, special tokens included.
    pub(super) max_tokens: usize,
}

/// One session and its tokenizer, shared between threads. A run takes the session for itself.
pub(super) struct Model {
    files: Files,
    session: Mutex<Session>,
    tokenizer: Tokenizer,
    pad_id: u32,
    /// Whether the graph wants `token_type_ids`, and `attention_mask`.
    wants: (bool, bool),
    /// The output that is read.
    output: String,
}

/// A tokenised text.
#[derive(Debug, Clone)]
pub(super) struct Tokens {
    ids: Vec<u32>,
    types: Vec<u32>,
    /// Which tokens stand for no text: `[CLS]`, `</s>` …
    pub(super) special: Vec<bool>,
    /// Whether the text was longer than the model reads.
    pub(super) truncated: bool,
}

impl Tokens {
    /// Tokens, special ones included.
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }
}

/// What a run returned for a batch: `data` of shape `[batch, …, …]`, row-major.
pub(super) struct Output<'a> {
    pub(super) shape: &'a [usize],
    pub(super) data: &'a [f32],
}

impl Model {
    /// Loads the model. Fails when a file is missing or damaged, and when the graph is no transformer over
    /// `input_ids`. `outputs` are the names looked for, best first; else the first output is read.
    pub(super) fn open(files: Files, settings: &ModelSettings, outputs: &[&str]) -> Result<Self> {
        // First of all, so that a missing runtime is reported as such.
        let environment = runtime::environment(settings)?;
        let threads = threads(settings);
        let failed = |path: &Path, e: &dyn std::fmt::Display| {
            Error::new(
                ErrorKind::Model,
                format!("model `{}`: {} cannot be loaded", files.name, path.display()),
            )
            .with_source(e.to_string())
            .with_hint(format!(
                "it may be damaged: `rankgate models verify` tells, `rankgate models fetch {}` repairs",
                files.name
            ))
        };
        let open = || -> ort::Result<Session> {
            Session::builder(environment)?
                .with_intra_threads(threads)?
                .with_optimization_level(GraphOptimizationLevel::All)?
                // A spinning thread takes a core from the tests that run beside this one.
                .with_intra_op_spinning(false)?
                .commit_from_file(&files.model)
        };
        let session = open().map_err(|e| failed(&files.model, &e))?;
        let mut tokenizer =
            Tokenizer::from_file(&files.tokenizer).map_err(|e| failed(&files.tokenizer, &e))?;
        let pad_id = match tokenizer.get_padding() {
            Some(padding) => padding.pad_id,
            None => ["<pad>", "[PAD]"].iter().find_map(|pad| tokenizer.token_to_id(pad)).unwrap_or(0),
        };
        tokenizer.with_padding(None);
        tokenizer
            .with_truncation(Some(TruncationParams { max_length: files.max_tokens, ..Default::default() }))
            .map_err(|e| failed(&files.tokenizer, &e))?;

        let takes = |name: &str| session.inputs().iter().any(|input| input.name() == name);
        let known = ["input_ids", "attention_mask", "token_type_ids"];
        let unknown = session.inputs().iter().find(|input| !known.contains(&input.name()));
        let output = outputs
            .iter()
            .find_map(|name| session.outputs().iter().find(|output| output.name() == *name))
            .or(session.outputs().first())
            .map(|output| output.name().to_string());
        let (true, None, Some(output)) = (takes("input_ids"), unknown, output) else {
            let inputs: Vec<&str> = session.inputs().iter().map(|input| input.name()).collect();
            return Err(Error::new(
                ErrorKind::Model,
                format!(
                    "model `{}`: its inputs are {}; input_ids, attention_mask and token_type_ids can be given",
                    files.name,
                    inputs.join(", ")
                ),
            )
            .with_hint("choose a repository with a plain encoder"));
        };
        let wants = (takes("token_type_ids"), takes("attention_mask"));
        Ok(Self { files, session: Mutex::new(session), tokenizer, pad_id, wants, output })
    }

    /// Tokenises one text, or two that are judged together.
    pub(super) fn tokens(&self, first: &str, second: Option<&str>) -> Result<Tokens> {
        // What is far beyond the model's reach would only take time: no vocabulary has longer words on average.
        let reach = self.files.max_tokens.saturating_mul(64);
        let (first, first_cut) = head(first, reach);
        let (second, second_cut) = second.map_or((None, false), |text| {
            let (text, cut) = head(text, reach);
            (Some(text), cut)
        });
        let input: EncodeInput<'_> = match second {
            Some(second) => (first, second).into(),
            None => first.into(),
        };
        let encoding: Encoding = self.tokenizer.encode_fast(input, true).map_err(|e| {
            Error::new(ErrorKind::Model, format!("model `{}`: a text cannot be tokenised", self.files.name))
                .with_source(e.to_string())
        })?;
        Ok(Tokens {
            ids: encoding.get_ids().to_vec(),
            types: encoding.get_type_ids().to_vec(),
            special: encoding.get_special_tokens_mask().iter().map(|&special| special == 1).collect(),
            truncated: first_cut || second_cut || !encoding.get_overflowing().is_empty(),
        })
    }

    /// Runs all texts in batches of similar length; `read` gets, a batch, the indices and the output.
    pub(super) fn run_all(
        &self,
        texts: &[Tokens],
        mut read: impl FnMut(&[usize], Output<'_>) -> Result<()>,
    ) -> Result<()> {
        let lengths: Vec<usize> = texts.iter().map(Tokens::len).collect();
        for batch in batches(&lengths, BATCH_TOKENS) {
            self.run(texts, &batch, &mut read)?;
        }
        Ok(())
    }

    fn run(
        &self,
        texts: &[Tokens],
        batch: &[usize],
        read: &mut dyn FnMut(&[usize], Output<'_>) -> Result<()>,
    ) -> Result<()> {
        let rows = batch.len();
        let length = batch.iter().map(|&i| texts[i].len()).max().unwrap_or(0);
        let cells = rows * length;
        let [mut ids, mut mask, mut types] =
            [vec![i64::from(self.pad_id); cells], vec![0; cells], vec![0; cells]];
        for (row, &i) in batch.iter().enumerate() {
            for (column, (&id, &kind)) in texts[i].ids.iter().zip(&texts[i].types).enumerate() {
                let cell = row * length + column;
                (ids[cell], mask[cell], types[cell]) = (i64::from(id), 1, i64::from(kind));
            }
        }
        let failed = |e: ort::Error| {
            Error::new(ErrorKind::Model, format!("model `{}`: cannot run", self.files.name)).with_source(e)
        };
        let tensor = |data: Vec<i64>| Tensor::from_array(([rows, length], data)).map_err(failed);
        let mut inputs = ort::inputs! { "input_ids" => tensor(ids)? };
        if self.wants.0 {
            inputs.push(("token_type_ids".into(), tensor(types)?.into()));
        }
        if self.wants.1 {
            inputs.push(("attention_mask".into(), tensor(mask)?.into()));
        }
        // A panic of another thread inside `run` leaves the session as usable as before.
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let outputs = session.run(inputs).map_err(failed)?;
        let (shape, data) = outputs[self.output.as_str()].try_extract_tensor::<f32>().map_err(failed)?;
        let shape: Vec<usize> = shape.iter().map(|&n| n as usize).collect();
        if shape.first() != Some(&rows) {
            return Err(self.unexpected(&shape));
        }
        read(batch, Output { shape: &shape, data })
    }

    /// The error for an output of a shape that the model's role does not allow.
    pub(super) fn unexpected(&self, shape: &[usize]) -> Error {
        Error::new(
            ErrorKind::Model,
            format!("model `{}`: output `{}` has the shape {shape:?}", self.files.name, self.output),
        )
        .with_hint("check its role, and `file`, in .config/rankgate.toml")
    }
}

/// The start of `text`, at most `bytes` long, and whether something was cut off.
fn head(text: &str, bytes: usize) -> (&str, bool) {
    if text.len() <= bytes {
        return (text, false);
    }
    let end = (0..=bytes).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    (&text[..end], true)
}

/// Threads inside one model: as set, else one where tests run in parallel processes, else two if there are.
fn threads(settings: &ModelSettings) -> usize {
    match settings.threads {
        0 if std::env::var_os("NEXTEST").is_some() => 1,
        0 => std::thread::available_parallelism().map_or(1, usize::from).min(2),
        threads => threads,
    }
}

/// Groups texts of similar length: the indices sorted by length, cut so that no batch holds more than
/// `budget` tokens once every text in it is padded to the longest.
fn batches(lengths: &[usize], budget: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|&i| lengths[i]);
    let mut batches: Vec<Vec<usize>> = Vec::new();
    for i in order {
        match batches.last_mut() {
            // Lengths ascend, so the newest text is the longest.
            Some(batch) if (batch.len() + 1) * lengths[i] <= budget => batch.push(i),
            _ => batches.push(vec![i]),
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_hold_every_text_once_within_the_budget() {
        let lengths = [5, 300, 7, 7, 512, 6, 1, 300];
        let batches = batches(&lengths, 512);
        let mut seen: Vec<usize> = batches.iter().flatten().copied().collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..lengths.len()).collect::<Vec<_>>());
        for batch in &batches {
            let longest = batch.iter().map(|&i| lengths[i]).max().unwrap_or(0);
            assert!(longest * batch.len() <= 512, "{batch:?}");
        }
        assert_eq!(batches[0], [6, 0, 5, 2, 3], "the short ones go together");
        assert_eq!(super::batches(&[900], 512), [[0]], "a text over the budget goes alone");
        assert!(super::batches(&[], 512).is_empty());
    }

    #[test]
    fn a_head_ends_between_characters() {
        assert_eq!(head("añb", 2), ("a", true));
        assert_eq!(head("añb", 4), ("añb", false));
    }
}
