//! BM25: the words of a collection, in a tantivy index on disk.
//!
//! A document has three fields, title, path and body, and each is indexed in two layers: the exact words with
//! their positions, and their stems. A query is never handed to a parser that could refuse it; the words
//! that [`parse`](crate::text::parse) found are looked up one by one, and a document's score is
//!
//! ```text
//! Σ words  idf(word) · Σ layers, fields  weight(layer) · weight(field) · tf · 2.2 / (tf + 1.2 · (0.25 + 0.75 · len / avg))
//! idf(word) = ln(1 + (N − df + 0.5) / (df + 0.5))
//! ```
//!
//! (Robertson and Zaragoza, *The Probabilistic Relevance Framework*, 2009, with the usual k1 = 1.2, b = 0.75.)
//! N and df count the living documents of the collection that is searched, and a word counts once however
//! many forms and fields it is found in, so scores depend on the documents alone: not on other collections,
//! on the order of indexing or on what was deleted.
//!
//! What is asked for is relaxed in grades, each word as little as it needs (the table in `bm25/plan.rs`).
//! Documents with any of the words are found, and the score of those with every word is doubled.

use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, STRING, Schema, TextFieldIndexing, TextOptions,
};

use crate::error::{Error, ErrorKind};
use crate::text::Tokenizer;

mod found;
mod plan;
mod postings;
mod score;
mod search;
mod writer;

pub use found::{Contribution, Level, LexicalHit, LexicalResult, TermStatistics};
pub use search::Lexical;
pub use writer::{LexicalDoc, LexicalWriter};

/// Identifies the way of reading words and the schema: an index of another version has to be made anew.
pub const LEXICAL_VERSION: &str = version(Tokenizer::DEFAULT);

/// The version of indexes that `tokenizer` makes.
pub const fn version(tokenizer: Tokenizer) -> &'static str {
    match tokenizer {
        Tokenizer::Words => "lexical-1-words",
        Tokenizer::Pairs => "lexical-1",
    }
}

/// tantivy's name for the tokenizer that the writer registers; readers look up terms only.
const TOKENIZER: &str = "marked";

/// A field of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LexicalField {
    /// The title.
    Title,
    /// The id, when it is a path.
    Path,
    /// The text, without the title if it begins with it.
    Body,
}

impl LexicalField {
    /// All fields, in the order in which they are stored.
    const ALL: [Self; 3] = [Self::Title, Self::Path, Self::Body];

    /// What a word found here counts, next to one in the body. A title is about its document as a whole; a
    /// path is, too, but often names a folder or a number.
    const fn weight(self) -> f32 {
        match self {
            Self::Title => 2.0,
            Self::Path => 1.5,
            Self::Body => 1.0,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Title => "title",
            Self::Path => "path",
            Self::Body => "body",
        }
    }
}

/// In which of the two forms a word was indexed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Layer {
    /// As written, normalised.
    Exact,
    /// Stemmed in the document's language, accents folded.
    Stem,
}

/// The tantivy fields of an index.
#[derive(Debug, Clone, Copy)]
struct Fields {
    key: Field,
    collection: Field,
    lang: Field,
    exact: [Field; 3],
    stem: [Field; 3],
}

impl Fields {
    fn of(self, layer: Layer) -> [Field; 3] {
        match layer {
            Layer::Exact => self.exact,
            Layer::Stem => self.stem,
        }
    }
}

fn schema() -> (Schema, Fields) {
    let mut builder = Schema::builder();
    let key = builder.add_u64_field("key", INDEXED | FAST);
    let collection = builder.add_text_field("collection", STRING);
    let lang = builder.add_text_field("lang", STRING);
    let words = TextFieldIndexing::default()
        .set_tokenizer(TOKENIZER)
        .set_index_option(IndexRecordOption::WithFreqsAndPositions);
    // Stems are never looked for as phrases, and use the lengths of the exact words.
    let stems = TextFieldIndexing::default()
        .set_tokenizer(TOKENIZER)
        .set_index_option(IndexRecordOption::WithFreqs)
        .set_fieldnorms(false);
    let mut add = |suffix: &str, indexing: &TextFieldIndexing| {
        LexicalField::ALL.map(|field| {
            let options = TextOptions::default().set_indexing_options(indexing.clone());
            builder.add_text_field(&format!("{}{suffix}", field.name()), options)
        })
    };
    let exact = add("", &words);
    let stem = add("_stems", &stems);
    (builder.build(), Fields { key, collection, lang, exact, stem })
}

/// How texts become words, in documents and queries alike.
#[derive(Debug, Clone)]
struct Reading {
    tokenizer: Tokenizer,
    /// The languages whose stems the index has.
    languages: Vec<String>,
}

/// The tokenizer and the generation in a commit's payload, or `None` if the index is of an unknown version.
fn made_by(payload: Option<&str>) -> Option<(Tokenizer, u64)> {
    let Some(payload) = payload else { return Some((Tokenizer::DEFAULT, 0)) };
    let (made, generation) = payload.split_once(' ')?;
    let tokenizer = [Tokenizer::Words, Tokenizer::Pairs].into_iter().find(|&t| version(t) == made)?;
    Some((tokenizer, generation.trim().parse().ok()?))
}

/// A tantivy failure in the index folder `dir`, in words that say what to do.
fn failed(dir: &std::path::Path, doing: &str, source: tantivy::TantivyError) -> Error {
    use tantivy::TantivyError as T;
    let damaged = "the index is damaged: delete the folder and index again, no document is lost";
    let (kind, hint) = match &source {
        T::IoError(e) if matches!(e.kind(), std::io::ErrorKind::StorageFull) => {
            (ErrorKind::Io, Some("the disk is full: free some space and run it again"))
        }
        T::IoError(_) | T::OpenDirectoryError(_) | T::OpenWriteError(_) => {
            (ErrorKind::Io, Some("check the folder and its permissions"))
        }
        T::LockFailure(..) => {
            (ErrorKind::Busy, Some("another process is indexing: wait for it and try again"))
        }
        T::OpenReadError(_) | T::DataCorruption(_) | T::IncompatibleIndex(_) => {
            (ErrorKind::Input, Some(damaged))
        }
        _ => (ErrorKind::Internal, None),
    };
    let error = Error::new(kind, format!("{}: cannot {doing}", dir.display())).with_source(source);
    match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}
