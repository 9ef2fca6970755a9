//! A ranking seen through its judgments: the one form that every formula reads.

use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::{BuildHasher, Hasher};

use crate::corpus::Judgments;

/// A retrieved document that is in the judgments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Found {
    /// Its rank, from one.
    pub rank: usize,
    /// Its grade; negative when it was in the pool and nobody judged it.
    pub grade: i64,
}

/// What the formulas need to know of one ranking. Documents without a judgment leave no trace but their rank.
#[derive(Debug, Default)]
pub(super) struct Judged {
    /// The least grade that counts as relevant.
    pub level: i64,
    /// How many distinct documents were retrieved.
    pub retrieved: usize,
    /// The retrieved documents with a judgment, by rank.
    pub found: Vec<Found>,
    /// The ranks of the relevant ones, ascending.
    pub relevant: Vec<usize>,
    /// Each grade of zero or more with its number of documents, highest grade first, retrieved or not.
    pub levels: Vec<(i64, usize)>,
    /// How many documents are relevant, retrieved or not.
    pub num_relevant: usize,
}

impl Judged {
    /// How many of the first `k` documents are relevant.
    pub fn hits(&self, k: usize) -> usize {
        self.relevant.partition_point(|rank| *rank <= k)
    }

    /// The grades of the first `k` documents that have one.
    pub fn first(&self, k: usize) -> &[Found] {
        &self.found[..self.found.partition_point(|found| found.rank <= k)]
    }
}

/// Which part of a ranking counts, and as what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct View {
    /// The least grade that counts as relevant.
    pub level: i64,
    /// Only so many documents are looked at.
    pub depth: usize,
}

impl Default for View {
    fn default() -> Self {
        Self { level: 1, depth: usize::MAX }
    }
}

/// Joins rankings with judgments; its tables are used again from query to query.
#[derive(Debug, Default)]
pub(super) struct Judge<'a> {
    known: HashMap<&'a str, Known, Seed>,
    judged: Judged,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    grade: Option<i64>,
    seen: bool,
}

impl<'a> Judge<'a> {
    /// The judged form of a ranking. A document that comes again is passed over: only its best rank counts.
    pub fn judge(
        &mut self,
        ranking: impl IntoIterator<Item = &'a str>,
        judgments: &'a Judgments,
        view: View,
    ) -> &Judged {
        let Self { known, judged } = self;
        known.clear();
        judged.found.clear();
        judged.levels.clear();
        for (docid, grade) in judgments {
            known.insert(docid, Known { grade: Some(*grade), seen: false });
            if *grade >= 0 {
                match judged.levels.iter_mut().find(|(level, _)| level == grade) {
                    Some((_, count)) => *count += 1,
                    None => judged.levels.push((*grade, 1)),
                }
            }
        }
        judged.levels.sort_unstable_by(|a, b| b.cmp(a));
        let relevant = |grade: i64| grade >= view.level.max(0);
        let counts = judged.levels.iter().filter(|(grade, _)| relevant(*grade));
        judged.num_relevant = counts.map(|(_, count)| count).sum();
        judged.level = view.level;

        let mut rank = 0;
        for docid in ranking {
            if rank == view.depth {
                break;
            }
            match known.entry(docid) {
                Entry::Occupied(mut entry) => {
                    let Known { grade, seen } = *entry.get();
                    if seen {
                        continue;
                    }
                    entry.get_mut().seen = true;
                    rank += 1;
                    if let Some(grade) = grade {
                        judged.found.push(Found { rank, grade });
                    }
                }
                Entry::Vacant(entry) => {
                    entry.insert(Known { grade: None, seen: true });
                    rank += 1;
                }
            }
        }
        judged.retrieved = rank;
        judged.relevant.clear();
        judged
            .relevant
            .extend(judged.found.iter().filter(|found| relevant(found.grade)).map(|found| found.rank));
        judged
    }
}

/// A seed drawn once, so that a file cannot be made to collide.
#[derive(Debug, Clone)]
struct Seed(u64);

impl Default for Seed {
    fn default() -> Self {
        Self(RandomState::new().build_hasher().finish())
    }
}

impl BuildHasher for Seed {
    type Hasher = Folded;
    fn build_hasher(&self) -> Folded {
        Folded(self.0)
    }
}

/// Multiply and fold, eight bytes at a time: several times faster than the standard hasher on short docids.
struct Folded(u64);

impl Folded {
    fn mix(&mut self, word: u64) {
        let wide = u128::from(self.0 ^ word) * 0x9e37_79b9_7f4a_7c15_u128;
        self.0 = (wide as u64) ^ ((wide >> 64) as u64);
    }
}

impl Hasher for Folded {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.mix(u64::from_le_bytes(last) ^ ((bytes.len() as u64) << 56));
    }

    // The length is mixed in above, so the mark that a string ends with says nothing new.
    fn write_u8(&mut self, _: u8) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judgments(list: &[(&str, i64)]) -> Judgments {
        list.iter().map(|(docid, grade)| (docid.to_string(), *grade)).collect()
    }

    #[test]
    fn a_repeated_document_counts_once_where_it_ranks_best() {
        let judgments = judgments(&[("a", 1), ("b", 2), ("c", 0), ("d", -1)]);
        let mut judge = Judge::default();
        let judged = judge.judge(["x", "b", "x", "b", "d", "a"], &judgments, View::default());
        assert_eq!(judged.retrieved, 4);
        assert_eq!(judged.relevant, [2, 4]);
        assert_eq!(judged.found[1], Found { rank: 3, grade: -1 });
        assert_eq!(judged.levels, [(2, 1), (1, 1), (0, 1)]);
        assert_eq!(judged.num_relevant, 2);
    }

    #[test]
    fn a_judge_forgets_the_last_query() {
        let (first, second) = (judgments(&[("a", 1)]), judgments(&[("b", 1)]));
        let mut judge = Judge::default();
        judge.judge(["a", "b"], &first, View::default());
        assert_eq!(judge.judge(["a", "b"], &second, View::default()).relevant, [2]);
    }

    #[test]
    fn depth_counts_distinct_documents() {
        let judgments = judgments(&[("b", 1)]);
        let view = View { depth: 2, ..View::default() };
        assert_eq!(Judge::default().judge(["a", "a", "b", "c"], &judgments, view).relevant, [2]);
    }
}
