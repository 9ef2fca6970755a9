//! Which passages of the documents found an answer may rest on.

use tracing::field::Empty;
use tracing::info_span;

use crate::corpus::{Hit, Passage};
use crate::error::Result;
use crate::models::TextRole;
use crate::pipeline::found::Found;
use crate::pipeline::query::Pipeline;
use crate::pipeline::request::Request;
use crate::text::telling;

/// Passages of one document that are weighed; the rest of a huge one is left out.
const LOOKED_AT: u32 = 256;

/// A passage and how near it is to the question.
struct Near {
    score: f64,
    passage: Passage,
}

impl Pipeline {
    /// The passages for an answer, best first: of each document found the best one, and its second where that is
    /// nearer to the question than the best one of the next document. With them the search that `request`, whose limit
    /// is the number of passages, comes to.
    pub(super) fn passages_for(&self, request: &Request) -> Result<(Found, Vec<Passage>)> {
        let found = match self.embedder {
            Some(_) => self.as_asked(request)?,
            None => self.by_words(request)?.into(),
        };
        let hits = &found.ranking.hits;
        let span = info_span!("passages", documents = hits.len(), passages = Empty).entered();
        let question = request.question();
        let mut documents = Vec::with_capacity(hits.len());
        for hit in hits {
            documents.push(self.nearest_two(&question, hit)?);
        }
        let mut chosen = Vec::new();
        let mut documents = documents.into_iter().peekable();
        while let Some([first, second]) = documents.next() {
            let next = documents.peek().and_then(|next| next[0].as_ref()).map(|near| near.score);
            chosen.extend(first.map(|near| near.passage));
            if let Some(second) = second.filter(|near| next.is_some_and(|next| near.score > next)) {
                chosen.push(second.passage);
            }
        }
        chosen.truncate(request.limit);
        span.record("passages", chosen.len());
        drop(span);
        Ok((found, chosen))
    }

    /// The two passages of a document that are nearest to the question.
    fn nearest_two(&self, question: &str, hit: &Hit) -> Result<[Option<Near>; 2]> {
        let Some(stored) = self.index().find(&hit.docid, Some(&hit.collection))? else {
            return Ok([None, None]); // changed since the index was opened
        };
        let vectors = match self.embedder() {
            Some(embedder) => {
                let vector = embedder.embed(&[question], TextRole::Query)?.data;
                Some((vector, self.index().vectors(embedder)?))
            }
            None => None,
        };
        let words = telling(question);
        let mut near = Vec::new();
        for chunk in 0..LOOKED_AT {
            let Some((_, text)) = self.index().passage(stored.key, chunk)? else { break };
            let score = match &vectors {
                Some((question, vectors)) => vectors.vector(stored.key, chunk).map_or(-1.0, |vector| {
                    question.iter().zip(vector).map(|(a, b)| f64::from(a * b)).sum::<f64>()
                }),
                None => {
                    let found = telling(&text);
                    words.iter().filter(|word| found.contains(word)).count() as f64
                }
            };
            let Hit { docid, hash, title, .. } = hit.clone();
            near.push(Near { score, passage: Passage { docid, hash, title, text: text.trim().into() } });
        }
        near.retain(|near| !near.passage.text.is_empty());
        near.sort_by(|a, b| b.score.total_cmp(&a.score));
        let mut near = near.into_iter();
        Ok([near.next(), near.next()])
    }
}
