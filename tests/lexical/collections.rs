//! Public collections, ranked by words alone.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use rankgate::pipeline::bm25::{Lexical, LexicalDoc, LexicalWriter};
use rankgate::text::parse;

use super::doc;

/// Mean trec_eval nDCG@10 (linear gain) over the queries with a relevant document.
fn ndcg(collection: &str, sample: usize) -> Option<f64> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data")).join(collection);
    let Ok(corpus) = fs::read_to_string(folder.join("corpus.jsonl")) else {
        eprintln!("skipped: {} is not there", folder.display());
        return None;
    };
    let lines = |text: &str| -> Vec<serde_json::Value> {
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let docs = lines(&corpus);
    let field = |value: &serde_json::Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let ids: Vec<String> = docs.iter().map(|doc| field(doc, "_id")).collect();
    let dir = tempfile::tempdir().unwrap();
    let mut writer = LexicalWriter::open(dir.path()).unwrap();
    for (key, value) in docs.iter().enumerate() {
        let (title, body) = (field(value, "title"), field(value, "text"));
        writer.put(key as u64, LexicalDoc { id: &ids[key], title: &title, body: &body, ..doc() }).unwrap();
    }
    writer.commit(1).unwrap();
    let lexical = Lexical::open(dir.path()).unwrap();

    let mut qrels: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
    for line in fs::read_to_string(folder.join("qrels.tsv")).unwrap().lines().skip(1) {
        let [query, doc, grade] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        qrels.entry(query.into()).or_default().insert(doc.into(), grade.parse::<f64>().unwrap().max(0.0));
    }
    let discounted = |gains: &[f64]| {
        gains.iter().take(10).zip(2..).map(|(gain, i)| gain / f64::from(i).log2()).sum::<f64>()
    };
    let mut values = Vec::new();
    for query in lines(&fs::read_to_string(folder.join("queries.jsonl")).unwrap()).iter().step_by(sample) {
        let Some(judged) = qrels.get(&field(query, "_id")) else { continue };
        let mut ideal: Vec<f64> = judged.values().copied().collect();
        ideal.sort_by(|a, b| b.total_cmp(a));
        if discounted(&ideal) > 0.0 {
            let hits = lexical.search(&parse(&field(query, "text")), None, 10).unwrap().hits;
            let gains: Vec<f64> =
                hits.iter().map(|hit| judged.get(&ids[hit.key as usize]).copied().unwrap_or(0.0)).collect();
            values.push(discounted(&gains) / discounted(&ideal));
        }
    }
    Some(values.iter().sum::<f64>() / values.len() as f64)
}

#[test]
fn public_collections_are_ranked_as_well_as_promised() {
    for (collection, floor) in [("cranfield", 0.365), ("xquad/en-en", 0.955), ("xquad/de-en", 0.565)] {
        if let Some(value) = ndcg(collection, 1) {
            eprintln!("{collection}: nDCG@10 {value:.4}");
            assert!(value >= floor, "{collection}: nDCG@10 {value:.4} is below {floor}");
        }
    }
}
