//! Vector search ranks the judged documents, in the query's language and in others.

use rankgate::prelude::*;

use crate::fixtures;

pub fn register(suite: &mut Suite) {
    suite
        .eval("vsearch")
        .describe("vector search ranks the judged documents")
        .cases(|| fixtures::queries(|category| category == "same-language"))
        .subject(|case, _| fixtures::pipeline()?.vsearch(&Request::from(&case.query)).map(|(hits, _)| hits))
        .requires(["embed", "vector"])
        .score(recall_at(5))
        .score(recall_at(10))
        .score(ndcg_at(10))
        .threshold(0.80)
        .columns(|case, out| [("query", case.query.text.clone()), ("top 3", out.top(3))])
        .snapshot(|_, out| ranking_lines(out));
}
