//! The catalogue's models as they are, fetched once a machine.

use std::sync::Arc;

use rankgate::models::{self, Embedder, TextRole};
use rankgate::settings::ModelSettings;
use rankgate::store::cache::{Cache, CacheMode};

use super::{Sandbox, pinned};

fn embedder(name: &str) -> Option<Arc<dyn Embedder>> {
    pinned("onnxruntime")?;
    pinned(name)?;
    let settings = ModelSettings { embedder: name.into(), ..Default::default() };
    Some(models::embedder(&settings, None).unwrap())
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// Embeds `texts` as passages and `query` as a query; returns the cosines.
fn similarities(embedder: &dyn Embedder, query: &str, texts: &[&str]) -> Vec<f32> {
    let query = embedder.embed(&[query], TextRole::Query).unwrap();
    let passages = embedder.embed(texts, TextRole::Passage).unwrap();
    passages.rows().map(|row| cosine(&query.data, row)).collect()
}

#[test]
fn the_runtime_reports_to_nobody() {
    let (Some(runtime), Some(_)) = (pinned("onnxruntime"), pinned("all-minilm-l6-v2")) else { return };
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("docs")).unwrap();
    std::fs::write(sandbox.path("docs/a.md"), "# A\n\nwords").unwrap();
    let mut index = sandbox.rankgate(&["index"]);
    index.arg(sandbox.path("docs")).env("RANKGATE_MODELS", runtime.parent().unwrap());
    index.env("RANKGATE_EMBEDDER", "all-minilm-l6-v2").env("HOME", sandbox.path("home"));
    let output = index.env_remove("XDG_CACHE_HOME").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // What the library would send, it keeps there first.
    assert!(!sandbox.path("home/.cache").exists());
}

#[test]
fn minilm_finds_the_paraphrase() {
    let Some(embedder) = embedder("all-minilm-l6-v2") else { return };
    let texts = ["You may end the agreement at any time.", "Bananas are rich in potassium."];
    let found = similarities(&*embedder, "how can I cancel my contract", &texts);
    assert!(found[0] > found[1] + 0.2, "{found:?}");
}

#[test]
fn e5_finds_it_in_another_language() {
    let Some(embedder) = embedder("multilingual-e5-small") else { return };
    let texts = [
        "Sie können den Vertrag jederzeit kündigen.",
        "Bananen enthalten viel Kalium.",
        "契約はいつでも解除できます。",
    ];
    let found = similarities(&*embedder, "how can I cancel my contract", &texts);
    assert!(found[0] > found[1] + 0.04 && found[2] > found[1] + 0.04, "{found:?}");
}

#[test]
fn token_vectors_are_normal_and_leave_prefix_and_special_tokens_out() {
    let Some(embedder) = embedder("multilingual-e5-small") else { return };
    let tokens = embedder.embed_tokens(&["Kündigung", "", "契約解除条項"], TextRole::Passage).unwrap();
    assert!(tokens[1].data.is_empty(), "an empty text has no tokens");
    for vectors in [&tokens[0], &tokens[2]] {
        assert!(!vectors.data.is_empty() && vectors.data.len() < 8 * vectors.dims);
        for token in vectors.data.chunks_exact(vectors.dims) {
            assert!((cosine(token, token) - 1.0).abs() < 1e-4);
        }
    }
    let again = embedder.embed_tokens(&["契約解除条項"], TextRole::Passage).unwrap();
    assert_eq!(again[0], tokens[2], "what is known is what was found");
}

#[test]
fn batching_changes_e5_not_at_all_and_minilm_hardly() {
    for (name, least) in [("multilingual-e5-small", 0.99999), ("all-minilm-l6-v2", 0.98)] {
        let Some(embedder) = embedder(name) else { return };
        let texts: Vec<String> = (1..24).map(|n| "the contract ends in thirty days ".repeat(n)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let together = embedder.embed(&texts, TextRole::Passage).unwrap();
        for (text, row) in texts.iter().zip(together.rows()) {
            let alone = embedder.embed(&[text], TextRole::Passage).unwrap();
            let cosine = cosine(&alone.data, row);
            assert!(cosine > least, "{name}: {cosine} for {} bytes", text.len());
        }
    }
}

#[test]
fn a_cached_query_loads_no_model() {
    let Some(first) = embedder("all-minilm-l6-v2") else { return };
    let dir = tempfile::tempdir().unwrap();
    let cache = || Some(Arc::new(Cache::with_mode(&dir.path().join("cache.db"), CacheMode::On)));
    let settings = ModelSettings { embedder: "all-minilm-l6-v2".into(), ..Default::default() };
    let filling = models::embedder(&settings, cache()).unwrap();
    let vector = filling.embed(&["cancel"], TextRole::Query).unwrap();
    assert_eq!(vector, first.embed(&["cancel"], TextRole::Query).unwrap());
    let known = models::embedder(&settings, cache()).unwrap();
    let (again, trace) = rankgate::trace::capture(|| known.embed(&["cancel"], TextRole::Query).unwrap());
    assert_eq!(again, vector);
    assert_eq!(trace.stage("embed").unwrap().fields["cached"], 1);
}

#[test]
fn hostile_texts_get_a_vector() {
    let Some(embedder) = embedder("all-minilm-l6-v2") else { return };
    let huge = "слово ".repeat(200_000);
    let texts = ["", " \t\n", "\0\u{7}", "👩‍🔬\u{200b}", "ﬁ Ｆｕｌｌ", huge.as_str()];
    let vectors = embedder.embed(&texts, TextRole::Passage).unwrap();
    assert!(vectors.data.iter().all(|x| x.is_finite()));
    assert_eq!((vectors.rows().len(), vectors.truncated), (texts.len(), 1));
    assert_eq!(embedder.embed(&[], TextRole::Passage).unwrap().data.len(), 0);
}
