//! The measures by the names, parameters and order that `trec_eval` gives them.

use super::formula::{self as f, Gains};
use super::judged::Judged;
use crate::error::{Error, Result};

/// How a measure is computed and what parameters it takes.
#[derive(Clone, Copy)]
pub(super) enum Formula {
    /// The tag of the run; summary only.
    RunId,
    /// The number of queries; summary only.
    NumQueries,
    /// A whole number, summed over the queries.
    Count(fn(&Judged) -> usize),
    /// A number, averaged over the queries.
    Single(fn(&Judged) -> f64),
    /// A logarithm whose mean is raised again; summary only.
    Geometric(fn(&Judged) -> f64),
    /// One number for each rank.
    AtRanks(&'static [usize], fn(&Judged, usize) -> f64),
    /// One number for each share.
    AtShares(&'static [f64], fn(&Judged, f64) -> f64),
    /// One number from an ordered list of parameters; `true` when there must be as many as the default has.
    From(&'static [f64], bool, fn(&Judged, &[f64]) -> f64),
    /// One number from grades, which parameters `grade=gain` replace.
    WithGains(fn(&Judged, &Gains) -> f64),
    /// One character for each of the first documents; single queries only.
    Characters(&'static [usize]),
}

/// A row of the table of measures.
pub(super) struct Definition {
    pub name: &'static str,
    sets: u8,
    pub formula: Formula,
    about: &'static str,
}

/// Names for several measures at once.
const SETS: &[(&str, u8, &str)] = &[
    ("official", OFFICIAL, "what is printed without -m"),
    ("set", SET, "measures that ignore the order"),
    ("all_trec", ALL, "every measure of trec_eval for graded judgments, except rbp"),
];
const OFFICIAL: u8 = 1;
const SET: u8 = 2;
const ALL: u8 = 4;

const RANKS: &[usize] = &[5, 10, 15, 20, 30, 100, 200, 500, 1000];
const ELEVEN: &[f64] = &[0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];
const MULTIPLES: &[f64] = &[0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0];

const fn row(name: &'static str, sets: u8, formula: Formula, about: &'static str) -> Definition {
    Definition { name, sets, formula, about }
}

use Formula::{AtRanks, AtShares, Characters, Count, From, Geometric, NumQueries, RunId, Single, WithGains};

/// Every measure, in the order of output.
static TABLE: &[Definition] = &[
    row("runid", OFFICIAL | SET | ALL, RunId, "tag of the run"),
    row("num_q", OFFICIAL | SET | ALL, NumQueries, "queries measured"),
    row("num_ret", OFFICIAL | SET | ALL, Count(|j| j.retrieved), "documents retrieved"),
    row("num_rel", OFFICIAL | SET | ALL, Count(|j| j.num_relevant), "relevant documents"),
    row("num_rel_ret", OFFICIAL | SET | ALL, Count(|j| j.relevant.len()), "relevant documents retrieved"),
    row("map", OFFICIAL | ALL, Single(f::average_precision), "average precision"),
    row("gm_map", OFFICIAL | ALL, Geometric(f::log_average_precision), "its geometric mean"),
    row("Rprec", OFFICIAL | ALL, Single(f::r_precision), "precision at R, the number of relevant documents"),
    row("bpref", OFFICIAL | ALL, Single(f::bpref), "binary preference, over judged documents only"),
    row("recip_rank", OFFICIAL | ALL, Single(f::reciprocal_rank), "1 / rank of the first relevant document"),
    row(
        "iprec_at_recall",
        OFFICIAL | ALL,
        AtShares(ELEVEN, f::interpolated_precision),
        "interpolated precision at shares of recall",
    ),
    row("P", OFFICIAL | ALL, AtRanks(RANKS, f::precision), "precision at ranks"),
    row("relstring", ALL, Characters(&[10]), "grades of the first documents, `-` where unjudged; with -q"),
    row("recall", ALL, AtRanks(RANKS, f::recall), "recall at ranks"),
    row(
        "infAP",
        ALL,
        Single(f::inferred_average_precision),
        "average precision inferred from a sampled pool",
    ),
    row("gm_bpref", ALL, Geometric(f::log_bpref), "geometric mean of bpref"),
    row("Rprec_mult", ALL, AtShares(MULTIPLES, f::r_precision_multiple), "precision at multiples of R"),
    row(
        "utility",
        SET | ALL,
        From(&[1.0, -1.0, 0.0, 0.0], true, f::utility),
        "weights for hits, false hits, misses, rest",
    ),
    row("11pt_avg", ALL, From(ELEVEN, false, f::eleven_point_average), "mean of iprec_at_recall over shares"),
    row("binG", ALL, Single(f::binary_g), "gain discounted by non-relevant documents before it"),
    row("G", ALL, WithGains(f::normalized_gain), "the same with graded gains"),
    row("dcg", 0, WithGains(f::dcg), "discounted cumulative gain"),
    row("ideal_dcg", 0, WithGains(f::ideal_dcg), "the highest dcg possible"),
    row("ndcg", ALL, WithGains(f::ndcg), "dcg / ideal_dcg, gain = grade"),
    row("ndcg_rel", ALL, WithGains(f::ndcg_at_relevant), "ndcg averaged over relevant documents"),
    row(
        "Rndcg",
        ALL,
        WithGains(f::ndcg_at_levels),
        "ndcg averaged over the ranks where the ideal gain falls",
    ),
    row("ndcg_cut", ALL, AtRanks(RANKS, f::ndcg_cut), "ndcg at ranks"),
    row("map_cut", ALL, AtRanks(RANKS, f::average_precision_cut), "average precision at ranks"),
    row("relative_P", ALL, AtRanks(RANKS, f::relative_precision), "precision / highest possible at ranks"),
    row("success", ALL, AtRanks(&[1, 5, 10], f::success), "1 when a relevant document is among the first"),
    row("set_P", SET | ALL, Single(f::set_precision), "precision of all that was retrieved"),
    row("set_relative_P", SET | ALL, Single(f::set_relative_precision), "set_P / highest possible"),
    row("set_recall", SET | ALL, Single(f::set_recall), "recall of all that was retrieved"),
    row("set_map", SET | ALL, Single(f::set_map), "set_P times set_recall"),
    row("set_F", SET | ALL, From(&[1.0], true, f::set_f), "F of set_P and set_recall; weight of recall"),
    row(
        "num_nonrel_judged_ret",
        ALL,
        Count(|j| j.found.iter().filter(|found| (0..j.level).contains(&found.grade)).count()),
        "documents retrieved that were judged not relevant",
    ),
    row("unj", ALL, AtRanks(&[5, 10, 20], f::unjudged), "share of the first that nobody judged"),
];

/// What `trec_eval` has and this program has not.
const LEFT_OUT: &[(&str, &str)] = &[
    ("rbp", "the reference reads memory that it never set, so there is nothing to agree with"),
    ("prefs", "preference judgments are not read"),
    ("all_prefs", "preference judgments are not read"),
    ("qrels_jg", "groups of judges are not read"),
];

/// A measure with its parameters.
#[derive(Clone)]
pub(super) struct Measure {
    pub definition: &'static Definition,
    pub parameters: Parameters,
    /// What was typed behind the dot.
    pub typed: Option<String>,
}

/// Parameters in force, typed or default.
#[derive(Clone)]
pub(super) enum Parameters {
    None,
    Ranks(Vec<usize>),
    Numbers(Vec<f64>),
    Gains(Gains),
}

impl Measure {
    fn new(definition: &'static Definition, typed: Option<&str>) -> Result<Self> {
        let parameters = match (definition.formula, typed) {
            (AtRanks(default, _) | Characters(default), None) => Parameters::Ranks(default.to_vec()),
            (AtShares(default, _) | From(default, _, _), None) => Parameters::Numbers(default.to_vec()),
            (WithGains(_), None) => Parameters::Gains(Gains::default()),
            (_, None) => Parameters::None,
            (formula, Some(typed)) => parse(formula, typed).map_err(|why| {
                let what = format!("measure `{}.{typed}`: {why}", definition.name);
                Error::usage(what).with_hint(usage(definition.name, formula))
            })?,
        };
        Ok(Self { definition, parameters, typed: typed.map(str::to_string) })
    }

    /// The names under which values are printed, one a value.
    pub fn columns(&self) -> Vec<String> {
        let name = self.definition.name;
        match (&self.definition.formula, &self.parameters, &self.typed) {
            (AtRanks(..), Parameters::Ranks(ranks), _) => {
                ranks.iter().map(|rank| format!("{name}_{rank}")).collect()
            }
            (AtShares(..), Parameters::Numbers(shares), _) => {
                shares.iter().map(|share| format!("{name}_{share:3.2}")).collect()
            }
            (_, _, Some(typed)) => vec![format!("{name}_{typed}")],
            _ => vec![name.to_string()],
        }
    }
}

/// Reads the parameters of a formula; the error says what is wrong with them.
fn parse(formula: Formula, typed: &str) -> Result<Parameters, String> {
    let parts = typed.split(',');
    match formula {
        AtRanks(..) | Characters(_) => {
            // As trec_eval does, a decimal is cut to the whole number below.
            let mut ranks: Vec<usize> =
                parts.map(|part| number(part).map(|value| value as usize)).collect::<Result<_, _>>()?;
            if ranks.contains(&0) {
                return Err("a rank is at least 1".into());
            }
            if matches!(formula, Characters(_)) && ranks.len() != 1 {
                return Err("it takes one number".into());
            }
            ranks.sort_unstable();
            distinct(&ranks)?;
            Ok(Parameters::Ranks(ranks))
        }
        AtShares(..) => {
            let mut shares: Vec<f64> = parts.map(number).collect::<Result<_, _>>()?;
            if shares.iter().any(|share| *share < 0.0) {
                return Err("a share is not negative".into());
            }
            shares.sort_unstable_by(f64::total_cmp);
            distinct(&shares)?;
            Ok(Parameters::Numbers(shares))
        }
        From(default, exact, _) => {
            let numbers: Vec<f64> = parts.map(number).collect::<Result<_, _>>()?;
            match exact && numbers.len() != default.len() {
                true => Err(format!("it takes {} numbers", default.len())),
                false => Ok(Parameters::Numbers(numbers)),
            }
        }
        WithGains(_) => {
            let pairs = parts.map(|pair| {
                let (grade, gain) = pair.split_once('=').ok_or(format!("`{pair}` is not grade=gain"))?;
                let grade = grade.trim().parse::<u32>().map_err(|_| format!("`{grade}` is not a grade"))?;
                Ok::<_, String>((i64::from(grade), number(gain)?))
            });
            let pairs: Vec<(i64, f64)> = pairs.collect::<Result<_, _>>()?;
            let mut grades: Vec<i64> = pairs.iter().map(|(grade, _)| *grade).collect();
            grades.sort_unstable();
            distinct(&grades)?;
            Ok(Parameters::Gains(Gains(pairs)))
        }
        RunId | NumQueries | Count(_) | Single(_) | Geometric(_) => Err("it takes no parameters".into()),
    }
}

fn number(text: &str) -> Result<f64, String> {
    let value = text.trim().parse::<f64>().ok().filter(|value| value.is_finite());
    value.ok_or_else(|| format!("`{text}` is not a number"))
}

fn distinct<T: PartialEq + std::fmt::Debug>(sorted: &[T]) -> Result<(), String> {
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("{:?} comes twice", pair[0])),
        None => Ok(()),
    }
}

/// How to write a measure, with its default where it has one.
fn usage(name: &str, formula: Formula) -> String {
    fn list<T: ToString>(values: &[T]) -> String {
        values.iter().map(T::to_string).collect::<Vec<_>>().join(",")
    }
    match formula {
        AtRanks(ranks, _) | Characters(ranks) => format!("write {name}.{}", list(ranks)),
        AtShares(numbers, _) | From(numbers, _, _) => format!("write {name}.{}", list(numbers)),
        WithGains(_) => format!("write {name}.1=3,2=9 for a gain of 3 at grade 1 and 9 at grade 2"),
        RunId | NumQueries | Count(_) | Single(_) | Geometric(_) => format!("write {name}"),
    }
}

/// Measures that were asked for, each once, in the order of output.
#[derive(Clone)]
pub struct Measures(pub(super) Vec<Measure>);

impl Measures {
    /// Reads names as `trec_eval -m` takes them: `map`, `ndcg_cut.10,20`, `ndcg.1=3,2=9`, or a set of
    /// measures (`official`, `set`, `all_trec`). None at all means `official`.
    ///
    /// Fails on an unknown name, with the nearest ones, on parameters that the measure cannot take, and on
    /// one measure with two different lists of parameters (`trec_eval` would drop the second without a word).
    pub fn parse<S: AsRef<str>>(names: &[S]) -> Result<Self> {
        let mut chosen: Vec<(bool, Option<&str>)> = vec![(false, None); TABLE.len()];
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        for asked in if names.is_empty() { &["official"][..] } else { &names } {
            let (name, typed) = match asked.split_once('.') {
                Some((name, typed)) => (name, Some(typed)),
                None => (*asked, None),
            };
            if let Some((_, bit, _)) = SETS.iter().find(|(set, _, _)| *set == name) {
                if typed.is_some() {
                    return Err(Error::usage(format!("measure `{asked}`: a set takes no parameters"))
                        .with_hint("give them to a measure of the set, as in -m all_trec -m P.5"));
                }
                TABLE
                    .iter()
                    .zip(&mut chosen)
                    .filter(|(row, _)| row.sets & bit != 0)
                    .for_each(|(_, c)| c.0 = true);
                continue;
            }
            let at = TABLE.iter().position(|row| row.name == name).ok_or_else(|| unknown(name))?;
            chosen[at].0 = true;
            match (chosen[at].1, typed) {
                (Some(first), Some(second)) if first != second => {
                    let what = format!("measure `{name}` is given two lists of parameters");
                    return Err(Error::usage(what).with_hint(format!("write one: {name}.{first},{second}")));
                }
                (None, Some(_)) => chosen[at].1 = typed,
                _ => {}
            }
        }
        let chosen = TABLE.iter().zip(chosen).filter(|(_, (wanted, _))| *wanted);
        chosen.map(|(row, (_, typed))| Measure::new(row, typed)).collect::<Result<_>>().map(Self)
    }

    /// The table of measures and sets, for a help page.
    pub fn help() -> String {
        let mut text = String::from("Sets of measures:\n");
        for (name, _, about) in SETS {
            text += &format!("  {name:<22} {about}\n");
        }
        text += "\nMeasures, in the order of output (with their default parameters):\n";
        for row in TABLE {
            let parameters = match usage(row.name, row.formula) {
                _ if matches!(row.formula, WithGains(_)) => " [.grade=gain,…]".to_string(),
                shown => shown.split_once('.').map_or_else(String::new, |(_, list)| format!(" [.{list}]")),
            };
            text += &format!("  {:<22} {}{parameters}\n", row.name, row.about);
        }
        text
    }
}

fn unknown(name: &str) -> Error {
    let left_out =
        |left: &str| name == left || name.strip_prefix(left).is_some_and(|rest| rest.starts_with('_'));
    if let Some((_, why)) = LEFT_OUT.iter().find(|(left, _)| left_out(left)) {
        return Error::usage(format!("measure `{name}` is left out: {why}"));
    }
    let names = SETS.iter().map(|(name, _, _)| *name).chain(TABLE.iter().map(|row| row.name));
    let mut near: Vec<_> = names.map(|known| (distance(name, known), known)).collect();
    near.sort_by_key(|(far, _)| *far);
    let near: Vec<_> = near.iter().take(3).map(|(_, known)| format!("`{known}`")).collect();
    Error::usage(format!("there is no measure `{name}`"))
        .with_hint(format!("nearest: {}; `rankgate metrics --help` lists all", near.join(", ")))
}

/// Levenshtein distance, case aside.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.to_ascii_lowercase(), b.to_ascii_lowercase());
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.chars().enumerate() {
            let change = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = change.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.chars().count()]
}
