//! More work finds no less: the same queries, fast, balanced and thorough.

use std::time::Duration;

use rankgate::prelude::*;
use rankgate::settings::Thoroughness;
use serde::Serialize;
use serde_json::json;

use crate::fixtures;

/// A ranking, and how long it may have taken.
#[derive(Serialize)]
struct Found {
    ranking: Ranking,
    budget: Duration,
}

impl Ranked for Found {
    fn ranking(&self) -> &Ranking {
        &self.ranking
    }
}

/// Searches at `level`; each of `stages` must have done its work, so that the level is what it is called.
fn find(query: &Query, level: Thoroughness, stages: &[&str], seconds: u64) -> Result<Found> {
    let request = fixtures::sampled(query, 0).thoroughness(level);
    let (ranking, trace) = fixtures::pipeline()?.query(&request)?;
    match stages.iter().find(|stage| !trace.sound(stage)) {
        None => Ok(Found { ranking, budget: Duration::from_secs(seconds) }),
        Some(missing) => {
            let said = trace.stage(missing).map(|stage| json!(stage.fields));
            Err(Error::input(format!("stage `{missing}` did not run: {}", said.unwrap_or_default())))
        }
    }
}

pub fn register(suite: &mut Suite) {
    suite
        .eval("thoroughness")
        .describe("balanced ranks no worse than fast, and thorough no worse than balanced")
        // The queries of the eval `expansion`, whose first trial has their expansions.
        .cases(fixtures::some_queries)
        .variant("fast", |case, _| find(&case.query, Thoroughness::Fast, &["bm25"], 1))
        .variant("balanced", |case, _| {
            find(&case.query, Thoroughness::Balanced, &["bm25", "vector", "fusion"], 3)
        })
        .variant("thorough", |case, _| {
            find(&case.query, Thoroughness::Thorough, &["bm25", "vector", "expansion", "fusion"], 8)
        })
        .setup(|| fixtures::pipeline().map(|_| ()))
        .timeout(fixtures::PATIENCE)
        .score(recall_at(5))
        .score(ndcg_at(10))
        // The first search of a query meets a model, which answers as fast as the machine lets it.
        .score(
            Scorer::new("in time", |seen: &Observed<'_, JudgedQuery, Found>| {
                let over = seen.took.as_secs_f64() / seen.output.budget.as_secs_f64() - 1.0;
                (1.0 - over).clamp(0.0, 1.0)
            })
            .report_only(),
        )
        // Fast stands lowest, at 0.6: what matters here is the order.
        .threshold(0.55)
        .case_floor(0.0)
        .ordered(["thorough", "balanced", "fast"])
        .columns(|case, out| [("query", case.query.text.clone()), ("top 3", out.ranking.top(3))]);
}
