//! The hybrid pipeline answers every kind of query, in time.

use std::time::Duration;

use rankgate::prelude::*;

use crate::fixtures;

pub fn register(suite: &mut Suite) {
    suite
        .eval("query")
        .describe("words and meaning together rank the judged documents, adversarial queries included")
        .cases(|| fixtures::queries(|category| category != "cross-language"))
        .subject(|case, _| fixtures::pipeline()?.query(&Request::from(&case.query)).map(|(hits, _)| hits))
        .requires(["bm25", "embed", "vector", "fusion"])
        .score(recall_at(5))
        .score(ndcg_at(10))
        .score(latency(Duration::from_secs(2)))
        .threshold(0.80)
        .columns(|case, out| [("query", case.query.text.clone()), ("top 3", out.top(3))])
        .snapshot(|_, out| ranking_lines(out));
}
