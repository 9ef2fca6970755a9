//! Text: normal forms, words of any script, stems, the query grammar, chunks, snippets, personal data.

mod chunk;
mod cited;
mod function_words;
mod grammar;
mod normalize;
mod one_line;
mod scrub;
mod snippet;
mod stem;
mod telling;
mod tokens;
mod unwrap;

pub use chunk::{Chunk, chunks};
pub use cited::{citations, sentences, uncited};
pub use function_words::{is_function_word, language_of};
pub use grammar::{LexicalQuery, parse};
pub use normalize::{fold, normalize};
pub use one_line::one_line;
pub use scrub::{Family, Pii, REDACTED, find_pii, scrub};
pub use snippet::snippet;
pub use stem::{DEFAULT_LANGUAGE, stem};
pub use telling::{TellingKind, TellingWord, negates, telling};
pub use tokens::{Segment, Token, TokenKind, Tokenizer, segments, tokens};
pub use unwrap::{Line, unwrapped};
