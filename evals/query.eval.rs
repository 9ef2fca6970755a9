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
        .setup(|| fixtures::pipeline().map(|_| ()))
        .requires(["bm25", "embed", "vector", "fusion"])
        // It stands at 0.87 and 0.92.
        .score(recall_at(5).at_least(0.84))
        .score(ndcg_at(10).at_least(0.90))
        .score(latency(Duration::from_secs(2)).at_least(0.70))
        .case_floor(0.5)
        .known_miss("a23", "the German abbreviation stands for what other languages' pages call UPS")
        .known_miss("q57", "pages on logs in other languages are as near as those that state the days")
        .known_miss("q27", "two of the three pages that help are in other languages")
        .columns(|case, out| [("query", case.query.text.clone()), ("top 3", out.top(3))])
        .snapshot(|_, out| fixtures::docids(out));
}
