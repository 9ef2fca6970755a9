//! Searching: scores for one query over the documents of a collection.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tantivy::directory::MmapDirectory;
use tantivy::{Index, ReloadPolicy};

use crate::error::{Error, ErrorKind, Result};
use crate::text::{DEFAULT_LANGUAGE, LexicalQuery, stem};

use super::plan::{Form, Instead, Wanted, verbatim, wanted, word, words_like};
use super::postings::{Doc, Documents, Lengths};
use super::{LEXICAL_VERSION, LexicalField, failed, generation, schema};

/// What a document with every word of the query gains. Repetition earns a word at most k1 + 1 = 2.2 times its
/// idf, so a doubled score keeps the complete document ahead of one that repeats a part of the query.
const COMPLETE: f32 = 2.0;

/// How far a query had to be relaxed to be answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Some document has every word.
    AllTerms,
    /// Documents have some of the words, or words similar to them.
    AnyTerm,
    /// No document has anything that was asked for.
    #[default]
    Nothing,
}

/// A word of the query in the collection that was searched.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TermStatistics {
    /// The word, normalised; a compound without its joiners.
    pub term: String,
    /// Documents that have it, in any form and field.
    pub df: u64,
    /// ln(1 + (N − df + 0.5) / (df + 0.5)).
    pub idf: f32,
}

/// One document that was found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LexicalHit {
    /// The key it was put under.
    pub key: u64,
    /// Its score, above 0.
    pub score: f32,
    /// Σ idf² of the query's words that it has over Σ idf² of all of them, from 0 to 1: squares, because function
    /// words are many and would add up to a large share of a long question.
    pub matched: f32,
}

/// The answer to a query, with what a fusion needs to know of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LexicalResult {
    /// Documents by score, highest first; equal scores by key, lowest first.
    pub hits: Vec<LexicalHit>,
    /// The query's distinct words, in the order in which they were typed.
    pub terms: Vec<TermStatistics>,
    /// Documents in the collection that was searched.
    pub documents: u64,
    /// The share of the query's idf mass whose words occur in the collection at all, from 0 to 1.
    pub coverage: f32,
    /// How far the query was relaxed.
    pub level: Level,
}

/// A part of a document's score.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contribution {
    /// Where the word was found.
    pub field: LexicalField,
    /// The word of the query, or what supports it.
    pub term: String,
    /// In which form: `exact`, `stem`, `joined`, `apart`, `side by side` or `similar`.
    pub how: &'static str,
    /// What it adds to the score.
    pub score: f32,
}

/// An index opened for searching: one commit, unchanged by later ones.
pub struct Lexical {
    dir: PathBuf,
    documents: Documents,
    languages: Vec<String>,
    generation: u64,
}

impl Lexical {
    /// Opens the last commit of the index in `dir`.
    ///
    /// Fails when there is no index, when it is damaged, and when it is of another [`LEXICAL_VERSION`].
    pub fn open(dir: &Path) -> Result<Self> {
        let exists = MmapDirectory::open(dir).map_err(Into::into).and_then(|d| Ok(Index::exists(&d)?));
        if !dir.is_dir() || !exists.map_err(|e| failed(dir, "open the index", e))? {
            return Err(Error::not_found(format!("{}: there is no index", dir.display()))
                .with_hint("make one with `rankgate index PATH`"));
        }
        let (schema, fields) = schema();
        let open = || -> tantivy::Result<Option<Self>> {
            let index = Index::open_in_dir(dir)?;
            let generation = match generation(index.load_metas()?.payload.as_deref()) {
                Some(generation) if index.schema() == schema => generation,
                _ => return Ok(None),
            };
            let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
            let documents = Documents::new(reader.searcher(), fields)?;
            let mut languages = documents.terms(fields.lang)?;
            languages.insert(DEFAULT_LANGUAGE.to_owned());
            let languages = languages.into_iter().collect();
            Ok(Some(Self { dir: dir.to_owned(), documents, languages, generation }))
        };
        open().map_err(|e| failed(dir, "open the index", e))?.ok_or_else(|| {
            let what = format!("{}: the index was not made by this version of rankgate", dir.display());
            Error::new(ErrorKind::Version, what).with_hint("index the documents again")
        })
    }

    /// The generation that the writer gave this commit.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// How words are read and stored: [`LEXICAL_VERSION`].
    pub fn version(&self) -> &'static str {
        LEXICAL_VERSION
    }

    /// The `limit` best documents, of `collection` or of all.
    ///
    /// A document that has an excluded text in any field is never found. If some document has a quoted
    /// phrase, only such are found; of several phrases, those documents are found that have the most. A phrase
    /// that none has counts as its words. A query without words finds nothing. Fails only on a damaged index.
    pub fn search(
        &self,
        query: &LexicalQuery,
        collection: Option<&str>,
        limit: usize,
    ) -> Result<LexicalResult> {
        let search = || -> tantivy::Result<LexicalResult> {
            let mut run = Run::new(self, collection, None)?;
            run.query(query)?;
            run.filter(query)?;
            run.result(limit)
        };
        search().map_err(|e| failed(&self.dir, "search the index", e))
    }

    /// The documents of `collection`, or of all, that have a text which `query` excludes, in any field.
    pub fn excluded(&self, query: &LexicalQuery, collection: Option<&str>) -> Result<HashSet<u64>> {
        if query.excluded.is_empty() {
            return Ok(HashSet::new());
        }
        let find = || -> tantivy::Result<HashSet<u64>> {
            let run = Run::new(self, collection, None)?;
            let mut found = vec![false; run.scope.len()];
            for excluded in &query.excluded {
                let having = run.having(&verbatim(excluded))?;
                found.iter_mut().zip(having).for_each(|(found, has)| *found |= has);
            }
            let docs: Vec<Doc> = (0..self.documents.end).filter(|&doc| found[doc as usize]).collect();
            Ok(self.documents.keys(&docs)?.into_iter().collect())
        };
        find().map_err(|e| failed(&self.dir, "search the index", e))
    }

    /// What the score of the document with this key is made of, the greatest part first.
    ///
    /// The parts add up to the score that [`search`](Self::search) gives with the same arguments. Empty when
    /// there is no such document, or when it has nothing that was asked for.
    pub fn explain(
        &self,
        query: &LexicalQuery,
        collection: Option<&str>,
        key: u64,
    ) -> Result<Vec<Contribution>> {
        let explain = || -> tantivy::Result<Vec<Contribution>> {
            let Some(doc) = self.documents.find(key)? else { return Ok(Vec::new()) };
            let mut run = Run::new(self, collection, Some(doc))?;
            run.query(query)?;
            let factor = run.factor(&run.scores[doc as usize]);
            run.notes.iter_mut().for_each(|note| note.score *= factor);
            run.notes.sort_by(|a, b| b.score.total_cmp(&a.score));
            Ok(run.notes)
        };
        explain().map_err(|e| failed(&self.dir, "search the index", e))
    }
}

/// What is known of a document so far.
#[derive(Debug, Clone, Copy, Default)]
struct Score {
    score: f32,
    matched: f32,
    words: u32,
}

/// One query on its way.
struct Run<'a> {
    index: &'a Lexical,
    documents: &'a Documents,
    scope: Vec<bool>,
    lengths: Lengths,
    total: u64,
    scores: Vec<Score>,
    terms: Vec<TermStatistics>,
    /// The document to explain.
    watched: Option<Doc>,
    notes: Vec<Contribution>,
    // Reused between words: occurrences and gains by document.
    tf: Vec<u32>,
    gains: Vec<f32>,
}

impl<'a> Run<'a> {
    fn new(index: &'a Lexical, collection: Option<&str>, watched: Option<Doc>) -> tantivy::Result<Self> {
        let documents = &index.documents;
        let scope = documents.scope(collection)?;
        let end = documents.end as usize;
        Ok(Self {
            index,
            documents,
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
    fn query(&mut self, query: &LexicalQuery) -> tantivy::Result<()> {
        for word in wanted(query.terms.iter().chain(&query.phrases), &self.index.languages) {
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
                    self.word(word(part, &self.index.languages))?;
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
    fn having(&self, forms: &[Form]) -> tantivy::Result<Vec<bool>> {
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
    fn filter(&mut self, query: &LexicalQuery) -> tantivy::Result<()> {
        for excluded in &query.excluded {
            let having = self.having(&verbatim(excluded))?;
            self.scope.iter_mut().zip(having).for_each(|(inside, has)| *inside &= !has);
        }
        let mut counts = vec![0usize; self.scope.len()];
        for phrase in &query.phrases {
            let having = self.having(&verbatim(phrase))?;
            counts.iter_mut().zip(having).for_each(|(count, has)| *count += usize::from(has));
        }
        let most = counts.iter().copied().max().unwrap_or(0);
        if most > 0 {
            self.scope.iter_mut().zip(counts).for_each(|(inside, count)| *inside &= count == most);
        }
        Ok(())
    }

    /// What the score of a document is multiplied by.
    fn factor(&self, score: &Score) -> f32 {
        if score.words as usize == self.terms.len() { COMPLETE } else { 1.0 }
    }

    fn result(self, limit: usize) -> tantivy::Result<LexicalResult> {
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
