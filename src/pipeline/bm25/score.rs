//! Scores of one query.

use super::found::{Contribution, Level, LexicalHit, LexicalResult, TermStatistics};
use super::plan::{Form, Instead, Wanted, verbatim, wanted, word, words_like};
use super::postings::{Doc, Documents, Lengths};
use super::{LexicalField, Reading};
use crate::text::{DEFAULT_LANGUAGE, LexicalQuery, stem};

/// What a document with every word of the query gains. Repetition earns a word at most k1 + 1 = 2.2 times its
/// idf, so a doubled score keeps the complete document ahead of one that repeats a part of the query.
const COMPLETE: f32 = 2.0;

/// What is known of a document so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Score {
    score: f32,
    matched: f32,
    words: u32,
}

/// One query on its way.
pub(super) struct Run<'a> {
    documents: &'a Documents,
    reading: &'a Reading,
    pub(super) scope: Vec<bool>,
    lengths: Lengths,
    total: u64,
    pub(super) scores: Vec<Score>,
    terms: Vec<TermStatistics>,
    /// The document to explain.
    watched: Option<Doc>,
    pub(super) notes: Vec<Contribution>,
    // Reused between words: occurrences and gains by document.
    tf: Vec<u32>,
    gains: Vec<f32>,
}

impl<'a> Run<'a> {
    /// A query of `collection`, or of all; the score of `watched` is explained.
    pub(super) fn new(
        documents: &'a Documents,
        reading: &'a Reading,
        collection: Option<&str>,
        watched: Option<Doc>,
    ) -> tantivy::Result<Self> {
        let scope = documents.scope(collection)?;
        let end = documents.end as usize;
        Ok(Self {
            documents,
            reading,
            lengths: documents.lengths(&scope),
            total: scope.iter().filter(|&&inside| inside).count() as u64,
            scope,
            scores: vec![Score::default(); end],
            terms: Vec::new(),
            watched,
            notes: Vec::new(),
            tf: vec![0; end],
            gains: vec![0.0; end],
        })
    }

    /// Scores every document for the words of `query`.
    pub(super) fn query(&mut self, query: &LexicalQuery) -> tantivy::Result<()> {
        for word in wanted(query.terms.iter().chain(&query.phrases), self.reading) {
            self.word(word)?;
        }
        Ok(())
    }

    /// Adds what a word is worth, or what takes its place.
    fn word(&mut self, wanted: Wanted) -> tantivy::Result<()> {
        if self.terms.iter().any(|known| known.term == wanted.text) {
            return Ok(());
        }
        let found = self.add(&wanted)?;
        if found {
            for support in &wanted.support {
                self.add(support)?;
            }
            return Ok(());
        }
        match wanted.instead {
            Instead::Nothing => self.unknown(wanted.text),
            Instead::Parts(parts) => {
                for part in parts {
                    self.word(word(part, &self.reading.languages))?;
                }
            }
            Instead::WordsLike => {
                let own = stem(&wanted.text, DEFAULT_LANGUAGE);
                let stems = self.documents.stems_like(&wanted.text, &own)?;
                self.add(&words_like(&wanted.text, stems))?;
                self.unknown(wanted.text);
            }
        }
        Ok(())
    }

    fn unknown(&mut self, term: String) {
        let idf = idf(0, self.total);
        self.terms.push(TermStatistics { term, df: 0, idf });
    }

    /// Adds what `wanted` is worth to every document that has it; false if none has.
    fn add(&mut self, wanted: &Wanted) -> tantivy::Result<bool> {
        let mut found: Vec<Doc> = Vec::new();
        let mut noted = Vec::new();
        for clue in &wanted.clues {
            for (number, field) in LexicalField::ALL.into_iter().enumerate() {
                for doc in self.count(&clue.forms, number)? {
                    let tf = std::mem::take(&mut self.tf[doc as usize]);
                    let gain = clue.weight
                        * field.weight()
                        * self.documents.saturated(&self.lengths, number, doc, tf);
                    if self.gains[doc as usize] == 0.0 {
                        found.push(doc);
                    }
                    self.gains[doc as usize] += gain;
                    if self.watched == Some(doc) {
                        noted.push(Contribution {
                            field,
                            term: wanted.text.clone(),
                            how: clue.how,
                            score: gain,
                        });
                    }
                }
            }
        }
        let df = found.len() as u64;
        let idf = idf(df, self.total);
        for &doc in &found {
            let score = &mut self.scores[doc as usize];
            score.score += idf * std::mem::take(&mut self.gains[doc as usize]);
            if wanted.counts {
                score.matched += idf * idf;
                score.words += 1;
            }
        }
        self.notes.extend(noted.into_iter().map(|note| Contribution { score: note.score * idf, ..note }));
        if df > 0 && wanted.counts {
            self.terms.push(TermStatistics { term: wanted.text.clone(), df, idf });
        }
        Ok(df > 0)
    }

    /// Counts the occurrences of `forms` in a field into `tf`; returns the documents in scope that have any.
    fn count(&mut self, forms: &[Form], field: usize) -> tantivy::Result<Vec<Doc>> {
        let mut found = Vec::new();
        let (scope, counts) = (&self.scope, &mut self.tf);
        for form in forms {
            self.documents.occurrences(form, field, &mut |doc, tf| {
                if scope[doc as usize] {
                    let count = &mut counts[doc as usize];
                    if *count == 0 {
                        found.push(doc);
                    }
                    *count += tf;
                }
            })?;
        }
        Ok(found)
    }

    /// Which documents have one of `forms` in any field.
    pub(super) fn having(&self, forms: &[Form]) -> tantivy::Result<Vec<bool>> {
        let mut found = vec![false; self.scope.len()];
        for form in forms {
            for field in 0..LexicalField::ALL.len() {
                let scope = &self.scope;
                self.documents.occurrences(form, field, &mut |doc, _| {
                    found[doc as usize] = scope[doc as usize];
                })?;
            }
        }
        Ok(found)
    }

    /// Takes excluded documents out of the scope, and those without a required phrase.
    pub(super) fn filter(&mut self, query: &LexicalQuery) -> tantivy::Result<()> {
        for excluded in &query.excluded {
            let having = self.having(&verbatim(excluded, self.reading.tokenizer))?;
            self.scope.iter_mut().zip(having).for_each(|(inside, has)| *inside &= !has);
        }
        let mut counts = vec![0usize; self.scope.len()];
        for phrase in &query.phrases {
            let having = self.having(&verbatim(phrase, self.reading.tokenizer))?;
            counts.iter_mut().zip(having).for_each(|(count, has)| *count += usize::from(has));
        }
        let most = counts.iter().copied().max().unwrap_or(0);
        if most > 0 {
            self.scope.iter_mut().zip(counts).for_each(|(inside, count)| *inside &= count == most);
        }
        Ok(())
    }

    /// What the score of a document is multiplied by.
    pub(super) fn factor(&self, score: &Score) -> f32 {
        if score.words as usize == self.terms.len() { COMPLETE } else { 1.0 }
    }

    pub(super) fn result(self, limit: usize) -> tantivy::Result<LexicalResult> {
        let mass = self.terms.iter().fold(0.0, |sum, term| sum + term.idf);
        let known = self.terms.iter().filter(|term| term.df > 0).fold(0.0, |sum, term| sum + term.idf);
        let share = |part: f32, mass: f32| if mass > 0.0 { (part / mass).min(1.0) } else { 0.0 };
        let squares: f32 = self.terms.iter().map(|term| term.idf * term.idf).sum();
        let mut best: Vec<(f32, Doc)> = (0..self.documents.end)
            .filter(|&doc| self.scope[doc as usize] && self.scores[doc as usize].score > 0.0)
            .map(|doc| (self.scores[doc as usize].score * self.factor(&self.scores[doc as usize]), doc))
            .collect();
        let complete = |doc: Doc| self.scores[doc as usize].words as usize == self.terms.len();
        let level = match best.iter().any(|&(_, doc)| complete(doc)) {
            true => Level::AllTerms,
            false if best.is_empty() => Level::Nothing,
            false => Level::AnyTerm,
        };
        if limit < best.len() && limit > 0 {
            // Everything that ties with the last place stays in until keys decide.
            let (_, &mut (cut, _), _) = best.select_nth_unstable_by(limit - 1, |a, b| b.0.total_cmp(&a.0));
            best.retain(|&(score, _)| score >= cut);
        }
        let docs: Vec<Doc> = best.iter().map(|&(_, doc)| doc).collect();
        let keys = self.documents.keys(&docs)?;
        let mut hits: Vec<LexicalHit> = best
            .iter()
            .zip(keys)
            .map(|(&(score, doc), key)| LexicalHit {
                key,
                score,
                matched: share(self.scores[doc as usize].matched, squares),
            })
            .collect();
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.key.cmp(&b.key)));
        hits.truncate(limit);
        Ok(LexicalResult {
            hits,
            coverage: share(known, mass),
            documents: self.total,
            level,
            terms: self.terms,
        })
    }
}

/// Robertson and Spärck Jones's weight of a word that `df` of `total` documents have, never below 0.
fn idf(df: u64, total: u64) -> f32 {
    let (df, total) = (df as f32, total as f32);
    (1.0 + (total - df + 0.5) / (df + 0.5)).ln()
}
