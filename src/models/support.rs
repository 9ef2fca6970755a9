//! How far a passage supports a sentence, without a judge.
//!
//! Two looks at it: which telling words of the sentence the passage has, and how near its nearest sentence is in
//! meaning. The first sees a wrong number, the second a paraphrase or another language. What contradicts (a number or
//! an identifier that the passage lacks, a negation on one side only) sinks the score, however alike the rest is.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::{Embedder, TextRole};
use crate::error::Result;
use crate::text::{
    TellingKind, TellingWord, language_of, negates, normalize, sentences, telling, uncited, unwrapped,
};

/// How far the best of some passages supports a sentence.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub struct Support {
    /// The share of the sentence's telling words that the passage has, in [0, 1]; numbers and identifiers count
    /// three times.
    pub lexical: f64,
    /// How near the passage's nearest sentence is in meaning, in [0, 1]: 0 is as far as sentences about something
    /// else, 1 is the same sentence. `None` without an embedder.
    pub semantic: Option<f64>,
    /// Whether the passage lacks a number or an identifier of the sentence, or only one of the two negates.
    pub contradicted: bool,
    /// All of it in one number in [0, 1]; from 0.5 the sentence counts as supported.
    pub score: f64,
}

/// The highest score of a sentence that is contradicted.
const CONTRADICTED: f64 = 0.25;
/// Sentences of a passage that are compared; nobody cites more.
const SENTENCES: usize = 64;

/// How far the best of `passages` supports `sentence`; all zero when there is none, or the sentence says nothing.
///
/// Citations in the sentence are overlooked. A sentence that stands in a passage word for word has support 1 and
/// costs no model. Fails when the embedder does.
///
/// ```
/// use rankgate::models::support;
/// let passage = ["Daily copies stay for 35 days, monthly copies for 13 months."];
/// assert!(support("Daily copies stay for 35 days. [1]", &passage, None)?.score > 0.9);
/// assert!(support("Daily copies stay for 90 days. [1]", &passage, None)?.score < 0.5);
/// # Ok::<(), rankgate::Error>(())
/// ```
pub fn support(sentence: &str, passages: &[&str], embedder: Option<&dyn Embedder>) -> Result<Support> {
    let claim = Claim::new(sentence);
    if claim.plain.is_empty() {
        return Ok(Support::default());
    }
    if passages.iter().any(|passage| states(&squeezed(passage), &claim.plain)) {
        let semantic = embedder.map(|_| 1.0);
        return Ok(Support { lexical: 1.0, semantic, contradicted: false, score: 1.0 });
    }
    let mut best: Option<Support> = None;
    for passage in passages {
        let lines = unwrapped(passage);
        let sentences: Vec<&str> =
            lines.iter().flat_map(|line| sentences(&line.text)).take(SENTENCES).collect();
        let (lexical, contradicted) = claim.lexical(&sentences);
        let semantic = match embedder {
            Some(embedder) if !sentences.is_empty() => Some(claim.semantic(&sentences, embedder)?),
            _ => None,
        };
        let together = together(lexical, semantic, claim.foreign(passage));
        let score = if contradicted { together.min(CONTRADICTED) } else { together };
        if best.is_none_or(|best| score > best.score) {
            best = Some(Support { lexical, semantic, contradicted, score });
        }
    }
    Ok(best.unwrap_or_default())
}

/// Brings both to one number, which is a half where supported and unsupported sentences part: on the table of this
/// module's tests, and on sentences of XQuAD beside the next paragraph of the same article (3 of 95 are taken for
/// supported; of a paragraph further on, none of 95). In one language, words and meaning must both be there. Another
/// language has only the meaning, and the odd name.
fn together(lexical: f64, semantic: Option<f64>, foreign: bool) -> f64 {
    match semantic {
        None => lexical,
        Some(semantic) if foreign => ((semantic + 0.35 * lexical) * 0.5 / 0.42).min(1.0),
        Some(semantic) => ((semantic + lexical) * 0.5 / 0.9).min(1.0),
    }
}

/// Whether `claim` stands in `passage` as whole sentences, items or cells: the end of a sentence can say the opposite of
/// the sentence.
fn states(passage: &str, claim: &str) -> bool {
    passage.match_indices(claim).any(|(at, _)| {
        let (before, after) = (passage[..at].trim_end(), passage[at + claim.len()..].trim_start());
        (before.is_empty() || before.ends_with(BORDERS))
            && (after.is_empty() || after.starts_with('|') || claim.ends_with(BORDERS))
    })
}

/// What a sentence, a cell, an item of a list or a heading ends with, or has before it.
const BORDERS: &[char] =
    &['.', '!', '?', '…', '。', '！', '？', ':', '|', '#', '*', '-', '"', '”', '»', ')', ']'];

/// Normalised, with every stretch of white space as one space.
fn squeezed(text: &str) -> String {
    normalize(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A sentence whose support is asked for.
struct Claim {
    /// Without citations, normalised.
    plain: String,
    /// As it was written, without citations.
    text: String,
    words: Vec<TellingWord>,
    negated: bool,
}

impl Claim {
    fn new(sentence: &str) -> Self {
        let text = uncited(sentence);
        let mut words = telling(&text);
        words.sort();
        words.dedup();
        Self { plain: squeezed(&text), words, negated: negates(&text), text }
    }

    /// Whether `passage` is plainly written in another language.
    fn foreign(&self, passage: &str) -> bool {
        let (here, there) = (language_of(&self.text), language_of(passage));
        here.is_some() && there.is_some() && here != there
    }

    /// The share of the telling words that `sentences` have, and whether they contradict.
    fn lexical(&self, sentences: &[&str]) -> (f64, bool) {
        let found: Vec<BTreeSet<TellingWord>> =
            sentences.iter().map(|sentence| telling(sentence).into_iter().collect()).collect();
        let all: BTreeSet<&TellingWord> = found.iter().flatten().collect();
        let total: f64 = self.words.iter().map(weight).sum();
        if total == 0.0 {
            return (0.0, false);
        }
        let share = |words: &dyn Fn(&TellingWord) -> bool| -> f64 {
            self.words.iter().filter(|word| words(word)).map(weight).sum::<f64>() / total
        };
        let lexical = share(&|word| all.contains(word));
        let missing = self.words.iter().any(|word| word.kind.is_exact() && !self.exact(word, &found));
        (lexical, missing || self.opposite(sentences, &found, share))
    }

    /// Whether a number or identifier stands where it can belong to the sentence: beside another of its words.
    fn exact(&self, word: &TellingWord, found: &[BTreeSet<TellingWord>]) -> bool {
        let others: Vec<_> = self.words.iter().filter(|w| !w.kind.is_exact()).collect();
        let shares = |words: &BTreeSet<TellingWord>| others.iter().any(|other| words.contains(other));
        // Another language shares no words: then it is enough that the passage has the number.
        let anywhere = !found.iter().any(shares);
        found.iter().enumerate().any(|(i, words)| {
            let near = &found[i.saturating_sub(1)..(i + 2).min(found.len())];
            words.contains(word) && (anywhere || near.iter().any(shares))
        })
    }

    /// Whether what says the same in other respects negates, and this does not, or the other way round.
    fn opposite(
        &self,
        sentences: &[&str],
        found: &[BTreeSet<TellingWord>],
        share: impl Fn(&dyn Fn(&TellingWord) -> bool) -> f64,
    ) -> bool {
        let shares: Vec<f64> = found.iter().map(|words| share(&|word| words.contains(word))).collect();
        let most = shares.iter().copied().fold(0.0, f64::max);
        let mut same = sentences.iter().zip(shares).filter(|(_, share)| *share >= (0.8 * most).max(0.5));
        most >= 0.5 && same.all(|(sentence, _)| self.negated != self.negates_it(sentence))
    }

    /// Whether `sentence` negates in a clause that the claim is about.
    fn negates_it(&self, sentence: &str) -> bool {
        sentence.split([',', ';', ':', '(', ')', '–', '—', '、', '，', '；']).any(|clause| {
            let words = telling(clause);
            let shared = words.iter().filter(|word| self.words.binary_search(word).is_ok()).count();
            shared > 0 && 2 * shared >= words.len() && negates(clause)
        })
    }

    /// The cosine to the nearest of `sentences`, on a scale on which unrelated sentences are 0 and equal ones 1.
    fn semantic(&self, sentences: &[&str], embedder: &dyn Embedder) -> Result<f64> {
        let claim = embedder.embed(&[&self.text], TextRole::Passage)?.data;
        let near = embedder.embed(sentences, TextRole::Passage)?;
        let cosines: Vec<f64> = near.rows().map(|row| dot(&claim, row)).collect();
        let best = cosines.iter().copied().fold(-1.0, f64::max);
        let far = unrelated(embedder)?;
        let far =
            far.chunks_exact(claim.len()).map(|row| dot(&claim, row)).sum::<f64>() / UNRELATED.len() as f64;
        Ok(((best - far) / (1.0 - far).max(f64::EPSILON)).clamp(0.0, 1.0))
    }
}

/// How much a word of a sentence must be in the passage.
fn weight(word: &TellingWord) -> f64 {
    match word.kind {
        TellingKind::Word => 1.0,
        TellingKind::Pair => 0.5,
        TellingKind::Number | TellingKind::Identifier => 3.0,
    }
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum()
}

/// Sentences of many subjects. How near a sentence is to them says what "unrelated" is for an embedder, whose
/// cosines may lie between 0.7 and 1 or around 0.
pub const UNRELATED: &[&str] = &[
    "The old bridge across the river was painted green last summer.",
    "Simmer the onions until they are soft, then add the rice.",
    "Her grandmother taught her to play the violin.",
    "The committee postponed the vote until the spring.",
    "Der Zug nach Salzburg hat zehn Minuten Verspätung.",
    "Im Herbst ziehen die Kraniche nach Süden.",
    "Le musée est fermé le lundi et les jours de fête.",
    "Los niños construyeron un castillo de arena en la playa.",
    "Il vino rosso va servito a temperatura ambiente.",
    "昨天的足球比赛因为大雨取消了。",
    "図書館の隣に新しいパン屋ができました。",
    "The patient was told to rest and drink plenty of water.",
];

/// The vectors of [`UNRELATED`], computed once a process and model.
fn unrelated(embedder: &dyn Embedder) -> Result<Arc<Vec<f32>>> {
    static KNOWN: OnceLock<Mutex<HashMap<String, Arc<Vec<f32>>>>> = OnceLock::new();
    let known = KNOWN.get_or_init(Mutex::default);
    let lock = || known.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(vectors) = lock().get(embedder.fingerprint()) {
        return Ok(vectors.clone());
    }
    let vectors = Arc::new(embedder.embed(UNRELATED, TextRole::Passage)?.data);
    lock().insert(embedder.fingerprint().into(), vectors.clone());
    Ok(vectors)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKUP: &str = "Daily copies stay for 35 days, monthly copies for 13 months, yearly copies for customers \
        with statutory duties for ten years. When a contract ends, the copies expire by themselves; we do not delete \
        single files from an old archive, because the archive is sealed. The master key is rotated every April; old \
        archives are not re-encrypted, only the wrapped keys are. Two failed drills in a row escalate to the board.";
    const KUEHLUNG: &str = "Unter 14 °C Außentemperatur läuft die Anlage ausschließlich mit Freikühlung. Filter werden \
        vierteljährlich gewechselt, das Glykol jährlich gemessen. Ohne jede Kühlung steigt die Temperatur um rund ein \
        Grad je Minute. Arbeiten am Wasserkreis sind während einer Hitzewarnung verboten.";
    const RETENTION: &str =
        "ログは 90 日間保存され、その後削除されます。鍵を紛失した場合は、すぐに受付に連絡してください。";

    #[test]
    fn the_end_of_a_sentence_is_not_the_sentence() {
        let passage = ["It is sealed. Nobody, not even an administrator, is able to delete it. Ask first."];
        let part = support("An administrator, is able to delete it.", &passage, None).expect("compares");
        assert!(part.score < 0.5, "{part:?}");
        let whole = "Nobody, not even an administrator, is able to delete it. [1]";
        assert_eq!(support(whole, &passage, None).expect("compares").score, 1.0);
        let row = support("gold | 15 minutes", &["| Class | Loss |\n|---|---|\n| gold | 15 minutes |"], None);
        assert_eq!(row.expect("compares").score, 1.0);
    }

    /// What is claimed, of which passage, and whether that supports it.
    const TABLE: &[(&str, &str, &str, bool)] = &[
        ("verbatim", "Two failed drills in a row escalate to the board. [1]", BACKUP, true),
        ("shortened", "Monthly copies stay for 13 months.", BACKUP, true),
        ("number word", "Yearly copies are kept for 10 years.", BACKUP, true),
        ("paraphrase", "Every April the main key is changed.", BACKUP, true),
        ("paraphrase", "Single files are never removed from an old archive.", BACKUP, true),
        ("paraphrase", "If two exercises in succession fail, the board is informed.", BACKUP, true),
        ("paraphrase", "At the end of a contract the backups lapse by themselves.", BACKUP, true),
        ("paraphrase", "Customers with legal duties keep yearly copies for a decade.", BACKUP, true),
        ("german", "Tägliche Kopien bleiben 35 Tage erhalten.", BACKUP, true),
        ("french", "La clé principale est renouvelée chaque année en avril.", BACKUP, true),
        ("english", "Filters are replaced every quarter.", KUEHLUNG, true),
        ("english", "Without cooling the temperature rises by about one degree per minute.", KUEHLUNG, true),
        (
            "spanish",
            "Los trabajos en el circuito de agua están prohibidos durante un aviso de calor.",
            KUEHLUNG,
            true,
        ),
        ("english", "Logs are kept for 90 days and then deleted.", RETENTION, true),
        ("german", "Die Anlage kühlt frei, wenn es draußen kälter als 14 °C ist.", KUEHLUNG, true),
        ("japanese", "ログは90日間保存されます。", RETENTION, true),
        ("number", "Daily copies stay for 90 days.", BACKUP, false),
        ("number", "Monthly copies are kept for 24 months.", BACKUP, false),
        ("number, german", "Tägliche Kopien bleiben 60 Tage erhalten.", BACKUP, false),
        ("number", "Below 20 °C the plant runs on free cooling alone.", KUEHLUNG, false),
        ("number", "ログは30日間保存されます。", RETENTION, false),
        ("identifier", "Daily copies stay for 35 days in S3-GLACIER.", BACKUP, false),
        ("negation", "Old archives are re-encrypted.", BACKUP, false),
        ("negation", "We delete single files from an old archive.", BACKUP, false),
        ("negation", "The master key is not rotated every April.", BACKUP, false),
        ("other", "The off-site copy travels over a dedicated wavelength.", BACKUP, false),
        ("other", "Customers may ask for their logs by email.", BACKUP, false),
        ("other", "Der Zutritt zur Halle ist nur mit Ausweis erlaubt.", KUEHLUNG, false),
        ("other", "Invoices are sent on the first working day of the month.", KUEHLUNG, false),
        ("other", "The weather was fine.", BACKUP, false),
        ("other", "The restore of a database takes place in an isolated network.", BACKUP, false),
        ("other", "請求書は毎月発行されます。", RETENTION, false),
    ];

    #[test]
    fn the_real_embedder_tells_support_from_none() {
        let settings = crate::settings::ModelSettings { offline: true, ..Default::default() };
        let embedder = super::super::embedder(&settings, None).expect("is in the catalogue");
        if let Err(error) = embedder.embed(&["here?"], TextRole::Passage) {
            return eprintln!("skipped: {error}");
        }
        let mut wrong = Vec::new();
        for (sort, claim, passage, expected) in TABLE {
            let found = support(claim, &[passage], Some(&*embedder)).expect("embeds");
            if (found.score >= 0.5) != *expected {
                wrong.push((sort, claim, found));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn words_alone_see_wrong_numbers_and_negations() {
        for (sort, claim, passage, expected) in TABLE {
            let mechanical = ["verbatim", "shortened", "number", "number word", "identifier", "negation"];
            if mechanical.contains(sort) {
                let found = support(claim, &[passage], None).expect("needs no model");
                assert_eq!(found.score >= 0.5, *expected, "{sort}: {claim}: {found:?}");
                assert_eq!(found.semantic, None);
            }
        }
    }

    #[test]
    fn the_scale_does_not_depend_on_the_embedder() {
        let embedder = crate::models::HashEmbedder::default();
        let same = support("old archives, sealed", &["The archives are old and sealed."], Some(&embedder));
        let other = support("the cook peels onions", &["The archives are old and sealed."], Some(&embedder));
        assert!(same.expect("embeds").score >= 0.5);
        assert!(other.expect("embeds").score < 0.2);
    }

    #[test]
    fn the_best_passage_counts_and_nothing_supports_nothing() {
        let found = support("It is sealed.", &["Rice and beans.", "The archive: it is sealed."], None);
        assert_eq!(found.expect("needs no model").score, 1.0);
        for (sentence, passages) in
            [("", &["text"][..]), (" [1]", &["text"]), ("a claim", &[]), ("a claim", &[""])]
        {
            assert_eq!(support(sentence, passages, None).expect("needs no model").score, 0.0, "{sentence}");
        }
    }
}
