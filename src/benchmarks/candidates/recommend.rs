//! What figures recommend.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metrics::significance::{holm, paired_randomisation};
use crate::metrics::stats::{Difference, paired_difference};

/// From this chance on, a difference counts as one.
const ALPHA: f64 = 0.05;
/// Random signs of a test.
const SAMPLES: usize = 20_000;

/// Resamples of an interval, and where drawing begins.
pub(super) const RESAMPLES: usize = 2000;
pub(super) const SEED: u64 = 42;

/// What a recommendation looks at of one candidate.
#[derive(Debug, Clone, PartialEq)]
pub struct Scored {
    /// The candidate.
    pub id: String,
    /// nDCG@10 of every case, by set: the same sets and cases for all candidates, in the same order.
    pub ndcg: Vec<(String, Vec<f64>)>,
    /// 95 % of the searches take no longer.
    pub p95_ms: f64,
}

/// Which candidate the figures speak for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Recommendation {
    /// The candidate to use; absent when the default failed, as nothing can be compared then.
    pub candidate: Option<String>,
    /// Why, in a sentence.
    pub why: String,
    /// Every other candidate that did not fail, compared with the default.
    pub comparisons: Vec<Comparison>,
}

/// A candidate against the default, over the same cases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The candidate.
    pub candidate: String,
    /// Its mean nDCG@10 minus the default's, with a 95 % bootstrap interval of the paired differences.
    pub difference: Difference,
    /// Two-sided p of the paired randomisation test.
    pub p: f64,
    /// The same, corrected by Holm over all candidates.
    pub p_holm: f64,
    /// The same by set, without a correction.
    pub sets: BTreeMap<String, SetDifference>,
}

/// A candidate against the default over the cases of one set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SetDifference {
    /// Its mean nDCG@10 minus the default's, with a 95 % bootstrap interval.
    pub difference: Difference,
    /// Two-sided p of the paired randomisation test.
    pub p: f64,
}

impl Comparison {
    /// Better by more than chance.
    pub fn is_better(&self) -> bool {
        self.p_holm < ALPHA && self.difference.mean > 0.0
    }

    /// The sets in which it is worse by more than chance.
    pub fn worse_on(&self) -> impl Iterator<Item = &str> {
        let worse = |set: &SetDifference| set.p < ALPHA && set.difference.mean < 0.0;
        self.sets.iter().filter(move |(_, set)| worse(set)).map(|(name, _)| name.as_str())
    }
}

/// Compares every candidate with the default, and says which to use.
///
/// Another one than the default is recommended only when its mean nDCG@10 over all cases is higher, with a two-sided
/// paired randomisation test below .05 after Holm's correction over the candidates, and no set has it significantly
/// worse (without a correction: rather keep the default than lose a language). Of several the one with the highest
/// nDCG wins, then the one with the lowest p95. In every other case the default stays.
///
/// ```
/// use rankgate::benchmarks::candidates::{Scored, recommend};
/// let scored = |id: &str, value: f64| {
///     let ndcg = vec![("all".to_string(), (0..20).map(|i| value + f64::from(i) / 100.0).collect())];
///     Scored { id: id.into(), ndcg, p95_ms: 1.0 }
/// };
/// let found = recommend("old", &[scored("old", 0.5), scored("new", 0.6)]);
/// assert_eq!(found.candidate.as_deref(), Some("new"));
/// ```
pub fn recommend(default: &str, candidates: &[Scored]) -> Recommendation {
    let Some(base) = candidates.iter().find(|candidate| candidate.id == default) else {
        let why = format!("the default `{default}` failed, so there is nothing to compare with");
        return Recommendation { candidate: None, why, comparisons: Vec::new() };
    };
    let others: Vec<&Scored> = candidates.iter().filter(|candidate| candidate.id != default).collect();
    let mut comparisons: Vec<Comparison> = others.iter().filter_map(|other| compare(base, other)).collect();
    let corrected = holm(&comparisons.iter().map(|comparison| comparison.p).collect::<Vec<_>>());
    comparisons.iter_mut().zip(corrected).for_each(|(comparison, p)| comparison.p_holm = p);

    let p95 =
        |id: &str| others.iter().find(|other| other.id == id).map_or(f64::INFINITY, |other| other.p95_ms);
    let best = comparisons
        .iter()
        .filter(|comparison| comparison.is_better() && comparison.worse_on().next().is_none())
        .max_by(|a, b| {
            let by_latency = || p95(&b.candidate).total_cmp(&p95(&a.candidate));
            a.difference.mean.total_cmp(&b.difference.mean).then_with(by_latency)
        });
    let why = best.map_or_else(|| stays(default, &comparisons), |best| adopted(default, best));
    let candidate = Some(best.map_or_else(|| default.to_owned(), |best| best.candidate.clone()));
    Recommendation { candidate, why, comparisons }
}

fn compare(base: &Scored, other: &Scored) -> Option<Comparison> {
    let flat =
        |scored: &Scored| scored.ndcg.iter().flat_map(|(_, values)| values.clone()).collect::<Vec<f64>>();
    let all = differ(&flat(base), &flat(other))?;
    let sets = base
        .ndcg
        .iter()
        .zip(&other.ndcg)
        .filter_map(|((name, before), (_, after))| Some((name.clone(), differ(before, after)?)));
    let SetDifference { difference, p } = all;
    Some(Comparison { candidate: other.id.clone(), difference, p, p_holm: p, sets: sets.collect() })
}

fn differ(before: &[f64], after: &[f64]) -> Option<SetDifference> {
    let difference = paired_difference(before, after, 0.95, RESAMPLES, SEED)?;
    let differences: Vec<f64> = before.iter().zip(after).map(|(before, after)| after - before).collect();
    Some(SetDifference { difference, p: paired_randomisation(&differences, SAMPLES, SEED)?.two_sided })
}

fn adopted(default: &str, best: &Comparison) -> String {
    format!(
        "`{}` is better than the default `{default}` by {}, and on no set worse",
        best.candidate,
        figures(best)
    )
}

fn stays(default: &str, comparisons: &[Comparison]) -> String {
    let highest = |wanted: &dyn Fn(&&Comparison) -> bool| {
        comparisons.iter().filter(wanted).max_by(|a, b| a.difference.mean.total_cmp(&b.difference.mean))
    };
    let why = if comparisons.is_empty() {
        "no other candidate has figures".into()
    } else if let Some(barred) = highest(&|comparison| comparison.is_better()) {
        let sets: Vec<&str> = barred.worse_on().collect();
        let (id, sets) = (&barred.candidate, sets.join(", "));
        format!("`{id}` is better by {}, but significantly worse on {sets}", figures(barred))
    } else if let Some(above) = highest(&|comparison| comparison.difference.mean > 0.0) {
        format!(
            "the best other one, `{}`, is above it by {}: no more than chance",
            above.candidate,
            figures(above)
        )
    } else {
        "no other candidate has a higher nDCG@10".into()
    };
    format!("the default `{default}` stays: {why}")
}

fn figures(comparison: &Comparison) -> String {
    let Difference { mean, interval } = comparison.difference;
    let (low, high, p) = (interval.low, interval.high, comparison.p_holm);
    format!("{mean:+.4} nDCG@10 (95 % [{low:+.4}, {high:+.4}], corrected p {p:.4})")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 20 cases in each of two sets, `first` and `second` added to what the default has.
    fn scored(id: &str, first: f64, second: f64, p95_ms: f64) -> Scored {
        let set = |gain: f64| (0..20).map(|i| 0.4 + f64::from(i % 5) / 20.0 + gain).collect();
        Scored { id: id.into(), ndcg: vec![("en".into(), set(first)), ("ja".into(), set(second))], p95_ms }
    }

    fn chosen(others: &[Scored]) -> (String, String) {
        let all: Vec<Scored> = [&[scored("default", 0.0, 0.0, 1.0)], others].concat();
        let found = recommend("default", &all);
        assert_eq!(found.comparisons.len(), others.len());
        (found.candidate.expect("has one"), found.why)
    }

    #[test]
    fn better_on_the_whole_and_worse_nowhere_wins() {
        let (id, why) = chosen(&[scored("a", 0.1, 0.1, 9.0), scored("b", 0.1, 0.0, 1.0)]);
        assert_eq!(id, "a");
        assert!(why.contains("+0.1000") && why.contains("corrected p 0.0001"), "{why}");
    }

    #[test]
    fn a_gain_that_one_set_pays_for_keeps_the_default() {
        let (id, why) = chosen(&[scored("a", 0.3, -0.1, 1.0)]);
        assert_eq!(id, "default");
        assert!(why.contains("significantly worse on ja"), "{why}");
    }

    #[test]
    fn chance_and_losses_keep_the_default() {
        let mut lucky = scored("a", 0.0, 0.0, 1.0);
        lucky.ndcg[0].1[3] += 0.5;
        let (id, why) = chosen(&[lucky]);
        assert!(id == "default" && why.contains("no more than chance"), "{why}");
        let (id, why) = chosen(&[scored("a", -0.1, -0.1, 0.1), scored("same", 0.0, 0.0, 0.1)]);
        assert!(id == "default" && why.contains("no other candidate has a higher"), "{why}");
        assert!(chosen(&[]).1.contains("no other candidate has figures"));
    }

    #[test]
    fn many_candidates_must_be_surer() {
        // Six cases of 40 gain: 2 of 2⁶ sign patterns, p = .031, which twelve candidates make .375.
        let mut gains = scored("a", 0.0, 0.0, 1.0);
        (0..6).for_each(|i| gains.ndcg[0].1[i] += 0.2);
        assert_eq!(chosen(&[gains.clone()]).0, "a");
        let many: Vec<Scored> = (0..12).map(|i| Scored { id: format!("c{i}"), ..gains.clone() }).collect();
        assert_eq!(chosen(&many).0, "default");
    }

    #[test]
    fn equals_are_told_apart_by_latency_and_a_failed_default_by_nothing() {
        assert_eq!(chosen(&[scored("slow", 0.1, 0.1, 9.0), scored("quick", 0.1, 0.1, 2.0)]).0, "quick");
        let found = recommend("gone", &[scored("a", 0.0, 0.0, 1.0)]);
        assert!(found.candidate.is_none() && found.why.contains("`gone` failed"), "{}", found.why);
    }
}
