//! Text to tokens and back, and the chat template: what the model reads.

use candle_core::quantized::gguf_file::{Content, Value};
use candle_core::quantized::tokenizer::TokenizerFromGguf;
use candle_core::{Context, bail};
use tokenizers::Tokenizer;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;

use crate::models::Prompt;

/// What the template says when there is no system text.
const NO_SYSTEM: &str = "You are a helpful AI assistant named SmolLM, trained by Hugging Face";

/// GGUF's type of a token that stands for no text.
const CONTROL: i32 = 3;

/// The vocabulary of a GGUF file with its tokenizer.
pub(super) struct Vocabulary {
    tokenizer: Tokenizer,
    /// Each token's bytes; a special one's are its name after a byte 255, which no text has.
    pub(super) words: Vec<Vec<u8>>,
    /// Ends a turn.
    pub(super) end: u32,
    start: u32,
    longest: usize,
}

/// A prompt in tokens, cut where what many prompts share ends.
pub(super) struct Chat {
    /// The system text and the examples.
    pub(super) shared: Vec<u32>,
    /// The question, and the start of the answer's turn.
    pub(super) own: Vec<u32>,
}

impl Chat {
    pub(super) fn len(&self) -> usize {
        self.shared.len() + self.own.len()
    }
}

impl Vocabulary {
    /// Reads the vocabulary out of the file's metadata.
    pub(super) fn read(content: &Content) -> candle_core::Result<Self> {
        let array = |key: &str| content.metadata.get(key).context("no vocabulary")?.to_vec();
        let names = array("tokenizer.ggml.tokens")?;
        let kinds = array("tokenizer.ggml.token_type")?;
        let word = |(name, kind): (&Value, &Value)| -> candle_core::Result<Vec<u8>> {
            let name = name.to_string()?;
            match kind.to_i32()? {
                CONTROL => Ok([&[255], name.as_bytes()].concat()),
                _ => name.chars().map(byte).collect(),
            }
        };
        let words: Vec<Vec<u8>> = names.iter().zip(kinds).map(word).collect::<candle_core::Result<_>>()?;
        let mut tokenizer = Tokenizer::from_gguf(content)?;
        // candle does not know the file's pre-tokenizer "smollm" and takes GPT-2's, which puts a space in front
        // and keeps numbers whole.
        let split = Sequence::new(vec![Digits::new(true).into(), ByteLevel::new(false, true, true).into()]);
        tokenizer.with_pre_tokenizer(Some(split));
        // Text is never more than text: `<|im_end|>` in a document must not end a turn.
        tokenizer.set_encode_special_tokens(true);
        let special = |name: &str| tokenizer.token_to_id(name).context("no chat tokens");
        let (start, end) = (special("<|im_start|>")?, special("<|im_end|>")?);
        let longest = words.iter().map(Vec::len).max().unwrap_or(1);
        Ok(Self { tokenizer, words, end, start, longest })
    }

    /// The tokens of a text, none of them special.
    pub(super) fn tokens(&self, text: &str) -> candle_core::Result<Vec<u32>> {
        let encoding = self.tokenizer.encode_fast(text, false).map_err(candle_core::Error::wrap)?;
        Ok(encoding.get_ids().to_vec())
    }

    /// Fewer tokens than this `prompt` cannot have; costs nothing, however long it is.
    pub(super) fn least(&self, prompt: &Prompt) -> usize {
        let examples = prompt.examples.iter().map(|(asked, answered)| asked.len() + answered.len());
        (prompt.system.len() + prompt.user.len() + examples.sum::<usize>()) / self.longest
    }

    /// `prompt` in the chat template of SmolLM2.
    pub(super) fn chat(&self, prompt: &Prompt) -> candle_core::Result<Chat> {
        let system = if prompt.system.is_empty() { NO_SYSTEM } else { &prompt.system };
        let mut shared = self.turn("system", system)?;
        for (asked, answered) in &prompt.examples {
            shared.extend(self.turn("user", asked)?);
            shared.extend(self.turn("assistant", answered)?);
        }
        let mut own = self.turn("user", &prompt.user)?;
        own.push(self.start);
        own.extend(self.tokens("assistant\n")?);
        Ok(Chat { shared, own })
    }

    fn turn(&self, role: &str, text: &str) -> candle_core::Result<Vec<u32>> {
        let mut tokens = vec![self.start];
        tokens.extend(self.tokens(&format!("{role}\n{text}"))?);
        tokens.push(self.end);
        tokens.extend(self.tokens("\n")?);
        Ok(tokens)
    }

    /// Whether `token` stands for text.
    pub(super) fn is_text(&self, token: u32) -> bool {
        self.words.get(token as usize).is_some_and(|word| word.first() != Some(&255))
    }

    /// The text of `tokens`; a character that is cut off at the end is left out.
    pub(super) fn text(&self, tokens: &[u32]) -> String {
        let bytes: Vec<u8> =
            tokens.iter().filter_map(|&t| self.words.get(t as usize)).flatten().copied().collect();
        let whole = match std::str::from_utf8(&bytes) {
            Err(e) if e.error_len().is_none() => &bytes[..e.valid_up_to()],
            _ => &bytes,
        };
        String::from_utf8_lossy(whole).into_owned()
    }
}

/// The byte that a character of a byte-level vocabulary stands for: the inverse of GPT-2's `bytes_to_unicode`,
/// which moves the bytes that cannot be printed to U+0100 and above, in order.
fn byte(c: char) -> candle_core::Result<u8> {
    let code = c as u32;
    let byte = match code {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => code,
        0x100..=0x120 => code - 0x100,
        0x121..=0x142 => code - 0x121 + 0x7f,
        0x143 => 0xad,
        _ => bail!("the vocabulary has the character {c:?}, which stands for no byte"),
    };
    Ok(byte as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_one_character() {
        let characters = (0..0x144).filter_map(char::from_u32).filter_map(|c| byte(c).ok());
        let mut bytes: Vec<u8> = characters.collect();
        bytes.sort_unstable();
        assert_eq!(bytes, (0..=255).collect::<Vec<u8>>());
        assert_eq!(byte('Ġ').expect("is the space"), b' ');
        assert!(byte('語').is_err());
    }
}
