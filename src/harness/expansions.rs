//! Scorers over expansions of a query.
//!
//! Each sees one case, so an expansion that is the same for all is caught by what it has to do with its own query
//! and not with the others: see [`varied`].

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use schemars::schema_for;
use serde_json::json;

use crate::corpus::{Expansion, Ranking};
use crate::error::Result;
use crate::models::{Embedder, TextRole};
use crate::text::{fold, normalize};

use super::answers::Asks;
use super::case::{BoxError, Judged};
use super::scorer::{Observed, Scored, Scorer, schema_valid};

/// An output that has an expansion.
pub trait Expanded {
    /// The expansion to score.
    fn expansion(&self) -> &Expansion;
}

impl Expanded for Expansion {
    fn expansion(&self) -> &Expansion {
        self
    }
}

/// 1 when the expansion is valid under the schema of [`Expansion`], else 0 with the first violations.
pub fn expansion_valid<C, O: Expanded>() -> Scorer<C, O> {
    let inner = schema_valid::<(), Expansion>("expansion valid", schema_for!(Expansion).as_value());
    Scorer::new("expansion valid", move |seen: &Observed<'_, C, O>| {
        let &Observed { output, took, trace, trial, .. } = seen;
        (inner.run)(&Observed { case: &(), output: output.expansion(), took, trace, trial })
    })
}

/// 1 when the expansion has something for the lexical lane other than the query itself, else 0.
pub fn has_lexical_variants<C: Asks, O: Expanded>() -> Scorer<C, O> {
    has_variants("has lexical variants", |expansion| &expansion.lexical_queries)
}

/// 1 when the expansion has something for the vector lane other than the query itself, else 0.
pub fn has_vector_variants<C: Asks, O: Expanded>() -> Scorer<C, O> {
    has_variants("has vector variants", |expansion| &expansion.vector_queries)
}

fn has_variants<C: Asks, O: Expanded>(name: &str, of: fn(&Expansion) -> &Vec<String>) -> Scorer<C, O> {
    Scorer::new(name, move |seen: &Observed<'_, C, O>| {
        let (queries, asked) = (of(seen.output.expansion()), bare(seen.case.question()));
        let other: HashSet<String> = queries
            .iter()
            .map(|query| bare(query))
            .filter(|query| !query.is_empty() && *query != asked)
            .collect();
        let detail = json!({"variants": other.len(), "copies": queries.len() - other.len()});
        Scored::Value(f64::from(u8::from(!other.is_empty())), detail)
    })
}

/// Letters and digits alone, folded: what two spellings of one query share.
fn bare(text: &str) -> String {
    let text = fold(&normalize(text));
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// How far the variants belong to their own query: the share of `queries` that a variant is farther from than from
/// the query it was made for, by cosine, on average over the variants; equally far counts half.
///
/// An expansion that is the same for all queries, or random, has a mean of 0.5 over them, whatever it says; one that
/// repeats the query has 1 here and 0 in [`has_lexical_variants`] and [`has_vector_variants`]. `queries` are the
/// texts of all cases, and both closures are called once, at the first score. Skipped without variants and without
/// other queries.
pub fn varied<C: Asks, O: Expanded>(
    queries: impl Fn() -> Result<Vec<String>> + Send + Sync + 'static,
    embedder: impl Fn() -> Result<Arc<dyn Embedder>> + Send + Sync + 'static,
) -> Scorer<C, O> {
    let others: OnceLock<std::result::Result<Others, String>> = OnceLock::new();
    Scorer::new("varied", move |seen: &Observed<'_, C, O>| -> std::result::Result<Scored, BoxError> {
        let load = || Others::new(queries()?, embedder()?);
        let others = others.get_or_init(|| load().map_err(|e| e.report())).as_ref().map_err(Clone::clone)?;
        Ok(others.score(seen.case.question(), seen.output.expansion())?)
    })
}

/// The queries of all cases, as vectors.
struct Others {
    embedder: Arc<dyn Embedder>,
    queries: Vec<(String, Vec<f32>)>,
}

impl Others {
    fn new(texts: Vec<String>, embedder: Arc<dyn Embedder>) -> Result<Self> {
        let borrowed: Vec<&str> = texts.iter().map(String::as_str).collect();
        let vectors = embedder.embed(&borrowed, TextRole::Query)?;
        let queries = texts.iter().map(|text| bare(text)).zip(vectors.rows().map(<[f32]>::to_vec)).collect();
        Ok(Self { embedder, queries })
    }

    fn score(&self, question: &str, expansion: &Expansion) -> Result<Scored> {
        let variants = expansion.lexical_queries.iter().chain(&expansion.vector_queries);
        let texts: Vec<&str> = variants.chain(&expansion.hyde).map(String::as_str).collect();
        let asked = bare(question);
        let others: Vec<&[f32]> = self
            .queries
            .iter()
            .filter(|(text, _)| *text != asked)
            .map(|(_, vector)| vector.as_slice())
            .collect();
        if texts.is_empty() || others.is_empty() {
            return Ok(Scored::skipped(if texts.is_empty() { "no variants" } else { "no other query" }));
        }
        let own = self.embedder.embed(&[question], TextRole::Query)?;
        let vectors = self.embedder.embed(&texts, TextRole::Query)?;
        let share = |variant: &[f32]| {
            let near = dot(variant, &own.data);
            let farther: f64 = others.iter().map(|other| farther(near, dot(variant, other))).sum();
            farther / others.len() as f64
        };
        let shares: Vec<f64> = vectors.rows().map(share).collect();
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        Ok(Scored::Value(mean, json!({"queries": others.len(), "nearer_than": shares})))
    }
}

/// Whether `other` is farther away than `own`; half for as near.
fn farther(own: f32, other: f32) -> f64 {
    if (own - other).abs() < 1e-6 { 0.5 } else { f64::from(u8::from(other < own)) }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// 1 when expansion brings a relevant document into the first `k` that was not there without it, else 0; `rankings`
/// are the one without and the one with it. Skipped when the first `k` without it hold all that can be there. What
/// expansion pushed out is in the detail.
pub fn added_relevant_at<C: Judged, O>(
    k: usize,
    rankings: impl for<'a> Fn(&'a O) -> (&'a Ranking, &'a Ranking) + Send + Sync + 'static,
) -> Scorer<C, O> {
    Scorer::new(format!("added relevant@{k}"), move |seen: &Observed<'_, C, O>| {
        let judgments = seen.case.judgments();
        let relevant = |docid: &&str| judgments.get(*docid).is_some_and(|grade| *grade > 0);
        let first =
            |ranking| -> HashSet<&str> { Ranking::docids(ranking).take(k).filter(relevant).collect() };
        let (without, with) = rankings(seen.output);
        let (without, with) = (first(without), first(with));
        let total = judgments.values().filter(|grade| **grade > 0).count();
        if total.min(k) == without.len() {
            return Scored::skipped(format!("nothing to add: the first {k} hold all that can be there"));
        }
        let sorted = |docids: std::collections::hash_set::Difference<'_, &str, _>| {
            let mut docids: Vec<String> = docids.map(ToString::to_string).collect();
            docids.sort();
            docids
        };
        let (added, lost) = (sorted(with.difference(&without)), sorted(without.difference(&with)));
        let score = f64::from(u8::from(!added.is_empty()));
        Scored::Value(score, json!({"added": added, "lost": lost}))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::{JudgedQuery, Query};
    use crate::harness::scorer::tests::run;
    use crate::models::HashEmbedder;
    use std::time::Duration;

    const QUERIES: [&str; 4] = [
        "restore a postgres backup",
        "notice period of contracts",
        "cooling fails at night",
        "rotate tls certificates",
    ];

    fn case(query: &str) -> JudgedQuery {
        JudgedQuery { query: Query { text: query.into(), ..Query::default() }, ..JudgedQuery::default() }
    }

    fn expansion(lexical: &[&str], vector: &[&str]) -> Expansion {
        let owned = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        Expansion { lexical_queries: owned(lexical), vector_queries: owned(vector), ..Expansion::default() }
    }

    fn value<O: Expanded>(scorer: &Scorer<JudgedQuery, O>, query: &str, output: &O) -> f64 {
        match run(scorer, &case(query), output, Duration::ZERO) {
            Scored::Value(value, _) => value,
            Scored::Skipped(_) => -1.0,
            other => panic!("{other:?}"),
        }
    }

    fn by_words() -> Scorer<JudgedQuery, Expansion> {
        varied(|| Ok(QUERIES.map(String::from).to_vec()), || Ok(Arc::new(HashEmbedder::default())))
    }

    #[test]
    fn repeating_the_query_is_no_variant() {
        for (lexical, has) in [
            (&["backup of postgres"][..], 1.0),
            (&["Restore a Postgres-Backup!", ""], 0.0),
            (&["restore a postgres backup", "pg_restore"], 1.0),
            (&[], 0.0),
        ] {
            assert_eq!(
                value(&has_lexical_variants(), QUERIES[0], &expansion(lexical, &[])),
                has,
                "{lexical:?}"
            );
            assert_eq!(
                value(&has_vector_variants(), QUERIES[0], &expansion(&[], lexical)),
                has,
                "{lexical:?}"
            );
        }
    }

    #[test]
    fn more_than_five_variants_are_not_valid() {
        assert_eq!(value(&expansion_valid(), QUERIES[0], &expansion(&["a"; 5], &[])), 1.0);
        assert_eq!(value(&expansion_valid(), QUERIES[0], &expansion(&["a"; 6], &[])), 0.0);
    }

    #[test]
    fn one_expansion_for_all_queries_belongs_to_none() {
        for constant in [
            expansion(&["notice period of contracts"], &[]),
            expansion(&["search the documentation"], &["how do I find the answer?"]),
            expansion(&["restore postgres", "rotate certificates"], &["cooling period"]),
        ] {
            let total: f64 = QUERIES.iter().map(|query| value(&by_words(), query, &constant)).sum();
            assert!((total / 4.0 - 0.5).abs() < 1e-6, "{total}: {constant:?}");
        }
        let own = |query: &str| expansion(&[&format!("{query} steps")], &[&format!("how to {query}")]);
        let total: f64 = QUERIES.iter().map(|query| value(&by_words(), query, &own(query))).sum();
        assert_eq!(total, 4.0);
        assert_eq!(value(&by_words(), QUERIES[0], &Expansion::default()), -1.0);
    }

    #[test]
    fn what_expansion_adds_and_pushes_out_is_told() {
        let mut case = case("x");
        case.judgments = [("a", 1), ("b", 2), ("c", 0)].map(|(docid, grade)| (docid.into(), grade)).into();
        let scorer =
            added_relevant_at::<JudgedQuery, (Ranking, Ranking)>(2, |(without, with)| (without, with));
        let pair = |without: [&str; 2], with: [&str; 2]| {
            run(&scorer, &case, &(Ranking::from_docids(without), Ranking::from_docids(with)), Duration::ZERO)
        };
        let told = |added: &[&str], lost: &[&str]| json!({"added": added, "lost": lost});
        assert_eq!(pair(["x", "y"], ["x", "b"]), Scored::Value(1.0, told(&["b"], &[])));
        assert_eq!(pair(["a", "y"], ["y", "b"]), Scored::Value(1.0, told(&["b"], &["a"])));
        assert_eq!(pair(["a", "y"], ["c", "y"]), Scored::Value(0.0, told(&[], &["a"])));
        assert!(matches!(pair(["a", "b"], ["x", "y"]), Scored::Skipped(_)), "nothing to add");
    }
}
