//! Chinese, Japanese and Korean by words: the default tokenizer finds what it was promoted for, and keeps every gate.
//!
//! Gates of time are left to `rankgate bench cjk-lexical`: a busy machine changes no verdict here.

use once_cell::sync::OnceCell;
use rankgate::benchmarks::cjk_lexical::decision;
use rankgate::benchmarks::cjk_lexical::fixture::Fixture;
use rankgate::benchmarks::cjk_lexical::gates::{Gate, promotion};
use rankgate::benchmarks::cjk_lexical::measure::{CoRun, co_run};
use rankgate::prelude::*;

use crate::fixtures::project;

fn fixture() -> Result<Fixture> {
    Fixture::read(&project().join("fixtures/cjk-lexical"))
}

/// Both tokenizers over all queries, and the gates that judge them.
fn decided() -> Result<&'static (CoRun, Vec<Gate>)> {
    static DECIDED: OnceCell<(CoRun, Vec<Gate>)> = OnceCell::new();
    DECIDED.get_or_try_init(|| {
        let fixture = fixture()?;
        let gates = decision::gates(&fixture)?.ok_or_else(|| Error::not_found("there are no promotion gates"))?;
        let comparison = decision::comparison(&fixture, Some(&gates))?;
        let run = co_run(&fixture, &fixture.queries.iter().collect::<Vec<_>>(), comparison.as_ref(), 0)?;
        decision::check(&fixture, &gates, &run)?;
        let mut judged = promotion(&gates, &run.baseline, &run.candidate).gates;
        judged.retain(|gate| !gate.is_timed());
        Ok((run, judged))
    })
}

pub fn register(suite: &mut Suite) {
    suite
        .eval("cjk_lexical")
        .describe("queries in Chinese, Japanese and Korean find their documents by words")
        .cases(|| Ok::<_, Error>(fixture()?.queries.iter().map(JudgedQuery::from).collect::<Vec<_>>()))
        .subject(|case, _| {
            let cases = &decided()?.0.candidate.bm25.cases;
            let found = cases.iter().find(|found| found.id == case.query.id);
            Ok::<_, Error>(Ranking::from_docids(found.map(|found| found.found.clone()).unwrap_or_default()))
        })
        .setup(|| decided().map(|_| ()))
        .score(recall_at(10))
        .score(ndcg_at(10).gate_only().at_least(0.9))
        .threshold(1.0)
        .columns(|case, found| [("query", case.query.text.clone()), ("top 3", found.top(3))]);

    suite
        .eval("cjk_promotion")
        .describe("the default tokenizer passes every gate that it was promoted by")
        .cases(|| vec![Example::new("gates", ())])
        .subject(|_, _| decided().map(|(_, gates)| gates.as_slice()))
        .score_with("passed", |_, gates: &&[Gate]| {
            let failed: Vec<&Gate> = gates.iter().filter(|gate| !gate.passed).collect();
            let passed = (gates.len() - failed.len()) as f64 / gates.len() as f64;
            Scored::Value(passed, serde_json::json!({"gates": gates.len(), "failed": failed}))
        })
        .threshold(1.0);
}
