//! What the passages say about the question, sentence by sentence, and whether that is enough to answer it.

use std::collections::HashSet;

use tracing::field::Empty;
use tracing::info_span;

use super::super::query::Pipeline;
use super::super::rerank::late_interaction;
use super::question::Question;
use crate::corpus::Passage;
use crate::error::Result;
use crate::models::{Embedder, TextRole, TokenVectors, UNRELATED};
use crate::text::{TellingKind, TellingWord, sentences, telling, uncited};

/// A sentence of a passage that could be quoted.
#[derive(Debug, Clone)]
pub(super) struct Quote {
    /// The passage's place in the list, from 0.
    pub passage: usize,
    /// The sentence's place in the passage, from 0; headings are not counted.
    pub place: usize,
    /// As it stands, without marks of lists and tables around it.
    pub text: String,
    /// With the passage's title, the heading above it and the head of its table: what it is about.
    pub context: String,
    /// The telling words of text and context.
    pub words: HashSet<TellingWord>,
    /// How well it answers; higher is better, comparable for one question.
    pub score: f64,
    pub covered: f64,
    pub late: f64,
    pub number: f64,
}

/// The sentences that could be quoted, in the order of the passages, and how sure an answer can be.
pub(super) struct Evidence {
    pub quotes: Vec<Quote>,
    pub confidence: f64,
}

impl Evidence {
    /// Whether an answer is likelier right than not.
    pub(super) fn enough(&self) -> bool {
        self.confidence >= 0.5
    }
}

impl Pipeline {
    /// Weighs every sentence of the passages.
    pub(super) fn evidence(&self, question: &Question, passages: &[Passage]) -> Result<Evidence> {
        let span = info_span!(
            "evidence",
            sentences = Empty,
            covered = Empty,
            near = Empty,
            confidence = Empty,
            model = Empty
        );
        let _entered = span.enter();
        let mut quotes: Vec<Quote> =
            passages.iter().enumerate().flat_map(|(n, passage)| quotes(n, passage)).collect();
        if let Some(embedder) = self.embedder() {
            span.record("model", embedder.fingerprint());
            let contexts: Vec<&str> = quotes.iter().map(|quote| quote.context.as_str()).collect();
            let near = nearness(question, &contexts, embedder)?;
            quotes.iter_mut().zip(near).for_each(|(quote, near)| quote.late = near);
        }
        for quote in &mut quotes {
            quote.covered = question.covered(&quote.words);
            let has = telling(&quote.text).iter().any(|word| word.kind == TellingKind::Number);
            quote.number = f64::from(u8::from(question.wants_number && has));
            quote.score = quote.covered + 2.0 * quote.late + 0.2 * quote.number;
        }
        let mut covered: f64 = 0.0;
        for n in 0..passages.len() {
            let words =
                quotes.iter().filter(|q| q.passage == n).flat_map(|q| q.words.iter().cloned()).collect();
            covered = covered.max(question.covered(&words));
        }
        let near = quotes.iter().map(|quote| quote.late).fold(0.0, f64::max);
        let confidence = 0.5;
        span.record("sentences", quotes.len());
        span.record("covered", covered);
        span.record("near", near);
        span.record("confidence", confidence);
        Ok(Evidence { quotes, confidence })
    }
}

/// Late interaction of the question with each of `texts`, on a scale on which unrelated sentences are 0 and the
/// question's own words 1: cosines of different models spread differently.
fn nearness(question: &Question, texts: &[&str], embedder: &dyn Embedder) -> Result<Vec<f64>> {
    let asked = embedder.embed_tokens(&[&question.text], TextRole::Query)?;
    let compare = |texts: &[&str]| -> Result<Vec<f64>> {
        let found: Vec<TokenVectors> = embedder.embed_tokens(texts, TextRole::Passage)?;
        let late = |other| asked.first().and_then(|asked| late_interaction(asked, other)).unwrap_or(0.0);
        Ok(found.iter().map(late).collect())
    };
    let far = compare(UNRELATED)?;
    let far = far.iter().sum::<f64>() / far.len() as f64;
    Ok(compare(texts)?
        .into_iter()
        .map(|late| ((late - far) / (1.0 - far).max(f64::EPSILON)).clamp(0.0, 1.0))
        .collect())
}

/// The sentences of passage number `n` that can be quoted.
fn quotes(n: usize, passage: &Passage) -> Vec<Quote> {
    let mut out: Vec<Quote> = Vec::new();
    let (mut heading, mut head, mut code) = ("", "", false);
    let lines: Vec<&str> = passage.text.lines().map(str::trim).collect();
    for (at, line) in lines.iter().enumerate() {
        let ruled =
            |line: &str| line.starts_with('|') && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '));
        if line.starts_with("```") {
            code = !code;
        } else if line.starts_with('#') && !code {
            (heading, head) = (line.trim_start_matches(['#', ' ']), "");
        } else if line.starts_with('|') && lines.get(at + 1).is_some_and(|next| ruled(next)) {
            head = line;
        } else if !line.is_empty() && !ruled(line) {
            head = if line.starts_with('|') { head } else { "" };
            let parts = if line.starts_with('|') || code { vec![*line] } else { sentences(line) };
            for part in parts {
                let text = uncited(without_marks(part));
                if !text.chars().any(char::is_alphanumeric) {
                    continue;
                }
                let context = [passage.title.as_str(), heading, head.trim_matches(['|', ' ']), &text];
                let context =
                    context.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n");
                let words = telling(&context).into_iter().collect();
                let place = out.len();
                out.push(Quote {
                    passage: n,
                    place,
                    text,
                    context,
                    words,
                    score: 0.0,
                    covered: 0.0,
                    late: 0.0,
                    number: 0.0,
                });
            }
        }
    }
    out
}

/// A line without what makes it an item of a list or a row of a table.
fn without_marks(line: &str) -> &str {
    let line = line.trim_matches(['|', ' ']);
    let item = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let item = if item.len() < line.len() { item.strip_prefix(". ") } else { None };
    item.or_else(|| line.strip_prefix("- ")).or_else(|| line.strip_prefix("* ")).unwrap_or(line).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_lists_and_headings_give_whole_quotes() {
        let text = "## Classes\n| Class | Loss |\n|---|---|\n| gold | 15 minutes |\n\n1. Stop it. Then go [3].\n- last";
        let passage = Passage { title: "Policy".into(), text: text.into(), ..Passage::default() };
        let found = quotes(0, &passage);
        let texts: Vec<&str> = found.iter().map(|quote| quote.text.as_str()).collect();
        assert_eq!(texts, ["gold | 15 minutes", "Stop it.", "Then go.", "last"]);
        assert_eq!(found[0].context, "Policy\nClasses\nClass | Loss\ngold | 15 minutes");
    }

    #[test]
    #[ignore = "prints the features from which the weights are fitted"]
    fn dump() {
        use crate::pipeline::{AskRequest, Request};
        use std::io::Write;
        let settings = crate::settings::Settings::default();
        let cache = std::sync::Arc::new(crate::store::cache::Cache::with_mode(
            std::path::Path::new("target/ask-cache.db"),
            crate::store::cache::CacheMode::On,
        ));
        let data: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string("../shared/data/xquad/xquad.en.json").unwrap())
                .unwrap();
        let de: Option<serde_json::Value> = std::fs::read_to_string("../shared/data/xquad/xquad.de.json")
            .ok()
            .and_then(|t| serde_json::from_str(&t).ok());
        let german: std::collections::HashMap<String, String> =
            std::fs::read_to_string("../shared/data/xquad/de-en/queries.jsonl")
                .unwrap()
                .lines()
                .map(|l| {
                    let v: serde_json::Value = serde_json::from_str(l).unwrap();
                    (v["_id"].as_str().unwrap().to_string(), v["text"].as_str().unwrap().to_string())
                })
                .collect();
        let _ = de;
        let embedder = crate::models::embedder(&settings.models, Some(cache.clone())).unwrap();
        let dir = std::path::Path::new("target/ask-xquad");
        let mut docs = Vec::new();
        let mut questions = Vec::new();
        for (a, article) in data["data"].as_array().unwrap().iter().enumerate() {
            for (p, par) in article["paragraphs"].as_array().unwrap().iter().enumerate() {
                let id = format!("a{a:02}p{p}");
                if p % 2 == 0 {
                    docs.push(crate::Document {
                        id: id.clone(),
                        body: par["context"].as_str().unwrap().into(),
                        ..Default::default()
                    });
                }
                for qa in par["qas"].as_array().unwrap().iter().take(1) {
                    questions.push((
                        a,
                        p,
                        id.clone(),
                        qa["id"].as_str().unwrap().to_string(),
                        qa["question"].as_str().unwrap().to_string(),
                        qa["answers"][0]["text"].as_str().unwrap().to_string(),
                    ));
                }
            }
        }
        crate::pipeline::indexer::build(dir, "x", docs.into_iter().map(Ok), Some(&*embedder), &mut |_| {})
            .unwrap();
        let pipeline = Pipeline::with_models(dir, &settings.search, Some(embedder), None).unwrap();
        let mut out = std::fs::File::create("target/ask-features.jsonl").unwrap();
        for lang in ["en", "de"] {
            for (a, p, id, qid, text, gold) in &questions {
                let text = if lang == "en" { text.clone() } else { german[qid].clone() };
                let ask = AskRequest::new(Request::new(&text));
                let (passages, trace) = crate::trace::capture(|| pipeline.passages_for(&ask).unwrap());
                let question = Question::new(&pipeline, &ask.request).unwrap();
                let (evidence, own) =
                    crate::trace::capture(|| pipeline.evidence(&question, &passages).unwrap());
                let fusion = trace.stage("fusion").unwrap();
                let f = &own.stage("evidence").unwrap().fields;
                let quotes: Vec<_> = evidence.quotes.iter().map(|q| serde_json::json!({"n": q.passage, "place": q.place, "covered": q.covered, "late": q.late, "number": q.number, "gold": q.text.contains(gold.as_str()) && &passages[q.passage].docid == id, "len": q.text.len()})).collect();
                let line = serde_json::json!({"lang": lang, "article": a, "answerable": p % 2 == 0, "wants": question.wants_number, "words": question.words.len(), "docids": passages.iter().map(|p| &p.docid).collect::<Vec<_>>(), "id": id, "matched": fusion.fields["matched"], "spread": fusion.fields["spread"], "covered": f["covered"], "near": f["near"], "quotes": quotes});
                writeln!(out, "{line}").unwrap();
            }
        }
    }
}
