//! Reading the index: where a form occurs, which documents are searched, how long their fields are.

use std::collections::BTreeSet;

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{Postings, SegmentPostings};
use tantivy::schema::{Field, IndexRecordOption, Term};
use tantivy::{DocSet, InvertedIndexReader, Searcher, SegmentReader, TERMINATED};

use crate::text::fold;

use super::plan::Form;
use super::{Fields, Layer};

/// BM25's k1: how soon repetition stops to matter.
const K1: f32 = 1.2;
/// BM25's b: how much a field's length matters.
const B: f32 = 0.75;

/// Documents of all segments, numbered through.
pub(super) type Doc = u32;

/// A searcher whose documents are numbered through.
pub(super) struct Documents {
    pub(super) searcher: Searcher,
    pub(super) fields: Fields,
    norms: Vec<[FieldNormReader; 3]>,
    bases: Vec<Doc>,
    /// One past the last document.
    pub(super) end: Doc,
}

impl Documents {
    pub(super) fn new(searcher: Searcher, fields: Fields) -> tantivy::Result<Self> {
        let mut norms = Vec::new();
        let mut bases = Vec::new();
        let mut end = 0;
        for segment in searcher.segment_readers() {
            let [title, path, body] = fields.exact.map(|field| segment.get_fieldnorms_reader(field));
            norms.push([title?, path?, body?]);
            bases.push(end);
            end += segment.max_doc();
        }
        Ok(Self { searcher, fields, norms, bases, end })
    }

    fn segments(&self) -> impl Iterator<Item = (Doc, &SegmentReader)> {
        self.bases.iter().copied().zip(self.searcher.segment_readers())
    }

    /// Which documents are alive and in `collection`, one flag a document.
    pub(super) fn scope(&self, collection: Option<&str>) -> tantivy::Result<Vec<bool>> {
        let mut scope = vec![collection.is_none(); self.end as usize];
        if let Some(collection) = collection {
            let term = Term::from_field_text(self.fields.collection, collection);
            self.term(&term, &mut |doc, _| scope[doc as usize] = true)?;
        }
        for (base, segment) in self.segments().filter(|(_, segment)| segment.has_deletes()) {
            for doc in (0..segment.max_doc()).filter(|&doc| segment.is_deleted(doc)) {
                scope[(base + doc) as usize] = false;
            }
        }
        Ok(scope)
    }

    /// The keys of `docs`, in their order.
    pub(super) fn keys(&self, docs: &[Doc]) -> tantivy::Result<Vec<u64>> {
        let columns = self.segments().map(|(_, s)| Ok(s.fast_fields().u64("key")?.first_or_default_col(0)));
        let columns = columns.collect::<tantivy::Result<Vec<_>>>()?;
        let key = |&doc: &Doc| {
            let (segment, base) = self.segment_of(doc);
            columns[segment].get_val(doc - base)
        };
        Ok(docs.iter().map(key).collect())
    }

    /// The living document with this key.
    pub(super) fn find(&self, key: u64) -> tantivy::Result<Option<Doc>> {
        let scope = self.scope(None)?;
        let mut found = None;
        let term = Term::from_field_u64(self.fields.key, key);
        self.term(&term, &mut |doc, _| found = found.or(scope[doc as usize].then_some(doc)))?;
        Ok(found)
    }

    fn segment_of(&self, doc: Doc) -> (usize, Doc) {
        let segment = self.bases.partition_point(|&base| base <= doc) - 1;
        (segment, self.bases[segment])
    }

    /// The distinct terms of a field.
    pub(super) fn terms(&self, field: Field) -> tantivy::Result<BTreeSet<String>> {
        let mut found = BTreeSet::new();
        for (_, segment) in self.segments() {
            each_term(&*segment.inverted_index(field)?, "", &mut |term| {
                found.insert(term.to_owned());
            })?;
        }
        Ok(found)
    }

    /// Calls `visit` with every document that has `form` in the field number `field`, and how often.
    ///
    /// Documents that are deleted or outside the collection are visited too.
    pub(super) fn occurrences(
        &self,
        form: &Form,
        field: usize,
        visit: &mut dyn FnMut(Doc, u32),
    ) -> tantivy::Result<()> {
        match form {
            Form::Term(layer, text) => {
                self.term(&Term::from_field_text(self.fields.of(*layer)[field], text), visit)
            }
            Form::Prefix(prefix) => {
                let field = self.fields.exact[field];
                for (base, segment) in self.segments() {
                    let index = segment.inverted_index(field)?;
                    let mut terms = Vec::new();
                    each_term(&index, prefix, &mut |term| terms.push(Term::from_field_text(field, term)))?;
                    for term in terms {
                        each_posting(&index, &term, base, visit)?;
                    }
                }
                Ok(())
            }
            Form::Phrase(words) => {
                let field = self.fields.exact[field];
                for (base, segment) in self.segments() {
                    each_phrase(&*segment.inverted_index(field)?, field, words, base, visit)?;
                }
                Ok(())
            }
        }
    }

    fn term(&self, term: &Term, visit: &mut dyn FnMut(Doc, u32)) -> tantivy::Result<()> {
        for (base, segment) in self.segments() {
            each_posting(&*segment.inverted_index(term.field())?, term, base, visit)?;
        }
        Ok(())
    }

    /// Known stems in place of the unknown `word`, whose own stem is `stem`.
    ///
    /// Those with the fewest letters off, 1 for words from 4 letters and 2 from 8 (Levenshtein distance); if
    /// there are none, those that share the longest beginning: half the word and 4 letters at least. The
    /// first letter has to agree. Words with digits are codes, to which nothing is similar.
    pub(super) fn stems_like(&self, word: &str, stem: &str) -> tantivy::Result<BTreeSet<String>> {
        let (word, stem): (Vec<char>, Vec<char>) = (fold(word).chars().collect(), stem.chars().collect());
        let mut near = Best::default();
        let mut alike = Best::default();
        let Some(first) = stem.first().filter(|_| !word.iter().any(|c| c.is_numeric())) else {
            return Ok(BTreeSet::new());
        };
        let allowed = match stem.len() {
            0..4 => 0,
            4..8 => 1,
            _ => 2,
        };
        let prefix = first.to_string();
        for field in self.fields.of(Layer::Stem) {
            for (_, segment) in self.segments() {
                each_term(&*segment.inverted_index(field)?, &prefix, &mut |term| {
                    let other: Vec<char> = term.chars().collect();
                    if let Some(distance) = within(&stem, &other, allowed) {
                        near.offer(allowed - distance, term);
                    }
                    let shared = word.iter().zip(&other).take_while(|(a, b)| a == b).count();
                    if shared >= 4 && shared * 2 >= word.len() {
                        alike.offer(shared, term);
                    }
                })?;
            }
        }
        Ok(if near.terms.is_empty() { alike.terms } else { near.terms })
    }

    /// The length norms of the documents in `scope`.
    pub(super) fn lengths(&self, scope: &[bool]) -> Lengths {
        Lengths { denominators: [0, 1, 2].map(|field| self.denominators(field, scope)) }
    }

    /// BM25's k1 · (1 − b + b · length / average) for each of tantivy's 256 rounded lengths.
    ///
    /// The average is taken of the rounded lengths, over the documents in scope that have the field.
    fn denominators(&self, field: usize, scope: &[bool]) -> [f32; 256] {
        let (mut tokens, mut docs) = (0u64, 0u64);
        for (segment, (base, reader)) in self.segments().enumerate() {
            let norms = &self.norms[segment][field];
            for doc in (0..reader.max_doc()).filter(|&doc| scope[(base + doc) as usize]) {
                let length = norms.fieldnorm(doc);
                tokens += u64::from(length);
                docs += u64::from(length > 0);
            }
        }
        let average = tokens.max(1) as f32 / docs.max(1) as f32;
        std::array::from_fn(|id| {
            K1 * (1.0 - B + B * FieldNormReader::id_to_fieldnorm(id as u8) as f32 / average)
        })
    }

    /// What `tf` occurrences in a field of a document are worth, from 0 to 2.2.
    pub(super) fn saturated(&self, lengths: &Lengths, field: usize, doc: Doc, tf: u32) -> f32 {
        let (segment, base) = self.segment_of(doc);
        let norm = self.norms[segment][field].fieldnorm_id(doc - base);
        let tf = tf as f32;
        tf * (K1 + 1.0) / (tf + lengths.denominators[field][usize::from(norm)])
    }
}

/// Length norms by field and rounded length.
pub(super) struct Lengths {
    denominators: [[f32; 256]; 3],
}

/// The terms with the highest value so far.
#[derive(Default)]
struct Best {
    value: usize,
    terms: BTreeSet<String>,
}

impl Best {
    fn offer(&mut self, value: usize, term: &str) {
        if value > self.value {
            self.terms.clear();
            self.value = value;
        }
        if value == self.value {
            self.terms.insert(term.to_owned());
        }
    }
}

/// The Levenshtein distance of two words if it is at most `most`, and not when `most` is 0.
fn within(a: &[char], b: &[char], most: usize) -> Option<usize> {
    if most == 0 || a.len().abs_diff(b.len()) > most {
        return None;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let least = (diagonal + usize::from(x != y)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = std::mem::replace(&mut row[j + 1], least);
        }
        if row.iter().min().is_none_or(|&least| least > most) {
            return None;
        }
    }
    row.last().copied().filter(|&distance| distance <= most)
}

fn each_term(index: &InvertedIndexReader, prefix: &str, visit: &mut dyn FnMut(&str)) -> tantivy::Result<()> {
    let mut stream = index.terms().range().ge(prefix.as_bytes()).into_stream()?;
    while stream.advance() {
        // Terms are what a tokenizer made of a text, so they are UTF-8.
        match std::str::from_utf8(stream.key()) {
            Ok(term) if term.starts_with(prefix) => visit(term),
            _ => break,
        }
    }
    Ok(())
}

fn each_posting(
    index: &InvertedIndexReader,
    term: &Term,
    base: Doc,
    visit: &mut dyn FnMut(Doc, u32),
) -> tantivy::Result<()> {
    if let Some(mut postings) = index.read_postings(term, IndexRecordOption::WithFreqs)? {
        while postings.doc() != TERMINATED {
            visit(base + postings.doc(), postings.term_freq());
            postings.advance();
        }
    }
    Ok(())
}

fn each_phrase(
    index: &InvertedIndexReader,
    field: Field,
    words: &[(u32, String)],
    base: Doc,
    visit: &mut dyn FnMut(Doc, u32),
) -> tantivy::Result<()> {
    let mut all: Vec<(u32, SegmentPostings)> = Vec::with_capacity(words.len());
    for (offset, word) in words {
        let term = Term::from_field_text(field, word);
        match index.read_postings(&term, IndexRecordOption::WithFreqsAndPositions)? {
            Some(postings) => all.push((*offset, postings)),
            None => return Ok(()),
        }
    }
    let Some(((first_offset, first), rest)) = all.split_first_mut() else { return Ok(()) };
    let (mut starts, mut next) = (Vec::new(), Vec::new());
    'docs: while first.doc() != TERMINATED {
        let doc = first.doc();
        for (_, postings) in rest.iter_mut() {
            let found = if postings.doc() < doc { postings.seek(doc) } else { postings.doc() };
            if found > doc {
                first.seek(found);
                continue 'docs;
            }
        }
        // Offsets added to positions keep `position − offset` from going below zero.
        let span = rest.last().map_or(*first_offset, |(offset, _)| *offset);
        first.positions_with_offset(span - *first_offset, &mut starts);
        for (offset, postings) in rest.iter_mut() {
            postings.positions_with_offset(span - *offset, &mut next);
            starts.retain(|start| next.binary_search(start).is_ok());
        }
        if !starts.is_empty() {
            visit(base + doc, starts.len() as u32);
        }
        first.advance();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levenshtein_within_a_bound() {
        let distance = |a: &str, b: &str, most| {
            within(&a.chars().collect::<Vec<_>>(), &b.chars().collect::<Vec<_>>(), most)
        };
        assert_eq!(distance("reciev", "receiv", 2), Some(2));
        assert_eq!(distance("reciev", "receiv", 1), None);
        assert_eq!(distance("normann", "norman", 1), Some(1));
        assert_eq!(distance("kitten", "sitting", 3), Some(3));
        assert_eq!(distance("same", "same", 1), Some(0));
        assert_eq!(distance("a", "b", 0), None);
    }
}
