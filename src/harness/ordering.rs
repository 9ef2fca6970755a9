//! The order of an eval's variants: none may be worse than the next, a tie is allowed.

use std::sync::{Arc, OnceLock};

use crate::metrics::significance::randomisation_p;
use crate::metrics::stats::paired_difference;
use crate::record::{CaseRecord, EvalRecord, Order, OrderRecord, Verdict};

use super::plan::Plan;
use super::run::EvalRun;
use super::verdict::{RESAMPLES, SEED, case_set};

/// A difference counts where chance explains it less often than this.
const SIGNIFICANT: f64 = 0.05;

/// The variants of one eval, the best first.
pub struct Ordering {
    plan: Arc<Plan>,
    variants: Vec<(String, Arc<EvalRun>)>,
    summary: OnceLock<EvalRecord>,
}

impl Ordering {
    /// The order that `plan` asks for among `runs`, if it asks for one.
    pub fn new(plan: &Arc<Plan>, runs: &[Arc<EvalRun>]) -> Option<Arc<Self>> {
        let find = |variant: &String| {
            let title = plan.title_of(variant);
            let run = runs.iter().find(|run| run.title == title)?;
            Some((variant.clone(), Arc::clone(run)))
        };
        let variants: Vec<_> = plan.order.iter().filter_map(find).collect();
        (!variants.is_empty())
            .then(|| Arc::new(Self { plan: Arc::clone(plan), variants, summary: OnceLock::new() }))
    }

    /// The trial's name.
    pub fn title(&self) -> String {
        format!("{}::order", self.plan.name)
    }

    /// The verdict over all cases of all variants. Executes those that have not been.
    pub fn judge(&self) -> &EvalRecord {
        self.summary.get_or_init(|| {
            let variants: Vec<Variant> = self
                .variants
                .iter()
                .map(|(name, run)| Variant { name: name.clone(), cases: run.all() })
                .collect();
            judge(&self.plan, &variants)
        })
    }

    /// The verdict, if the trial has run.
    pub fn judged(&self) -> Option<EvalRecord> {
        self.summary.get().cloned()
    }
}

/// A variant with its cases, which are the same for all in the same order.
struct Variant {
    name: String,
    cases: Vec<Arc<CaseRecord>>,
}

/// One comparison, with the cases that lost, the most first.
struct Compared {
    record: OrderRecord,
    lost: Vec<(String, f64)>,
}

fn judge(plan: &Plan, variants: &[Variant]) -> EvalRecord {
    let mut compared = Vec::new();
    for pair in variants.windows(2) {
        for (index, gauge) in plan.gauges.iter().enumerate().filter(|(_, gauge)| gauge.of_case) {
            compared.push(compare(&gauge.name, index, &pair[0], &pair[1]));
        }
    }
    let (verdict, reason) = decide(variants, &compared);
    let ids = variants.first().map(|variant| variant.cases.as_slice()).unwrap_or_default();
    EvalRecord {
        eval: plan.name.clone(),
        description: format!("in order: {}", plan.order.join(", ")),
        verdict,
        reason,
        complete: plan.only.is_empty(),
        total: 0,
        case_set: case_set(ids.iter().map(|case| &case.case)),
        means: Vec::new(),
        took_ms: 0.0,
        order: compared.into_iter().map(|compared| compared.record).collect(),
        cases: Vec::new(),
    }
}

fn compare(scorer: &str, index: usize, better: &Variant, worse: &Variant) -> Compared {
    let value = |case: &CaseRecord| case.scores.get(index).filter(|score| score.informs.is_none())?.value;
    let both = better.cases.iter().zip(&worse.cases);
    let both: Vec<(&str, f64, f64)> =
        both.filter_map(|(b, w)| Some((b.case.as_str(), value(b)?, value(w)?))).collect();
    let before: Vec<f64> = both.iter().map(|(_, _, worse)| *worse).collect();
    let after: Vec<f64> = both.iter().map(|(_, better, _)| *better).collect();
    let mut record = OrderRecord {
        scorer: scorer.into(),
        better: better.name.clone(),
        worse: worse.name.clone(),
        cases: both.len(),
        mean: 0.0,
        low: 0.0,
        high: 0.0,
        p: 1.0,
        order: Order::NotCompared,
    };
    let difference = paired_difference(&before, &after, 0.95, RESAMPLES, SEED);
    if let Some((difference, p)) = difference.zip(randomisation_p(&before, &after, SEED)) {
        (record.mean, record.p) = (difference.mean, p);
        (record.low, record.high) = (difference.interval.low, difference.interval.high);
        record.order = match p < SIGNIFICANT {
            false => Order::Tie,
            true if difference.mean < 0.0 => Order::Worse,
            true => Order::Better,
        };
    }
    let mut lost: Vec<(String, f64)> = both
        .iter()
        .filter(|(_, better, worse)| better < worse)
        .map(|(case, better, worse)| ((*case).to_string(), better - worse))
        .collect();
    lost.sort_by(|a, b| a.1.total_cmp(&b.1));
    Compared { record, lost }
}

fn decide(variants: &[Variant], compared: &[Compared]) -> (Verdict, String) {
    if variants.iter().all(|variant| variant.cases.is_empty()) {
        return (Verdict::Empty, "the eval has no cases".into());
    }
    for variant in variants {
        if let Some(case) = variant.cases.iter().find(|case| case.unmeasured()) {
            let reason =
                format!("{} was not measured in every case; {}: {}", variant.name, case.case, case.reason);
            return (Verdict::Error, reason);
        }
    }
    let worse: Vec<String> =
        compared.iter().filter(|c| c.record.order == Order::Worse).map(in_words).collect();
    if !worse.is_empty() {
        return (Verdict::BelowThreshold, worse.join("; "));
    }
    if compared.iter().all(|c| c.record.order == Order::NotCompared) {
        let reasons = variants.iter().flat_map(|variant| &variant.cases);
        let why = reasons
            .flat_map(|case| &case.scores)
            .find_map(|score| score.skipped.as_deref().or(score.informs.as_deref()));
        let why = why.unwrap_or("no case has both scores");
        return (Verdict::Skipped, format!("no two variants can be compared: {why}"));
    }
    (Verdict::Pass, String::new())
}

fn in_words(compared: &Compared) -> String {
    let OrderRecord { scorer, better, worse, cases, mean, low, high, p, .. } = &compared.record;
    let lost: Vec<String> =
        compared.lost.iter().take(3).map(|(case, by)| format!("{case} {by:+.3}")).collect();
    format!(
        "{scorer}: {better} is worse than {worse} by {:.3} (difference {mean:+.3} [{low:+.3}, {high:+.3}], \
         p {p:.4}) over {cases} cases; lost most: {}",
        mean.abs(),
        lost.join(", ")
    )
}
