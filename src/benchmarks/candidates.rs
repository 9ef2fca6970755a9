//! Candidate benchmarks: embedders, fusion rules and rerankers compared over the whole path of a search, each over a
//! fresh index of the same documents, and what the figures recommend.
//!
//! A candidate in which a stage that it stands for did not run is failed, with the case and the stage: it keeps no
//! figures, since they would be another candidate's.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::models::catalogue::{self, Use};
use crate::settings::{Fusion, ModelSettings, Settings};

mod artefact;
mod cases;
mod delta;
mod measure;
mod page;
mod recommend;

pub use artefact::{
    Artefact, Candidate, CaseResult, CaseText, Cost, Figures, Kind, Latency, Machine, SetTexts,
};
pub use cases::{ASK, CorpusFacts, Set, fixtures, own};
pub use delta::{Delta, Points, delta};
pub use measure::{Job, Models, measure, open_models};
pub use page::page;
pub use recommend::{Comparison, Recommendation, Scored, SetDifference, recommend};

/// The id of the control: words alone.
pub const CONTROL: &str = "bm25";
/// Behind an embedder's name: what tells languages apart stays in its vectors.
pub const WITH_LANGUAGES: &str = "+languages";

/// How the head of a candidate's list is looked at again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rerank {
    /// Not at all.
    #[default]
    None,
    /// By the embedder's token vectors.
    LateInteraction,
    /// By the cross-encoder of the settings.
    CrossEncoder,
}

/// One way to search.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The embedder, [`WITH_LANGUAGES`] behind it where that holds; `None` for words alone.
    pub embedder: Option<String>,
    /// How the lanes become one.
    pub fusion: Fusion,
    /// How the head is reranked.
    pub rerank: Rerank,
}

impl Spec {
    /// What the settings make of a balanced search.
    pub fn of(settings: &Settings) -> Self {
        let rerank = match (settings.search.rerank_depth, settings.models.reranker.as_str()) {
            (0, _) => Rerank::None,
            (_, "") => Rerank::LateInteraction,
            _ => Rerank::CrossEncoder,
        };
        Self { embedder: Some(embedder_name(&settings.models)), fusion: settings.search.fusion, rerank }
    }

    /// `embedder/fusion/rerank`, or [`CONTROL`].
    ///
    /// ```
    /// use rankgate::benchmarks::candidates::Spec;
    /// assert_eq!(Spec::of(&Default::default()).id(), "multilingual-e5-small/adaptive/late-interaction");
    /// assert_eq!(Spec::default().id(), "bm25");
    /// ```
    pub fn id(&self) -> String {
        let Some(embedder) = &self.embedder else { return CONTROL.into() };
        let fusion = match self.fusion {
            Fusion::Adaptive => "adaptive",
            Fusion::Rrf => "rrf",
        };
        let rerank = match self.rerank {
            Rerank::None => "none",
            Rerank::LateInteraction => "late-interaction",
            Rerank::CrossEncoder => "cross-encoder",
        };
        format!("{embedder}/{fusion}/{rerank}")
    }
}

/// The embedder of the settings, as a candidate calls it.
pub fn embedder_name(models: &ModelSettings) -> String {
    let plain = !models.language_neutral && has_languages(&models.embedder);
    format!("{}{}", models.embedder, if plain { WITH_LANGUAGES } else { "" })
}

/// Every embedder that can be named: that of the settings first, those of the catalogue with what tells languages
/// apart taken out and left in, and those of the settings' own models.
pub fn embedders(models: &ModelSettings) -> Vec<String> {
    let mut names = vec![embedder_name(models)];
    for entry in catalogue::entries().filter(|entry| matches!(entry.role, Use::Embedder(_))) {
        names.push(entry.name.into());
        if has_languages(entry.name) {
            names.push(format!("{}{WITH_LANGUAGES}", entry.name));
        }
    }
    let custom = models.custom.iter().filter(|(_, model)| model.role == Default::default());
    names.extend(custom.map(|(name, _)| name.clone()));
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// Whether it is known what tells languages apart in the vectors of the embedder.
fn has_languages(name: &str) -> bool {
    catalogue::find(name).is_some_and(
        |entry| matches!(entry.role, Use::Embedder(conventions) if conventions.languages.is_some()),
    )
}

/// The settings with another embedder, called as in [`Spec::embedder`].
pub fn with_embedder(settings: &Settings, name: &str) -> Settings {
    let mut settings = settings.clone();
    let plain = name.strip_suffix(WITH_LANGUAGES);
    settings.models.embedder = plain.unwrap_or(name).into();
    settings.models.language_neutral = plain.is_none();
    settings
}

/// The whole matrix: for each embedder both fusion rules, each without reranking, with late interaction, and with the
/// cross-encoder of the settings, if there is one. The control and the way of the settings are not among them twice.
pub fn matrix(settings: &Settings, embedders: &[String]) -> Vec<Spec> {
    let mut reranks = vec![Rerank::None, Rerank::LateInteraction];
    if !settings.models.reranker.is_empty() {
        reranks.push(Rerank::CrossEncoder);
    }
    let mut specs = vec![Spec::of(settings)];
    for embedder in embedders {
        for fusion in [Fusion::Adaptive, Fusion::Rrf] {
            let spec = |rerank| Spec { embedder: Some(embedder.clone()), fusion, rerank };
            specs.extend(
                reranks.iter().copied().map(spec).filter(|spec| *spec != specs[0]).collect::<Vec<_>>(),
            );
        }
    }
    specs.push(Spec::default());
    specs
}

/// One job for each embedder among `specs`, in their order: what a process of its own should measure. Each has a
/// folder for its index in `folder`.
pub fn jobs(corpus: &Path, folder: &Path, settings: &Settings, specs: &[Spec], sets: &[Set]) -> Vec<Job> {
    let mut jobs: Vec<Job> = Vec::new();
    for spec in specs {
        match jobs.iter_mut().find(|job| job.specs[0].embedder == spec.embedder) {
            Some(job) => job.specs.push(spec.clone()),
            None => jobs.push(Job {
                corpus: corpus.into(),
                index: folder.join(jobs.len().to_string()),
                settings: match &spec.embedder {
                    Some(name) => with_embedder(settings, name),
                    None => settings.clone(),
                },
                specs: vec![spec.clone()],
                sets: sets.to_vec(),
                explained: 0,
            }),
        }
    }
    jobs
}

/// Where artefacts of this kind are kept, in a project's folder.
pub fn folder(project: &Path, kind: Kind) -> PathBuf {
    project.join("fixtures").join(kind.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_matrix_has_three_embedder_settings_and_every_candidate_once() {
        let settings = Settings::default();
        let embedders = embedders(&settings.models);
        assert_eq!(
            embedders,
            ["multilingual-e5-small", "multilingual-e5-small+languages", "all-minilm-l6-v2"]
        );
        let specs = matrix(&settings, &embedders);
        let ids: std::collections::HashSet<String> = specs.iter().map(Spec::id).collect();
        assert_eq!((specs.len(), ids.len()), (13, 13));
        assert_eq!(specs[0], Spec::of(&settings));
        let jobs = jobs(Path::new("c"), Path::new("i"), &settings, &specs, &[]);
        assert_eq!(jobs.iter().map(|job| job.specs.len()).collect::<Vec<_>>(), [4, 4, 4, 1]);
        assert!(!jobs[1].settings.models.language_neutral && jobs[2].settings.models.language_neutral);
    }

    #[test]
    fn a_cross_encoder_of_the_settings_is_the_default_and_a_candidate() {
        let mut settings = Settings::default();
        settings.models.reranker = "mine".into();
        assert_eq!(Spec::of(&settings).rerank, Rerank::CrossEncoder);
        assert_eq!(matrix(&settings, &["hash".into()]).len(), 1 + 6 + 1, "the default has another embedder");
    }
}
