//! Evaluation of a whole run, and its two forms: the text of `trec_eval` and a JSON document.

use std::collections::BTreeMap;
use std::fmt::Write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::judged::{Judge, Judged, View};
use super::measure::{Formula, Measure, Measures, Parameters};
use crate::corpus::Qrels;
use crate::corpus::trec::Run;
use crate::error::{Error, Result};

/// The version of [`Report`]'s format.
pub const REPORT_VERSION: u32 = 1;

/// What counts as relevant, and which part of the files is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The least grade that counts as relevant (`-l`), 1 by default. Measures with gains use every grade.
    pub level: i64,
    /// Only so many documents of a ranking are looked at (`-M`); all by default.
    pub depth: usize,
    /// Judged queries that the run lacks count as empty rankings (`-c`) instead of being left out.
    pub complete: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { level: 1, depth: usize::MAX, complete: false }
    }
}

/// The value of a measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Value {
    /// A number of documents or queries.
    Count(u64),
    /// Any other number.
    Real(f64),
    /// A run's tag, or the grades of `relstring`.
    Text(String),
}

/// The result of [`evaluate`].
#[derive(Debug, Clone)]
pub struct Evaluation {
    tag: String,
    columns: Vec<String>,
    queries: Vec<(String, Vec<Option<Value>>)>,
    summary: Vec<Option<Value>>,
}

/// Measures `run` against `qrels` as `trec_eval` does.
///
/// Queries without judgments are left out, and so are judged queries without a ranking unless
/// `options.complete`. Where a measure is not defined for a query (nothing relevant, nothing retrieved), its
/// value is 0, as in `trec_eval`. A document that a ranking repeats counts once, where it ranks best;
/// `trec_eval` refuses such a run.
///
/// Fails when no query has both a ranking and judgments.
///
/// ```
/// use rankgate::corpus::trec::{Run, parse_qrels};
/// use rankgate::metrics::{Measures, Options, evaluate};
///
/// let run = Run::parse("run", b"q1 Q0 a 1 2.0 bm25\nq1 Q0 b 2 1.0 bm25\n".to_vec())?;
/// let qrels = parse_qrels("qrels", b"q1 0 b 1\n".to_vec())?;
/// let evaluation = evaluate(&run, &qrels, &Measures::parse(&["recip_rank"])?, Options::default())?;
/// assert_eq!(evaluation.text(false), "recip_rank            \tall\t0.5000\n");
/// assert_eq!(evaluation.mean("recip_rank"), Some(0.5));
/// # Ok::<(), rankgate::Error>(())
/// ```
pub fn evaluate(run: &Run, qrels: &Qrels, measures: &Measures, options: Options) -> Result<Evaluation> {
    let view = View { level: options.level, depth: options.depth };
    let mut judge = Judge::default();
    let mut queries = Vec::new();
    let mut sums: Vec<f64> = Vec::new();
    for (query, judgments) in qrels {
        let values = match run.ranking(query) {
            Some(ranking) => {
                values(measures, judge.judge(ranking.map(|(docid, _)| docid), judgments, view), &mut sums)
            }
            None if options.complete => values(measures, judge.judge([], judgments, view), &mut sums),
            None => continue,
        };
        queries.push((query.clone(), values));
    }
    if queries.is_empty() {
        return Err(nothing_in_common(run, qrels));
    }
    let summary = summary(measures, run.tag(), &sums, queries.len());
    let columns = measures.0.iter().flat_map(Measure::columns).collect();
    Ok(Evaluation { tag: run.tag().to_string(), columns, queries, summary })
}

fn nothing_in_common(run: &Run, qrels: &Qrels) -> Error {
    let first = |mut ids: Box<dyn Iterator<Item = &str> + '_>| ids.next().unwrap_or("none").to_string();
    let ranked = first(Box::new(run.queries()));
    let judged = first(Box::new(qrels.keys().map(String::as_str)));
    Error::input("no query has both a ranking and judgments")
        .with_hint(format!("the run's first query is `{ranked}`, the judgments' first is `{judged}`"))
}

/// The values of one query, one a column, added to the `sums` over queries.
fn values(measures: &Measures, judged: &Judged, sums: &mut Vec<f64>) -> Vec<Option<Value>> {
    let mut values = Vec::with_capacity(sums.len());
    let mut at = 0;
    let mut add = |term: f64| {
        match sums.get_mut(at) {
            Some(sum) => *sum += term,
            None => sums.push(term),
        }
        at += 1;
        term
    };
    for measure in &measures.0 {
        match (measure.definition.formula, &measure.parameters) {
            (Formula::Count(of), _) => {
                let count = of(judged);
                add(count as f64);
                values.push(Some(Value::Count(count as u64)));
            }
            (Formula::Single(of), _) => values.push(Some(Value::Real(add(of(judged))))),
            (Formula::Geometric(of), _) => {
                add(of(judged));
                values.push(None);
            }
            (Formula::AtRanks(_, of), Parameters::Ranks(ranks)) => {
                values.extend(ranks.iter().map(|rank| Some(Value::Real(add(of(judged, *rank))))));
            }
            (Formula::AtShares(_, of), Parameters::Numbers(shares)) => {
                values.extend(shares.iter().map(|share| Some(Value::Real(add(of(judged, *share))))));
            }
            (Formula::From(_, _, of), Parameters::Numbers(numbers)) => {
                values.push(Some(Value::Real(add(of(judged, numbers)))));
            }
            (Formula::WithGains(of), Parameters::Gains(gains)) => {
                values.push(Some(Value::Real(add(of(judged, gains)))));
            }
            (Formula::Characters(_), Parameters::Ranks(length)) => {
                add(0.0);
                values.push(Some(Value::Text(characters(judged, length[0]))));
            }
            _ => {
                add(0.0);
                values.push(None);
            }
        }
    }
    values
}

/// The first grades, one character each: `>` above nine, `.` pooled but not judged, `-` not in the pool.
fn characters(judged: &Judged, length: usize) -> String {
    let mut text = vec!['-'; length.min(judged.retrieved)];
    for found in judged.first(length) {
        text[found.rank - 1] = match found.grade {
            grade @ 0..=9 => char::from(b'0' + grade as u8),
            10.. => '>',
            _ => '.',
        };
    }
    text.into_iter().collect()
}

/// One value a column over all `n` queries.
fn summary(measures: &Measures, tag: &str, sums: &[f64], n: usize) -> Vec<Option<Value>> {
    let mut summary = Vec::with_capacity(sums.len());
    for measure in &measures.0 {
        for _ in measure.columns() {
            let sum = sums[summary.len()];
            summary.push(match measure.definition.formula {
                Formula::RunId => Some(Value::Text(tag.to_string())),
                Formula::NumQueries => Some(Value::Count(n as u64)),
                Formula::Count(_) => Some(Value::Count(sum as u64)),
                Formula::Geometric(_) => Some(Value::Real((sum / n as f64).exp())),
                Formula::Characters(_) => None,
                _ => Some(Value::Real(sum / n as f64)),
            });
        }
    }
    summary
}

impl Evaluation {
    /// What `trec_eval` prints: name, query and value a line, the summary last; `per_query` as with `-q`.
    pub fn text(&self, per_query: bool) -> String {
        let mut text = String::new();
        if per_query {
            for (query, values) in &self.queries {
                self.write(&mut text, query, values, "'");
            }
        }
        self.write(&mut text, "all", &self.summary, "");
        text
    }

    fn write(&self, text: &mut String, query: &str, values: &[Option<Value>], quote: &str) {
        for (name, value) in self.columns.iter().zip(values) {
            // Writing to a String cannot fail.
            let _ = match value {
                Some(Value::Count(count)) => writeln!(text, "{name:<22}\t{query}\t{count}"),
                Some(Value::Real(real)) => writeln!(text, "{name:<22}\t{query}\t{real:6.4}"),
                Some(Value::Text(word)) => writeln!(text, "{name:<22}\t{query}\t{quote}{word}{quote}"),
                None => Ok(()),
            };
        }
    }

    /// The value of a column such as `ndcg_cut_10` over all queries; `None` when it was not asked for or is
    /// text.
    pub fn mean(&self, column: &str) -> Option<f64> {
        let at = self.columns.iter().position(|name| name == column)?;
        number(self.summary[at].as_ref()?)
    }

    /// The values of a column query by query, in the order of query ids; empty when it was not asked for.
    pub fn per_query(&self, column: &str) -> Vec<(&str, f64)> {
        let Some(at) = self.columns.iter().position(|name| name == column) else { return Vec::new() };
        let queries = self.queries.iter();
        queries.filter_map(|(query, values)| Some((query.as_str(), number(values[at].as_ref()?)?))).collect()
    }

    /// The document that `--json` prints, with full precision; `per_query` fills its queries.
    pub fn report(&self, per_query: bool) -> Report {
        let named = |values: &[Option<Value>]| -> BTreeMap<String, Value> {
            let columns = self.columns.iter().zip(values);
            columns.filter_map(|(name, value)| Some((name.clone(), value.clone()?))).collect()
        };
        let queries = self.queries.iter().filter(|_| per_query);
        Report {
            version: REPORT_VERSION,
            run_id: self.tag.clone(),
            measures: named(&self.summary),
            queries: queries.map(|(query, values)| (query.clone(), named(values))).collect(),
        }
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Count(count) => Some(*count as f64),
        Value::Real(real) => Some(*real),
        Value::Text(_) => None,
    }
}

/// What `rankgate metrics --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "rankgate metrics")]
pub struct Report {
    /// Version of this format.
    pub version: u32,
    /// Tag of the run.
    pub run_id: String,
    /// Each measure over all queries, by its name in trec_eval.
    pub measures: BTreeMap<String, Value>,
    /// The same by query, with `-q`; measures that only exist over all queries are absent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub queries: BTreeMap<String, BTreeMap<String, Value>>,
}

/// The JSON schema of [`Report`].
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(Report)
}
