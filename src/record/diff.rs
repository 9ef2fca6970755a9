//! What became of one ranking in another: documents that entered, left and moved.

use std::collections::{HashMap, HashSet};
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The difference between two rankings. Ranks count from 1; a document that a ranking repeats counts where it stands
/// first.
///
/// ```
/// use rankgate::record::diff::RankedDiff;
/// let diff = RankedDiff::between(["a", "b", "c"], ["c", "a", "d"]);
/// assert_eq!(diff.to_string(), "left     b  was 2\nentered  d  now 3\nmoved    c  3 → 1\nmoved    a  1 → 2\n");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankedDiff {
    /// Documents of the first ranking that the second one lacks, in the order of the first.
    pub left: Vec<Left>,
    /// Documents of the second ranking that the first one lacks, in the order of the second.
    pub entered: Vec<Entered>,
    /// Documents of both whose rank changed, in the order of the second.
    pub moved: Vec<Moved>,
    /// How many documents kept their rank.
    pub kept: usize,
}

/// A document that is not in the ranking any more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Left {
    /// The document.
    pub docid: String,
    /// The rank that it had.
    pub was: usize,
    /// The stage that lost it, where that was looked into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Lost>,
}

/// A document that was not in the ranking before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Entered {
    /// The document.
    pub docid: String,
    /// Its rank.
    pub now: usize,
}

/// A document whose rank changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Moved {
    /// The document.
    pub docid: String,
    /// The rank that it had.
    pub from: usize,
    /// The rank that it has.
    pub to: usize,
}

/// A document's place in the list of one stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// The stage: `bm25`, `vector`, `graph` …
    pub stage: String,
    /// The place, from 1.
    pub rank: usize,
}

/// Where a search lost a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "stage", rename_all = "kebab-case")]
pub enum Lost {
    /// It is not among the documents that may be found.
    Index,
    /// No lane finds it, down to rank `looked`.
    Lanes {
        /// How far every lane was read.
        looked: usize,
    },
    /// Lanes find it, all of them below the rank at which their lists are cut.
    Cut {
        /// Where they find it.
        lanes: Vec<Place>,
        /// Where they are cut.
        cut: usize,
    },
    /// Other documents come first, before anything is reranked. Of a search with one lane: in its list.
    Fusion {
        /// Its place in the fused list.
        rank: usize,
        /// Its places in the lanes.
        lanes: Vec<Place>,
    },
    /// Its place before reranking was good enough.
    Rerank {
        /// That place.
        before: usize,
        /// The place after it.
        after: usize,
    },
}

impl RankedDiff {
    /// What became of `first` in `second`. Nothing is said of why documents left.
    pub fn between<'a>(
        first: impl IntoIterator<Item = &'a str>,
        second: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let (first, second) = (Ranks::of(first), Ranks::of(second));
        let mut diff = Self::default();
        for (docid, was) in first.ordered() {
            if second.rank(docid).is_none() {
                diff.left.push(Left { docid: docid.into(), was, lost: None });
            }
        }
        for (docid, now) in second.ordered() {
            match first.rank(docid) {
                None => diff.entered.push(Entered { docid: docid.into(), now }),
                Some(was) if was == now => diff.kept += 1,
                Some(from) => diff.moved.push(Moved { docid: docid.into(), from, to: now }),
            }
        }
        diff
    }

    /// Whether both rankings are the same.
    pub fn is_empty(&self) -> bool {
        self.left.is_empty() && self.entered.is_empty() && self.moved.is_empty()
    }
}

/// Distinct documents with their ranks.
struct Ranks<'a> {
    order: Vec<&'a str>,
    ranks: HashMap<&'a str, usize>,
}

impl<'a> Ranks<'a> {
    fn of(ranking: impl IntoIterator<Item = &'a str>) -> Self {
        let mut seen = HashSet::new();
        let order: Vec<&str> = ranking.into_iter().filter(|docid| seen.insert(*docid)).collect();
        let ranks = order.iter().copied().zip(1..).collect();
        Self { order, ranks }
    }

    fn ordered(&self) -> impl Iterator<Item = (&'a str, usize)> {
        self.order.iter().copied().zip(1..)
    }

    fn rank(&self, docid: &str) -> Option<usize> {
        self.ranks.get(docid).copied()
    }
}

/// One line a document, whatever its name holds; nothing where the rankings are the same.
impl fmt::Display for RankedDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Left { docid, was, lost } in &self.left {
            write!(f, "left     {}  was {was}", Line(docid))?;
            match lost {
                Some(lost) => writeln!(f, ": {lost}")?,
                None => writeln!(f)?,
            }
        }
        for Entered { docid, now } in &self.entered {
            writeln!(f, "entered  {}  now {now}", Line(docid))?;
        }
        for Moved { docid, from, to } in &self.moved {
            writeln!(f, "moved    {}  {from} → {to}", Line(docid))?;
        }
        Ok(())
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index => write!(f, "not among the documents that were searched"),
            Self::Lanes { looked } => write!(f, "in no lane, down to rank {looked}"),
            Self::Cut { lanes, cut } => {
                write!(f, "below rank {cut}, where lanes are cut ({})", Places(lanes))
            }
            Self::Fusion { rank, lanes } => match lanes.as_slice() {
                [only] if only.rank == *rank => write!(f, "now {rank} of lane {}", only.stage),
                lanes => write!(f, "now {rank} of the fused list ({})", Places(lanes)),
            },
            Self::Rerank { before, after } => write!(f, "now {after} after reranking, {before} before it"),
        }
    }
}

/// A name that stands in a line of its own.
struct Line<'a>(&'a str);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| write!(f, "{}", if c.is_control() { ' ' } else { c }))
    }
}

struct Places<'a>(&'a [Place]);

impl fmt::Display for Places<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Place { stage, rank }) in self.0.iter().enumerate() {
            write!(f, "{}{stage} {rank}", if index > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn repetitions_count_once_and_equal_rankings_have_no_difference() {
        let diff = RankedDiff::between(["a", "a", "b"], ["b", "a", "b"]);
        assert_eq!(diff.to_string(), "moved    b  2 → 1\nmoved    a  1 → 2\n");
        let same = RankedDiff::between(["a", "b"], ["a", "b"]);
        assert!(same.is_empty() && same.kept == 2 && same.to_string().is_empty());
        assert!(RankedDiff::between([], []).is_empty());
        assert_eq!(RankedDiff::between(["a\nb"], []).to_string(), "left     a b  was 1\n");
    }

    #[test]
    fn each_loss_reads_as_a_sentence_and_survives_json() {
        let places = |ranks: &[(&str, usize)]| {
            ranks.iter().map(|(stage, rank)| Place { stage: stage.to_string(), rank: *rank }).collect()
        };
        for (lost, words) in [
            (Lost::Index, "not among the documents"),
            (Lost::Lanes { looked: 1000 }, "in no lane, down to rank 1000"),
            (
                Lost::Cut { lanes: places(&[("bm25", 120), ("vector", 140)]), cut: 100 },
                "below rank 100, where lanes are cut (bm25 120, vector 140)",
            ),
            (Lost::Fusion { rank: 14, lanes: places(&[("bm25", 14)]) }, "now 14 of lane bm25"),
            (
                Lost::Fusion { rank: 14, lanes: places(&[("bm25", 3), ("vector", 40)]) },
                "now 14 of the fused list (bm25 3, vector 40)",
            ),
            (Lost::Rerank { before: 2, after: 12 }, "now 12 after reranking, 2 before it"),
        ] {
            assert!(lost.to_string().contains(words), "{lost}");
            let json = serde_json::to_string(&lost).expect("is plain data");
            assert_eq!(serde_json::from_str::<Lost>(&json).expect("reads"), lost);
        }
    }

    proptest! {
        #[test]
        fn every_document_is_accounted_for_once(
            first in proptest::collection::vec("[a-h]", 0..9), second in proptest::collection::vec("[a-h]", 0..9),
        ) {
            let of = |list: &[String]| list.iter().cloned().collect::<HashSet<_>>().len();
            let diff = RankedDiff::between(first.iter().map(String::as_str), second.iter().map(String::as_str));
            prop_assert_eq!(diff.left.len() + diff.moved.len() + diff.kept, of(&first));
            prop_assert_eq!(diff.entered.len() + diff.moved.len() + diff.kept, of(&second));
            prop_assert_eq!(diff.is_empty(), diff.kept == of(&first) && diff.kept == of(&second));
        }
    }
}
