//! Verdicts: from trials to a case, from cases to an eval. Pure functions.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::corpus::hex;
use crate::record::{CaseRecord, Column, EvalRecord, MeanRecord, Score, TrialRecord, TrialSpread, Verdict};

use super::plan::{Gauge, Plan};
use crate::metrics::stats::{bootstrap_mean_ci, standard_deviation};

/// What a case showed beside its scores.
#[derive(Debug, Default)]
pub struct Extras {
    pub columns: Vec<Column>,
    pub columns_error: Option<String>,
    pub snapshot: Option<String>,
}

/// Samples behind an interval, drawn alike in every run.
pub const RESAMPLES: usize = 1000;
pub const SEED: u64 = 7;

/// Slack for sums of decimal fractions: 0.1 + 0.2 reaches 0.3.
const SLACK: f64 = 1e-9;

/// Decides a case from its trials.
pub fn judge_case(
    plan: &Plan,
    eval: &str,
    (position, case): (usize, &str),
    trials: Vec<TrialRecord>,
    extras: Extras,
) -> CaseRecord {
    let scores: Vec<Score> =
        (0..plan.gauges.len()).map(|i| mean_score(&plan.gauges[i].name, &trials, i)).collect();
    let known_miss = plan.known_misses.get(case).cloned();
    let mut record = CaseRecord {
        eval: eval.into(),
        case: case.into(),
        position,
        verdict: Verdict::Pass,
        reason: String::new(),
        mean: mean(counted(plan, &scores).map(|(_, value)| value)),
        scores,
        known_miss,
        columns: extras.columns,
        trials,
    };
    let column_error = extras.columns_error.map(|error| format!("columns: {error}"));
    (record.verdict, record.reason) = decide_case(plan, &record, extras.snapshot, column_error);
    record
}

fn decide_case(
    plan: &Plan,
    record: &CaseRecord,
    snapshot: Option<String>,
    column_error: Option<String>,
) -> (Verdict, String) {
    let failed = record.trials.iter().find_map(|trial| {
        let which =
            if record.trials.len() > 1 { format!("trial {}: ", trial.index + 1) } else { String::new() };
        trial.error.as_ref().map(|error| format!("{which}{error}"))
    });
    let scorer_failed = || {
        record
            .scores
            .iter()
            .find_map(|score| score.error.as_ref().map(|error| format!("scorer `{}`: {error}", score.scorer)))
    };
    if let Some(error) = failed.or_else(scorer_failed).or(column_error) {
        return (Verdict::Error, error);
    }
    let low = below_floor(plan, record);
    match (&record.known_miss, low) {
        // Before the baseline, so that nobody accepts a ranking without having read that it is wrong.
        (None, Some(reason)) => {
            let lines = [Some(reason), snapshot];
            (Verdict::BelowThreshold, lines.into_iter().flatten().collect::<Vec<_>>().join("\n"))
        }
        (Some(_), Some(_)) | (None, None) if snapshot.is_some() => {
            (Verdict::Regressed, snapshot.unwrap_or_default())
        }
        (Some(why), Some(_)) => (Verdict::Pass, format!("known miss: {why}")),
        (Some(why), None) => (
            Verdict::Regressed,
            format!(
                "a known miss ({why}) is found now: good, remove its `.known_miss(\"{}\", …)`",
                record.case
            ),
        ),
        (None, None) => match all_skipped(&record.scores) {
            Some(reason) => (Verdict::Skipped, reason),
            None => (Verdict::Pass, String::new()),
        },
    }
}

/// The scores that count for the verdict of a case.
fn counted<'a>(plan: &'a Plan, scores: &'a [Score]) -> impl Iterator<Item = (&'a Gauge, f64)> {
    let counts = |(gauge, score): &(&Gauge, &Score)| gauge.of_case && score.informs.is_none();
    plan.gauges.iter().zip(scores).filter(counts).filter_map(|(gauge, score)| Some((gauge, score.value?)))
}

/// Why the case is below its floor, if it is and has one.
fn below_floor(plan: &Plan, record: &CaseRecord) -> Option<String> {
    let (value, floor) = match plan.case_floor {
        Some(floor) => (record.mean?, floor),
        None => {
            let pairs: Vec<(f64, f64)> = counted(plan, &record.scores)
                .filter_map(|(gauge, value)| Some((value, plan.threshold_of(gauge)?)))
                .collect();
            (mean(pairs.iter().map(|p| p.0))?, mean(pairs.iter().map(|p| p.1))?)
        }
    };
    (value + SLACK < floor).then(|| {
        let scores = scores_in_words(&record.scores);
        let details: String = record.scores.iter().filter_map(detail).collect();
        format!("{value:.3} < {floor:.3} ({scores}){details}")
    })
}

/// What the scorer of an imperfect score kept beside it, as a line of its own: which topic is missing, say.
fn detail(score: &Score) -> Option<String> {
    let imperfect = score.value.is_some_and(|value| value < 1.0) && !score.detail.is_null();
    imperfect.then(|| format!("\n{}: {}", score.scorer, score.detail))
}

fn scores_in_words(scores: &[Score]) -> String {
    let one = |score: &Score| match score.value {
        Some(value) if score.informs.is_some() => format!("{} {value:.3} (informs)", score.scorer),
        Some(value) => format!("{} {value:.3}", score.scorer),
        None => format!("{} skipped", score.scorer),
    };
    scores.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn all_skipped(scores: &[Score]) -> Option<String> {
    let first = scores.first()?.skipped.as_ref()?;
    scores.iter().all(|score| score.skipped.is_some()).then(|| format!("no scorer applies: {first}"))
}

/// The mean of one scorer over the trials of a case.
fn mean_score(name: &str, trials: &[TrialRecord], index: usize) -> Score {
    let scores: Vec<&Score> = trials.iter().filter_map(|trial| trial.scores.get(index)).collect();
    let values: Vec<f64> = scores.iter().filter_map(|score| score.value).collect();
    let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
    let value = mean(values.iter().copied());
    Score {
        scorer: name.into(),
        value,
        spread: (values.len() > 1).then_some(highest - lowest),
        deviation: standard_deviation(&values),
        informs: scores.iter().find_map(|score| score.informs.clone()),
        skipped: if value.is_none() { scores.iter().find_map(|score| score.skipped.clone()) } else { None },
        error: scores.iter().find_map(|score| score.error.clone()),
        detail: if let [only] = scores[..] { only.detail.clone() } else { serde_json::Value::Null },
    }
}

/// The record of a case that was left out on purpose.
pub fn skipped_case(eval: &str, (position, case): (usize, &str), reason: &str) -> CaseRecord {
    CaseRecord {
        eval: eval.into(),
        case: case.into(),
        position,
        verdict: Verdict::Skipped,
        reason: reason.into(),
        mean: None,
        scores: Vec::new(),
        known_miss: None,
        columns: Vec::new(),
        trials: Vec::new(),
    }
}

/// Decides an eval from the cases that were executed; `ids` are all it has. The record comes without cases.
pub fn judge_eval(plan: &Plan, eval: &str, ids: &[String], cases: &[Arc<CaseRecord>]) -> EvalRecord {
    let means = plan.gauges.iter().enumerate().filter_map(|(i, gauge)| {
        let scores = || cases.iter().filter_map(|case| case.scores.get(i));
        let values: Vec<f64> = scores().filter_map(|score| score.value).collect();
        let informs = scores().find_map(|score| score.informs.clone());
        let interval = bootstrap_mean_ci(&values, 0.95, RESAMPLES, SEED)?;
        Some(MeanRecord {
            scorer: gauge.name.clone(),
            cases: values.len(),
            mean: mean(values.iter().copied())?,
            low: interval.low,
            high: interval.high,
            threshold: plan.threshold_of(gauge).filter(|_| informs.is_none()),
            change: None,
            informs,
            trials: trial_spread(cases, i),
        })
    });
    let mut record = EvalRecord {
        eval: eval.into(),
        description: plan.description.clone(),
        verdict: Verdict::Pass,
        reason: String::new(),
        complete: cases.len() == ids.len() && plan.only.is_empty(),
        total: ids.len(),
        case_set: case_set(ids.iter().filter(|id| !plan.skip_cases.contains_key(*id))),
        means: means.collect(),
        took_ms: cases.iter().map(|case| case.took_ms()).sum(),
        order: Vec::new(),
        cases: Vec::new(),
    };
    (record.verdict, record.reason) = decide_eval(plan, &record, cases);
    record
}

/// How far the trials of a case lie apart in scorer number `index`; nothing with one trial.
fn trial_spread(cases: &[Arc<CaseRecord>], index: usize) -> Option<TrialSpread> {
    let spread = |case: &Arc<CaseRecord>| {
        let score = case.scores.get(index)?;
        Some((case.case.clone(), score.value?, score.deviation?))
    };
    let spreads: Vec<(String, f64, f64)> = cases.iter().filter_map(spread).collect();
    let variance = mean(spreads.iter().map(|(_, _, deviation)| deviation * deviation))?;
    // The first of several as wide.
    let (widest, widest_mean, widest_deviation) =
        spreads.into_iter().reduce(|widest, other| if other.2 > widest.2 { other } else { widest })?;
    Some(TrialSpread { deviation: variance.sqrt(), widest, widest_mean, widest_deviation })
}

fn decide_eval(plan: &Plan, record: &EvalRecord, cases: &[Arc<CaseRecord>]) -> (Verdict, String) {
    if cases.is_empty() {
        return (Verdict::Empty, "the eval has no cases".into());
    }
    let unmeasured: Vec<&str> =
        cases.iter().filter(|case| case.unmeasured()).map(|case| case.case.as_str()).collect();
    if let Some(first) = unmeasured.first() {
        let reason = cases.iter().find(|case| case.case == *first).map(|case| case.reason.as_str());
        return (
            Verdict::Error,
            format!(
                "{} of {} cases were not measured: {}; {first}: {}",
                unmeasured.len(),
                cases.len(),
                some_of(&unmeasured),
                reason.unwrap_or_default()
            ),
        );
    }
    if record.means.is_empty() && !plan.gauges.is_empty() {
        let reason = cases.iter().map(|case| case.reason.as_str()).find(|reason| !reason.is_empty());
        return (Verdict::Skipped, reason.unwrap_or("no scorer applies").to_string());
    }
    let low = record.means.iter().filter_map(|m| shortfall(plan, m).map(|verdict| (verdict, m)));
    let low: Vec<(Verdict, &MeanRecord)> = low.collect();
    let Some((verdict, _)) = low.iter().find(|(v, _)| *v == Verdict::BelowThreshold).or(low.first()) else {
        return (Verdict::Pass, String::new());
    };
    let means: Vec<String> = low.iter().map(|(_, m)| in_words(m)).collect();
    (*verdict, format!("{}; worst {}", means.join("; "), worst(cases)))
}

/// The verdict on a mean that does not reach its threshold.
fn shortfall(plan: &Plan, mean: &MeanRecord) -> Option<Verdict> {
    let threshold = mean.threshold?;
    let reached = |value: f64| value + SLACK >= threshold;
    match plan.confident {
        false => (!reached(mean.mean)).then_some(Verdict::BelowThreshold),
        true if reached(mean.low) => None,
        true if reached(mean.high) => Some(Verdict::Inconclusive),
        true => Some(Verdict::BelowThreshold),
    }
}

fn in_words(m: &MeanRecord) -> String {
    format!(
        "{} {:.3} [{:.3}, {:.3}] over {} cases, needs {:.3}",
        m.scorer,
        m.mean,
        m.low,
        m.high,
        m.cases,
        m.threshold.unwrap_or_default()
    )
}

/// The three lowest cases by name and mean.
fn worst(cases: &[Arc<CaseRecord>]) -> String {
    let mut ranked: Vec<(f64, &str)> =
        cases.iter().filter_map(|case| Some((case.mean?, case.case.as_str()))).collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    ranked.iter().take(3).map(|(mean, case)| format!("{case} {mean:.3}")).collect::<Vec<_>>().join(", ")
}

fn some_of(names: &[&str]) -> String {
    let shown = names.iter().take(5).copied().collect::<Vec<_>>().join(", ");
    if names.len() > 5 { shown + " …" } else { shown }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, n) = values.fold((0.0, 0u32), |(sum, n), value| (sum + value, n + 1));
    (n > 0).then(|| sum / f64::from(n))
}

/// SHA-256 over the ids in order.
pub fn case_set<'a>(ids: impl Iterator<Item = &'a String>) -> String {
    let mut hasher = Sha256::new();
    for id in ids {
        hasher.update(id.as_bytes());
        hasher.update([0]);
    }
    hex(&hasher.finalize())
}
