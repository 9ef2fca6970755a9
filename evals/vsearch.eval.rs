//! Vector search ranks the judged documents, in the query's language and in others.

use rankgate::prelude::*;

use crate::fixtures;

pub fn register(suite: &mut Suite) {
    suite
        .eval("vsearch")
        .describe("vector search ranks the judged documents")
        .cases(|| fixtures::queries(|category| category == "same-language"))
        .subject(|case, _| fixtures::pipeline()?.vsearch(&Request::from(&case.query)).map(|(hits, _)| hits))
        .setup(|| fixtures::pipeline().map(|_| ()))
        .requires(["embed", "vector"])
        .score(recall_at(5))
        .score(recall_at(10))
        .score(ndcg_at(10))
        // It stands at 0.80; one case is worth 0.01 to 0.02.
        .threshold(0.77)
        .case_floor(0.5)
        .known_miss(
            "q32",
            "a lost badge is two lines of a long page on access, and the question names neither",
        )
        .known_miss("q36", "hardware keys and disks are both hardware that is reported")
        .known_miss("q57", "pages on logs in other languages are as near as those that state the days")
        .columns(|case, out| [("query", case.query.text.clone()), ("top 3", out.top(3))])
        .snapshot(|_, out| fixtures::docids(out));
}
