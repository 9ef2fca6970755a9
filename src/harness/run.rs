//! The cases of one eval in this process: each is executed at most once, whoever asks first.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};

use crate::record::{CaseRecord, EvalRecord, TrialRecord};

use super::body::{Body, Executed};
use super::case::Context;
use super::plan::Plan;
use super::session::Session;
use super::verdict::{Extras, judge_case, judge_eval, skipped_case};

/// One eval with one subject.
pub struct EvalRun {
    pub title: String,
    pub plan: Arc<Plan>,
    pub ids: Vec<String>,
    body: Arc<dyn Body>,
    cases: Vec<OnceLock<Arc<CaseRecord>>>,
    summary: OnceLock<EvalRecord>,
    permits: Arc<Permits>,
    session: Arc<Session>,
}

impl EvalRun {
    pub fn new(
        title: String,
        plan: Arc<Plan>,
        body: Arc<dyn Body>,
        permits: Arc<Permits>,
        session: Arc<Session>,
    ) -> Self {
        let ids = body.ids();
        let cases = ids.iter().map(|_| OnceLock::new()).collect();
        Self { title, plan, ids, body, cases, summary: OnceLock::new(), permits, session }
    }

    /// The result of a case, executed now unless it has been.
    pub fn case(&self, index: usize) -> Arc<CaseRecord> {
        let id = &self.ids[index];
        Arc::clone(self.cases[index].get_or_init(|| {
            if let Some(found) = self.session.found(&self.title, id) {
                return Arc::new(found);
            }
            let record = Arc::new(match self.plan.skip_cases.get(id) {
                Some(reason) => skipped_case(&self.title, (index, id), reason),
                None => self.execute(index, id),
            });
            self.session.save(Arc::clone(&record));
            record
        }))
    }

    /// The verdict over all cases. Executes those that have not been, and never waits for one that nobody has
    /// begun.
    pub fn gate(&self) -> &EvalRecord {
        self.summary.get_or_init(|| self.judge(&self.all()))
    }

    /// All cases. Executes those that have not been.
    pub fn all(&self) -> Vec<Arc<CaseRecord>> {
        self.fetch();
        // From the end: siblings in other processes begin at the start, and each finds what the other has.
        let mut cases: Vec<_> = (0..self.ids.len()).rev().map(|index| self.case(index)).collect();
        cases.reverse();
        cases
    }

    /// What is known: the gate's verdict, else one over the cases that were executed, if any was; with cases.
    pub fn known(&self) -> Option<EvalRecord> {
        let executed: Vec<_> = self.cases.iter().filter_map(|case| case.get().cloned()).collect();
        let mut record = match self.summary.get() {
            Some(summary) => summary.clone(),
            None if executed.is_empty() => return None,
            None => self.judge(&executed),
        };
        record.cases = executed.iter().map(|case| CaseRecord::clone(case)).collect();
        Some(record)
    }

    /// As [`EvalRun::known`], with what other processes of the run have found.
    pub fn known_to_all(&self) -> Option<EvalRecord> {
        self.fetch();
        self.known()
    }

    /// The gate's verdict, if the gate has run.
    pub fn gated(&self) -> Option<EvalRecord> {
        self.summary.get().cloned()
    }

    /// Takes over what other processes of this run have found.
    fn fetch(&self) {
        let found = self.session.found_all(&self.title);
        if found.is_empty() {
            return;
        }
        let index: HashMap<&str, usize> =
            self.ids.iter().enumerate().map(|(i, id)| (id.as_str(), i)).collect();
        for record in found {
            if let Some(index) = index.get(record.case.as_str()) {
                // A case that was executed here keeps its own result.
                let _ = self.cases[*index].set(Arc::new(record));
            }
        }
    }

    fn judge(&self, cases: &[Arc<CaseRecord>]) -> EvalRecord {
        let mut record = judge_eval(&self.plan, &self.title, &self.ids, cases);
        self.session.compare(&mut record);
        record
    }

    fn execute(&self, index: usize, id: &str) -> CaseRecord {
        let _permit = self.permits.take();
        let mut extras = Extras::default();
        let trials = (0..self.plan.trials).map(|trial| {
            let (record, found) = self.trial(index, id, trial);
            if trial == 0 {
                extras = found;
            }
            record
        });
        let trials: Vec<TrialRecord> = trials.collect();
        judge_case(&self.plan, &self.title, (index, id), trials, extras)
    }

    /// One trial, tried again after infrastructure errors as often as the plan says.
    fn trial(&self, index: usize, id: &str, trial: u32) -> (TrialRecord, Extras) {
        let mut retried = Vec::new();
        loop {
            let attempt = retried.len() as u32;
            let context = Context { eval: self.title.clone(), case: id.into(), trial, attempt };
            let body = Arc::clone(&self.body);
            let Executed { mut record, extras, infrastructure } =
                body.execute(index, context, self.plan.timeout, &self.session.snapshots());
            match &record.error {
                Some(error) if infrastructure && attempt < self.plan.retries => retried.push(error.clone()),
                _ => {
                    record.retried = retried;
                    return (record, extras);
                }
            }
        }
    }
}

/// How many cases of an eval may still begin.
pub struct Permits {
    left: Mutex<usize>,
    freed: Condvar,
}

impl Permits {
    pub fn new(n: usize) -> Self {
        Self { left: Mutex::new(n), freed: Condvar::new() }
    }

    /// Waits until there is one; it is given back when the value is dropped.
    pub fn take(&self) -> Permit<'_> {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = self.freed.wait_while(left, |left| *left == 0).unwrap_or_else(PoisonError::into_inner);
        *left -= 1;
        Permit(self)
    }
}

pub struct Permit<'p>(&'p Permits);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.0.left.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}
