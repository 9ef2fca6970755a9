//! A search engine of thirty lines, to have something to evaluate.

/// Its documents: id and text.
const DOCUMENTS: &[(&str, &str)] = &[
    ("deploy.md", "roll out a release with helm and roll back when it fails"),
    ("errors.md", "what the error codes mean and how to repair a failed request"),
    ("tuning.md", "make slow queries fast with an index and a larger cache"),
];

/// The ids of the documents that share a word with the query, most shared words first.
#[tracing::instrument(name = "overlap", skip_all, fields(hits = tracing::field::Empty))]
pub fn search(query: &str) -> Vec<String> {
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    let shared = |text: &str| text.split_whitespace().filter(|word| words.iter().any(|w| w == word)).count();
    let mut found: Vec<(usize, &str)> =
        DOCUMENTS.iter().map(|(id, text)| (shared(text), *id)).filter(|(shared, _)| *shared > 0).collect();
    found.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    tracing::Span::current().record("hits", found.len());
    found.into_iter().map(|(_, id)| id.to_string()).collect()
}
