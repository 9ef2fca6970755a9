//! The builder that eval files use.

use std::any::Any;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use crate::record::Column;

use super::body::{Body, Ready, Shared, Subject, Typed};
use super::case::{BoxError, Case, Context, IntoCases, Output, report};
use super::plan::{Gauge, Plan, unusable};
use super::scorer::{Scored, Scorer, scorer};
use super::worker::quietly;

/// What a `register` function may return: nothing, or a result of nothing.
pub trait Registered {
    /// Why the file could not register its evals, if it could not.
    fn failure(self) -> Option<String>;
}

impl Registered for () {
    fn failure(self) -> Option<String> {
        None
    }
}

impl<E: Into<BoxError>> Registered for Result<(), E> {
    fn failure(self) -> Option<String> {
        self.err().map(|error| report(&error.into()))
    }
}

/// The evals of a project. Eval files add to it.
#[derive(Default)]
pub struct Suite {
    pub(super) evals: Vec<Box<dyn Definition>>,
    /// Files that could not register, by the name their failing trial gets.
    pub(super) failures: Vec<(String, String)>,
    file: String,
}

impl Suite {
    /// Begins an eval. It is registered as soon as it has a subject.
    ///
    /// A name that cannot be listed (empty, with a line break or a bracket), or that another eval has, makes
    /// the eval one failing trial, `NAME::load`.
    pub fn eval(&mut self, name: &str) -> Start<'_> {
        let plan = Plan::new(name, &self.file);
        Start { suite: self, plan }
    }

    /// Runs the `register` function of an eval file; `path` is for messages. An error or a panic in it becomes
    /// a failing trial of that file and leaves the other files standing.
    pub fn file<R: Registered>(&mut self, path: &str, register: impl FnOnce(&mut Suite) -> R) {
        self.file = path.into();
        let failure = match quietly(|| register(self)) {
            Ok(registered) => registered.failure(),
            Err(panic) => Some(panic),
        };
        if let Some(failure) = failure {
            let stem = path.rsplit('/').next().unwrap_or(path);
            let name = stem.strip_suffix(".eval.rs").unwrap_or(stem);
            self.failures.push((name.into(), format!("{path}: {failure}")));
        }
        self.file.clear();
    }
}

/// An eval that has a name.
#[must_use = "an eval without cases and a subject is not registered"]
pub struct Start<'s> {
    suite: &'s mut Suite,
    plan: Plan,
}

impl<'s> Start<'s> {
    /// What the eval asks, in one line.
    pub fn describe(mut self, text: &str) -> Self {
        self.plan.description = text.into();
        self
    }

    /// Where the cases come from. The loader runs once, also to list the trials: it reads a fixture, it does
    /// not load a model or build an index. Its failure is one failing trial, `NAME::load`.
    pub fn cases<L: IntoCases>(self, load: impl FnOnce() -> L + Send + 'static) -> WithCases<'s, L::Case> {
        WithCases { suite: self.suite, plan: self.plan, load: Box::new(|| load().into_cases()) }
    }
}

type Load<C> = Box<dyn FnOnce() -> Result<Vec<C>, BoxError> + Send>;

/// An eval that has a name and cases.
#[must_use = "an eval without a subject is not registered"]
pub struct WithCases<'s, C> {
    suite: &'s mut Suite,
    plan: Plan,
    load: Load<C>,
}

impl<'s, C: Case> WithCases<'s, C> {
    /// The closure under test. It runs once a trial, on a thread of its own, with its stages traced.
    pub fn subject<O: Output, E: Into<BoxError>>(
        self,
        subject: impl Fn(&C, &Context) -> Result<O, E> + Send + Sync + 'static,
    ) -> &'s mut Eval<C, O> {
        self.register(None, erase(subject))
    }

    /// One of several subjects for the same cases; its trials are called `NAME[VARIANT]::CASE`.
    pub fn variant<O: Output, E: Into<BoxError>>(
        self,
        name: &str,
        subject: impl Fn(&C, &Context) -> Result<O, E> + Send + Sync + 'static,
    ) -> &'s mut Eval<C, O> {
        self.register(Some(name.into()), erase(subject))
    }

    fn register<O: Output>(self, variant: Option<String>, subject: Subject<C, O>) -> &'s mut Eval<C, O> {
        let eval = Eval {
            plan: self.plan,
            load: self.load,
            subjects: vec![(variant, subject)],
            scorers: Vec::new(),
            columns: None,
            snapshot: None,
            setup: None,
        };
        let evals = &mut self.suite.evals;
        evals.push(Box::new(eval));
        let last: &mut dyn Any = evals.last_mut().expect("pushed a line above").as_mut();
        last.downcast_mut().expect("pushed a line above")
    }
}

fn erase<C, O, E: Into<BoxError>>(
    subject: impl Fn(&C, &Context) -> Result<O, E> + Send + Sync + 'static,
) -> Subject<C, O> {
    Arc::new(move |case, context| subject(case, context).map_err(Into::into))
}

/// A registered eval: what remains is to say how its outputs are judged.
pub struct Eval<C, O> {
    plan: Plan,
    load: Load<C>,
    subjects: Vec<(Option<String>, Subject<C, O>)>,
    scorers: Vec<Scorer<C, O>>,
    columns: Option<Box<super::body::Columns<C, O>>>,
    snapshot: Option<Box<super::body::Text<C, O>>>,
    setup: Option<super::body::Setup>,
}

impl<C: Case, O: Output> Eval<C, O> {
    /// Another subject for the same cases.
    pub fn variant<E: Into<BoxError>>(
        &mut self,
        name: &str,
        subject: impl Fn(&C, &Context) -> Result<O, E> + Send + Sync + 'static,
    ) -> &mut Self {
        self.subjects.push((Some(name.into()), erase(subject)));
        self
    }

    /// Adds a scorer. Names must differ.
    pub fn score(&mut self, scorer: Scorer<C, O>) -> &mut Self {
        self.plan.gauges.push(Gauge {
            name: scorer.name.clone(),
            threshold: scorer.threshold,
            gates: scorer.gates,
            of_case: scorer.gates && scorer.of_case,
        });
        self.scorers.push(scorer);
        self
    }

    /// Adds a scorer from a closure over case and output, which returns a number, a `bool`, a
    /// [`Scored`](super::Scored), or a `Result` of one of them.
    pub fn score_with<R: Into<Scored>>(
        &mut self,
        name: &str,
        run: impl Fn(&C, &O) -> R + Send + Sync + 'static,
    ) -> &mut Self {
        self.score(scorer(name, run))
    }

    /// What the mean of every scorer has to reach over all cases (equal passes), and, unless
    /// [`Eval::case_floor`] says otherwise, what the mean of its scores has to reach in every case.
    pub fn threshold(&mut self, threshold: f64) -> &mut Self {
        self.plan.threshold = Some(threshold);
        self
    }

    /// What the mean of its scores has to reach in every case.
    pub fn case_floor(&mut self, floor: f64) -> &mut Self {
        self.plan.case_floor = Some(floor);
        self
    }

    /// Asks for the lower end of the 95 % interval, not the mean, to reach the threshold. Between the two the
    /// verdict is *inconclusive*, which fails: the eval needs more cases.
    pub fn confident(&mut self) -> &mut Self {
        self.plan.confident = true;
        self
    }

    /// Texts that stand beside a case in the table.
    pub fn columns<T, K, V>(&mut self, columns: impl Fn(&C, &O) -> T + Send + Sync + 'static) -> &mut Self
    where
        T: IntoIterator<Item = (K, V)>,
        K: Into<String>,
        V: Display,
    {
        self.columns = Some(Box::new(move |case, output| {
            let column = |(label, text): (K, V)| Column { label: label.into(), text: text.to_string() };
            columns(case, output).into_iter().map(column).collect()
        }));
        self
    }

    /// Keeps a text of every case as an insta snapshot, `snapshots/EVAL__CASE.snap`; a case whose text differs
    /// is *regressed* until `cargo insta review` accepts it. Keep times and unrounded numbers out of the text;
    /// [`ranking_lines`](super::ranking_lines) does. With several trials the first one counts.
    pub fn snapshot(&mut self, text: impl Fn(&C, &O) -> String + Send + Sync + 'static) -> &mut Self {
        self.snapshot = Some(Box::new(text));
        self
    }

    /// Executes every case `n` times. A case's score is the mean, its spread is reported.
    pub fn trials(&mut self, n: u32) -> &mut Self {
        self.plan.trials = n.max(1);
        self
    }

    /// What the subject needs and every case shares: an index, a model. Runs once a process before the first case
    /// that is executed, without a time limit; when it fails, every case is an error that says why.
    pub fn setup<E: Into<BoxError>>(
        &mut self,
        setup: impl FnOnce() -> Result<(), E> + Send + 'static,
    ) -> &mut Self {
        self.setup = Some(Box::new(|| setup().map_err(Into::into)));
        self
    }

    /// How long the subject, and each scorer, may run. 120 seconds unless set.
    pub fn timeout(&mut self, limit: Duration) -> &mut Self {
        self.plan.timeout = limit;
        self
    }

    /// How many cases of this eval may run at once in one process.
    pub fn concurrency(&mut self, n: usize) -> &mut Self {
        self.plan.concurrency = n.max(1);
        self
    }

    /// Tries a trial again, up to `n` times, when its subject fails for a reason of infrastructure: network,
    /// model, disk, another process; of a foreign engine, any error. A panic and a time-out are not tried
    /// again, a score never is.
    pub fn retry_errors(&mut self, n: u32) -> &mut Self {
        self.plan.retries = n;
        self
    }

    /// Stages that have to run in every case. A stage that was skipped, failed or is missing makes the case an
    /// error: no silent fallback is scored. One that was ready and found nothing to do, and says so by `needless`,
    /// does not.
    pub fn requires<S: Into<String>>(&mut self, stages: impl IntoIterator<Item = S>) -> &mut Self {
        self.plan.requires.extend(stages.into_iter().map(Into::into));
        self
    }

    /// Says which variant should be the best, which the second best, and so on. One more trial, `NAME::order`,
    /// compares each with the next, by every scorer that counts for the verdict of a case, over the cases that both
    /// have scored. A tie is allowed; a variant that is worse than the next one, and not by chance (paired
    /// randomisation test, two-sided, p < 0.05), fails.
    ///
    /// ```
    /// # use rankgate::prelude::*;
    /// # fn engine(_: &str, _: u32) -> Result<Ranking> { Ok(Ranking::from_docids(["a.md"])) }
    /// # let mut suite = Suite::default();
    /// suite
    ///     .eval("effort")
    ///     .cases(|| vec![Example::new("q1", "roll back").expecting(Judgments::from([("a.md".into(), 1)]))])
    ///     .variant("thorough", |case, _| engine(case.input, 40))
    ///     .variant("fast", |case, _| engine(case.input, 5))
    ///     .score(recall_at(5))
    ///     .ordered(["thorough", "fast"]);
    /// ```
    pub fn ordered<S: Into<String>>(&mut self, best_first: impl IntoIterator<Item = S>) -> &mut Self {
        self.plan.order = best_first.into_iter().map(Into::into).collect();
        self
    }

    /// Runs these cases alone, while you work on them. Refused where `CI` is set.
    pub fn only<S: Into<String>>(&mut self, ids: impl IntoIterator<Item = S>) -> &mut Self {
        self.plan.only.extend(ids.into_iter().map(Into::into));
        self
    }

    /// Leaves the whole eval out.
    pub fn skip(&mut self, reason: &str) -> &mut Self {
        self.plan.skip = Some(reason.into());
        self
    }

    /// Leaves one case out of trials and means.
    pub fn skip_case(&mut self, id: &str, reason: &str) -> &mut Self {
        self.plan.skip_cases.insert(id.into(), reason.into());
        self
    }

    /// Declares that a case is below its floor and why. It stays in every mean, and fails as soon as it is no
    /// miss any more, so that the declaration does not outlive its reason.
    pub fn known_miss(&mut self, id: &str, reason: &str) -> &mut Self {
        self.plan.known_misses.insert(id.into(), reason.into());
        self
    }
}

/// What the harness sees of an [`Eval`].
pub(super) trait Definition: Any + Send {
    fn plan(&self) -> &Plan;
    /// Loads the cases; one body a subject, with the variant's name.
    fn load(self: Box<Self>) -> Result<Vec<Loaded>, String>;
}

/// One subject with its cases.
pub(super) struct Loaded {
    pub title: String,
    pub body: Arc<dyn Body>,
}

impl<C: Case, O: Output> Definition for Eval<C, O> {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn load(self: Box<Self>) -> Result<Vec<Loaded>, String> {
        let Self { plan, load, subjects, scorers, columns, snapshot, setup } = *self;
        if plan.name.contains(['[', ']']) || plan.name.contains("::") {
            return Err(format!("the name `{}` contains a bracket or `::`", plan.name));
        }
        let mut cases = quietly(load)?.map_err(|error| report(&error))?;
        let ids: Vec<String> = cases.iter().map(|case| case.id().to_string()).collect();
        plan.check(&ids)?;
        let variants: Vec<_> = subjects.iter().map(|(variant, _)| variant.clone()).collect();
        plan.check_order(&variants)?;
        if !plan.only.is_empty() {
            cases.retain(|case| plan.only.iter().any(|id| id == case.id()));
        }
        let requires = plan.requires.clone();
        let shared =
            Arc::new(Shared { cases, scorers, columns, snapshot, requires, setup: Ready::new(setup) });
        let mut seen = std::collections::HashSet::new();
        let mut loaded = Vec::new();
        for (variant, subject) in subjects {
            let title = match &variant {
                None => plan.name.clone(),
                Some(variant) => plan.title_of(variant),
            };
            let variant = variant.unwrap_or_else(|| "no variant".into());
            if let Some(problem) = unusable(&variant) {
                return Err(format!("the variant `{}` {problem}", variant.escape_debug()));
            }
            if !seen.insert(title.clone()) {
                return Err(format!("two subjects are called `{title}`"));
            }
            loaded.push(Loaded { title, body: Arc::new(Typed { shared: Arc::clone(&shared), subject }) });
        }
        Ok(loaded)
    }
}
