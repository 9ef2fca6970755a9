//! A question in one language finds its answer in another.

use rankgate::prelude::*;

use crate::fixtures;

pub fn register(suite: &mut Suite) {
    suite
        .eval("multilingual")
        .describe("a question in one language finds the document in another")
        .cases(|| fixtures::queries(|category| category == "cross-language"))
        .subject(|case, _| fixtures::pipeline()?.query(&Request::from(&case.query)).map(|(hits, _)| hits))
        .requires(["bm25", "embed", "vector", "fusion"])
        .score(recall_at(5))
        .threshold(0.70)
        .columns(|case, out| [("query", case.query.text.clone()), ("top 3", out.top(3))])
        .snapshot(|_, out| ranking_lines(out));
}
