//! A language model expands queries: what it proposes is valid, no echo, and belongs to its query.

use std::sync::Arc;

use rankgate::models::Embedder;
use rankgate::pipeline::Expand;
use rankgate::prelude::*;
use serde::Serialize;

use crate::fixtures;

/// What was proposed for a query, and what came of it.
#[derive(Serialize)]
struct Outcome {
    expansion: Expansion,
    plain: Ranking,
    expanded: Ranking,
}

impl Outcome {
    fn of(query: &Query, trial: u32) -> Result<Self> {
        let pipeline = fixtures::pipeline()?;
        let with = |expand| Request { expand: Some(expand), ..fixtures::sampled(query, trial) };
        Ok(Self {
            expansion: pipeline.expansion(&with(Expand::Model))?.0,
            plain: pipeline.query(&with(Expand::Never))?.0,
            expanded: pipeline.query(&with(Expand::Model))?.0,
        })
    }
}

impl Expanded for Outcome {
    fn expansion(&self) -> &Expansion {
        &self.expansion
    }
}

/// The texts of all cases.
fn texts() -> Result<Vec<String>> {
    Ok(fixtures::some_queries()?.into_iter().map(|case| case.query.text).collect())
}

fn embedder() -> Result<Arc<dyn Embedder>> {
    fixtures::embedder()?.ok_or_else(|| Error::usage("the settings name no embedder"))
}

pub fn register(suite: &mut Suite) {
    suite
        .eval("expansion")
        .describe("a language model proposes valid variants of a query that belong to it")
        // 31 of the 126 queries, three times: 93 answers of the model, 3 to 6 s each on two idle cores.
        .cases(fixtures::some_queries)
        .subject(|case, cx| Outcome::of(&case.query, cx.trial()))
        .setup(|| fixtures::pipeline().map(|_| ()))
        .trials(3)
        .timeout(fixtures::PATIENCE)
        .requires(["generate"])
        .score(expansion_valid().at_least(1.0))
        // An echo is thrown out before it comes here, and so is what has nothing to do with the query: a model that
        // says the same to everything has no variants left.
        // The small model stands at 0.39: its keywords are mostly the query's own.
        .score(has_lexical_variants().at_least(0.25))
        .score(has_vector_variants())
        .score(varied(texts, embedder).at_least(0.8))
        .score(added_relevant_at(5, |out: &Outcome| (&out.plain, &out.expanded)).report_only())
        .threshold(0.5)
        .case_floor(0.0)
        .columns(|case, out| {
            let shown = |variants: &[String]| variants.join(" | ");
            [
                ("query", case.query.text.clone()),
                ("words", shown(&out.expansion.lexical_queries)),
                ("questions", shown(&out.expansion.vector_queries)),
            ]
        });
}
