//! The engine finds the document that answers a question.

use rankgate::prelude::*;

pub fn register(suite: &mut Suite) {
    suite
        .eval("search")
        .describe("the engine finds the document that answers")
        .cases(|| {
            [("rollback", "roll back a release", "deploy.md"), ("slow", "slow queries", "tuning.md")].map(
                |(id, query, answer)| Example::new(id, query).expecting(Judgments::from([(answer.into(), 1)])),
            )
            .to_vec()
        })
        .subject(|case, _| Ok::<_, Error>(Ranking::from_docids(acme_search::search(case.input))))
        .score(recall_at(1))
        .score(reciprocal_rank())
        .threshold(0.9)
        .requires(["overlap"])
        .columns(|case, out| [("query", case.input.to_string()), ("top 3", out.top(3))])
        .snapshot(|_, out| ranking_lines(out));
}
