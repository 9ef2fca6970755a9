//! From a name in the settings to files, conventions and a fingerprint.

use sha2::{Digest, Sha256};

use super::catalogue::{self, Entry, Use, unknown};
use super::fetch::{Trust, ensure};
use super::onnx::Files;
use super::runtime;
use super::{check, hub};
use crate::corpus::hex;
use crate::error::{Error, Result};
use crate::settings::{ModelRole, ModelSettings, Pooling};

/// A model that can be run: of the catalogue or of the settings.
#[derive(Debug, Clone)]
pub(super) struct Resolved {
    pub(super) name: String,
    pub(super) dims: usize,
    pub(super) pooling: Pooling,
    pub(super) query_prefix: String,
    pub(super) passage_prefix: String,
    pub(super) max_tokens: usize,
    pub(super) languages: Option<&'static [u8]>,
    source: Source,
}

#[derive(Debug, Clone)]
enum Source {
    Catalogue(&'static Entry),
    /// The model's file name, and every file's name and SHA-256.
    Hub(String, Vec<(String, String)>),
}

impl Resolved {
    /// The embedder or cross-encoder called `name`. One of the settings is fetched here, if it never was:
    /// only its files say what it is. Fails when there is none of that name, or it has the other role.
    pub(super) fn find(name: &str, role: ModelRole, settings: &ModelSettings) -> Result<Self> {
        if let Some(custom) = settings.custom.get(name) {
            if custom.role != role {
                return Err(wrong_role(name, role));
            }
            let manifest = hub::ensure(name, custom, settings)?;
            let hashes = manifest.files.into_iter().map(|(name, file)| (name, file.sha256));
            return Ok(Self {
                name: name.into(),
                dims: manifest.dims,
                pooling: custom.pooling,
                query_prefix: custom.query_prefix.clone(),
                passage_prefix: custom.passage_prefix.clone(),
                max_tokens: custom.max_tokens,
                languages: None,
                source: Source::Hub(custom.file_name().into(), hashes.collect()),
            });
        }
        let entry = catalogue::find(name).ok_or_else(|| unknown(name, settings))?;
        match entry.role {
            Use::Embedder(conventions) if role == ModelRole::Embedder => {
                let languages = conventions.languages.filter(|_| settings.language_neutral);
                Ok(Self::pinned(entry, catalogue::Conventions { languages, ..conventions }))
            }
            _ => Err(wrong_role(name, role)),
        }
    }

    pub(super) fn pinned(entry: &'static Entry, conventions: catalogue::Conventions<'static>) -> Self {
        Self {
            name: entry.name.into(),
            dims: conventions.dims,
            pooling: conventions.pooling,
            query_prefix: conventions.query_prefix.into(),
            passage_prefix: conventions.passage_prefix.into(),
            max_tokens: conventions.max_tokens,
            languages: conventions.languages,
            source: Source::Catalogue(entry),
        }
    }

    /// The model's files, fetched if need be.
    pub(super) fn files(&self, settings: &ModelSettings) -> Result<Files> {
        let (folder, model) = match &self.source {
            Source::Catalogue(entry) => (ensure(entry, settings, Trust::Size, check::vectors)?, "model.onnx"),
            Source::Hub(model, _) => (hub::folder(&self.name)?, model.as_str()),
        };
        Ok(Files {
            name: self.name.clone(),
            model: folder.join(model),
            tokenizer: folder.join("tokenizer.json"),
            max_tokens: self.max_tokens,
        })
    }

    /// SHA-256 over the hashes of the files, the runtime's version and the conventions, in canonical JSON.
    pub(super) fn fingerprint(&self, settings: &ModelSettings) -> Result<String> {
        let mut files: Vec<(String, String)> = match &self.source {
            Source::Catalogue(entry) => {
                entry.files().iter().map(|file| (file.name.into(), file.sha256.into())).collect()
            }
            Source::Hub(_, hashes) => hashes.clone(),
        };
        files.sort();
        // Keys in alphabetical order, whatever serde_json's features.
        let canonical = serde_json::json!([
            ["files", files],
            ["languages", self.languages.map(|bytes| hex(&Sha256::digest(bytes)))],
            ["max_tokens", self.max_tokens],
            ["passage_prefix", self.passage_prefix],
            ["pooling", self.pooling],
            ["query_prefix", self.query_prefix],
            ["runtime", runtime::version(settings)?],
        ]);
        Ok(hex(&Sha256::digest(canonical.to_string())))
    }
}

fn wrong_role(name: &str, role: ModelRole) -> Error {
    let (wanted, key) = match role {
        ModelRole::Embedder => ("an embedder", "embedder"),
        ModelRole::CrossEncoder => ("a cross-encoder", "reranker"),
    };
    Error::usage(format!("model `{name}` is not {wanted}"))
        .with_hint(format!("choose another {key}, or set its `role` in .config/rankgate.toml"))
}
