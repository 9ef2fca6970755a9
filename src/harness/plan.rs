//! What an eval file decided, apart from its types.

use std::collections::BTreeMap;
use std::time::Duration;

/// A scorer as verdicts see it.
#[derive(Debug, Clone)]
pub struct Gauge {
    pub name: String,
    pub threshold: Option<f64>,
    pub gates: bool,
    /// Whether it counts for the verdict of a case.
    pub of_case: bool,
}

/// The settings of one eval.
#[derive(Debug, Clone)]
pub struct Plan {
    pub name: String,
    /// The file that registered it, relative to the project.
    pub file: String,
    pub description: String,
    pub gauges: Vec<Gauge>,
    pub threshold: Option<f64>,
    pub case_floor: Option<f64>,
    pub confident: bool,
    pub trials: u32,
    pub retries: u32,
    pub timeout: Duration,
    pub concurrency: usize,
    pub requires: Vec<String>,
    pub only: Vec<String>,
    pub skip: Option<String>,
    pub skip_cases: BTreeMap<String, String>,
    pub known_misses: BTreeMap<String, String>,
    /// Variants, the best first, none of which may be worse than the next.
    pub order: Vec<String>,
}

impl Plan {
    pub fn new(name: &str, file: &str) -> Self {
        Self {
            name: name.into(),
            file: file.into(),
            description: String::new(),
            gauges: Vec::new(),
            threshold: None,
            case_floor: None,
            confident: false,
            trials: 1,
            retries: 0,
            timeout: Duration::from_secs(120),
            concurrency: usize::MAX,
            requires: Vec::new(),
            only: Vec::new(),
            skip: None,
            skip_cases: BTreeMap::new(),
            known_misses: BTreeMap::new(),
            order: Vec::new(),
        }
    }

    /// What the trials of a variant are called.
    pub fn title_of(&self, variant: &str) -> String {
        format!("{}[{variant}]", self.name)
    }

    /// What the mean of a scorer has to reach, if anything.
    pub fn threshold_of(&self, gauge: &Gauge) -> Option<f64> {
        if gauge.gates { gauge.threshold.or(self.threshold) } else { None }
    }

    /// The first contradiction in the settings, given the ids of all cases.
    pub fn check(&self, ids: &[String]) -> Result<(), String> {
        self.check_names(ids)?;
        for (what, value) in self
            .gauges
            .iter()
            .map(|gauge| (gauge.name.as_str(), gauge.threshold))
            .chain([("the eval", self.threshold), ("case_floor", self.case_floor)])
        {
            if let Some(value) = value.filter(|value| !(0.0..=1.0).contains(value)) {
                return Err(format!("the threshold of {what} is {value}, it must be from 0 to 1"));
            }
        }
        let named = self.only.iter().chain(self.skip_cases.keys()).chain(self.known_misses.keys());
        for id in named {
            if !ids.contains(id) {
                let near =
                    nearest(id, ids).map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
                return Err(format!("case `{id}` is named in the eval, but there is no such case{near}"));
            }
        }
        Ok(())
    }

    /// The first contradiction in the order, given the names of all variants; a subject without one is `None`.
    pub fn check_order(&self, variants: &[Option<String>]) -> Result<(), String> {
        if self.order.is_empty() {
            return Ok(());
        }
        let named: Vec<String> = variants.iter().flatten().cloned().collect();
        if named.len() < variants.len() || self.order.len() < 2 {
            return Err("`ordered` compares variants: name two or more, and add every subject as one".into());
        }
        let mut seen = std::collections::HashSet::new();
        for name in &self.order {
            if !named.contains(name) {
                let near = nearest(name, &named)
                    .map(|near| format!(" (did you mean `{near}`?)"))
                    .unwrap_or_default();
                return Err(format!("`ordered` names variant `{name}`, and there is no such variant{near}"));
            }
            if !seen.insert(name) {
                return Err(format!("`ordered` names variant `{name}` twice"));
            }
        }
        if !self.gauges.iter().any(|gauge| gauge.of_case) {
            return Err("`ordered` has nothing to compare: no scorer counts for the verdict of a case".into());
        }
        Ok(())
    }

    fn check_names(&self, ids: &[String]) -> Result<(), String> {
        if let Some(problem) = unusable(&self.name) {
            return Err(format!("the name `{}` {problem}", self.name.escape_debug()));
        }
        let mut scorers = std::collections::HashSet::new();
        if let Some(twice) = self.gauges.iter().find(|gauge| !scorers.insert(&gauge.name)) {
            return Err(format!("two scorers are called `{}`", twice.name));
        }
        let mut seen = std::collections::HashSet::new();
        for id in ids {
            if let Some(problem) = unusable(id) {
                return Err(format!("case id `{}` {problem}", id.escape_debug()));
            }
            if id == "gate" || id == "load" {
                return Err(format!("case id `{id}` is taken by the harness"));
            }
            if !seen.insert(id) {
                return Err(format!("two cases have the id `{id}` (ids must be unique)"));
            }
        }
        Ok(())
    }
}

/// Why a name cannot be listed, one to a line, and typed as a filter.
pub fn unusable(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("is empty")
    } else if name.trim() != name {
        Some("begins or ends with a space")
    } else if name.chars().any(char::is_control) {
        Some("contains a control character")
    } else if name.ends_with(": test") || name.ends_with(": benchmark") {
        Some("ends like a line of a test list")
    } else {
        None
    }
}

/// The id that shares the longest beginning with `wanted`, when that is at least half of it.
fn nearest<'a>(wanted: &str, ids: &'a [String]) -> Option<&'a str> {
    let shared = |id: &str| id.chars().zip(wanted.chars()).take_while(|(a, b)| a == b).count();
    let best = ids.iter().max_by_key(|id| (shared(id), std::cmp::Reverse(id.len())))?;
    (shared(best) * 2 >= wanted.chars().count()).then_some(best)
}
