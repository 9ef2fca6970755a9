//! What a search found.

use crate::corpus::{Expansion, Ranking};

/// What a search found, and what it searched for beside the query.
#[derive(Debug, Clone, Default)]
pub(super) struct Found {
    pub ranking: Ranking,
    pub expansion: Option<Expansion>,
}

impl From<Ranking> for Found {
    fn from(ranking: Ranking) -> Self {
        Self { ranking, expansion: None }
    }
}
