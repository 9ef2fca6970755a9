//! A language model expands queries: what it proposes is valid, no echo, and stays with the subject.

use rankgate::corpus::Expansion;
use rankgate::metrics;
use rankgate::pipeline::{Expand, expansion};
use rankgate::prelude::*;
use rankgate::text;
use serde::Serialize;

use crate::fixtures;

/// What was proposed for a query, and what came of it.
#[derive(Serialize)]
struct Expanded {
    expansion: Expansion,
    plain: Ranking,
    expanded: Ranking,
}

impl Expanded {
    fn of(query: &Query, trial: u32) -> Result<Self> {
        let pipeline = fixtures::pipeline()?;
        let with = |expand| Request { expand: Some(expand), ..fixtures::sampled(query, trial) };
        Ok(Self {
            expansion: pipeline.expansion(&with(Expand::Model))?.0,
            plain: pipeline.query(&with(Expand::Never))?.0,
            expanded: pipeline.query(&with(Expand::Model))?.0,
        })
    }

    fn valid(&self) -> Result<bool> {
        let value = serde_json::to_value(&self.expansion).map_err(|e| Error::input(e.to_string()))?;
        Ok(jsonschema::is_valid(expansion::schema().as_value(), &value))
    }

    /// 0.5 when the expansion changes nothing, 1 when it brings all relevant documents among the first five, 0 when
    /// it loses them.
    fn help(&self, judgments: &Judgments) -> Option<f64> {
        let recall = |ranking: &Ranking| metrics::recall_at(5, ranking.docids(), judgments);
        Some(0.5 + (recall(&self.expanded)? - recall(&self.plain)?) / 2.0)
    }
}

/// Whether some variant has other words than the query: what a degenerate expansion echoes is thrown out before.
fn differs(variants: &[String], query: &str) -> bool {
    let words = |text: &str| text::tokens(text).into_iter().map(|token| token.text).collect::<Vec<_>>();
    variants.iter().any(|variant| words(variant) != words(query))
}

pub fn register(suite: &mut Suite) {
    suite
        .eval("expansion")
        .describe("a language model proposes valid variants of a query that stay with its subject")
        // 32 of the 126 queries, three times: 96 answers of the model, 3 to 6 s each on two idle cores.
        .cases(fixtures::some_queries)
        .subject(|case, cx| Expanded::of(&case.query, cx.trial()))
        .setup(|| fixtures::pipeline().map(|_| ()))
        .trials(3)
        .timeout(fixtures::PATIENCE)
        .requires(["generate"])
        .score(scorer("valid", |_: &JudgedQuery, out: &Expanded| out.valid()).at_least(1.0))
        .score_with("new words", |case, out| differs(&out.expansion.lexical_queries, &case.query.text))
        .score_with("new questions", |case, out| differs(&out.expansion.vector_queries, &case.query.text))
        .score(
            scorer("help", |case: &JudgedQuery, out: &Expanded| {
                out.help(&case.judgments).ok_or("nothing is relevant")
            })
            .report_only(),
        )
        // Below it, the model answers the same to everything, or repeats what it was asked.
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
