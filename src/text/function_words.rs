//! Function words: what holds a question together and says nothing about its subject.

use std::collections::HashSet;
use std::sync::OnceLock;

use super::normalize::{fold, normalize};
use super::tokens::{is_unspaced, segments};

/// Articles, pronouns, prepositions, auxiliaries and question words by language, normalised and folded. Negations are
/// left out on purpose: they change what is asked.
const LISTS: [(&str, &str); 5] = [
    (
        "en",
        "a about after all also am an and any are as at be because been before being but by can could did do does \
         doing during each for from get had has have having he her here him his how i if in into is it its itself just \
         may me might more most much must my of off on once one only or other our out over own s same shall she should \
         so some such than that the their them then there these they this those through to too under until up us very \
         was we were what when where whether which while who whom whose why will with would you your many long often",
    ),
    (
        "de",
        "ab aber alle als also am an ans auch auf aus bei beim bevor bin bis da damit danach dann das dass dem den denn \
         der des deren dessen die dies diese diesem diesen dieser dieses doch du durch ein eine einem einen einer eines \
         er es etwas euch fur gibt hat hatte haben habe ich ihm ihn ihr ihre im in ins ist ja kann konnen konnte man \
         mein mich mir mit muss mussen nach noch nun nur ob oder sein seine seit sich sie sind so soll sollte sollen \
         sowie uber um und uns unter vom von vor wann war waren warum was wegen welche welchem welchen welcher welches \
         wenn wer werden wie wieder wieso wieviel viel viele lange oft wird wir wird wo woher wohin wurde wurden zu zum \
         zur zwischen",
    ),
    (
        "fr",
        "a ai ainsi alors apres au aucun auquel aussi autre aux avant avec avez avons bout c ce ceci cela celle celui \
         ces cet cette ceux chaque chez combien comme comment d dans de des depuis doit doivent donc dont du elle elles \
         en encore entre es est et etait ete etre eux faire fait faut il ils j je l la le les leur leurs lors lorsque \
         lui m ma mais malgre me meme mes moi mon n nos notre nous on ont ou par parce pendant peut peuvent plus pour \
         pourquoi puis qu quand que quel quelle quelles quels qui quoi s sa sans se selon sera ses si sont sous sur t \
         ta te tes toi ton tous tout toute toutes tres tu un une vos votre vous y",
    ),
    (
        "it",
        "a ad agli ai al alla alle allo anche ancora bisogna che chi ci come con cosa cui da dai dal dalla dalle dallo \
         degli dei del della delle dello deve devo devono di dopo dove e ed era essere fare fra gli ha hai hanno ho i \
         il in io l la le lei lo loro lui ma mi mia mie mio molto ne nei nel nella nelle nello noi nostro o ogni per \
         perche piu poi possa possiamo posso possono prima puo qual quale quali quando quanta quante quanti quanto \
         quella quelle quelli quello questa queste questi questo se sei si sia siamo sono sta su sua sue sugli sui sul \
         sulla sulle suo ti tra tu tutta tutte tutti tutto un una uno va vi viene voi",
    ),
    (
        "es",
        "a al algo ante antes aquel aunque cada como con cual cuales cuando cuanta cuantas cuanto cuantos cuyo de debe \
         deben debo del desde despues donde durante e el ella ellas ellos en entre era es esa ese eso esta estan estar \
         este esto estos fue ha hace hacer hacia han hasta hay he la las le les lo los mas me mi mis mucho muy ni nos \
         nosotros o os otra otro para pero por porque pude puede pueden puedo que quien quienes se sea segun ser si \
         sido sin sobre solo son su sus tambien tanto te tengo tiene tienen todo todos tras tu un una uno unos y ya yo",
    ),
];

/// Whether `word` only holds a sentence together in some of the languages that have a list (en, de, fr, it, es).
///
/// ```
/// use rankgate::text::is_function_word;
/// assert!(is_function_word("Für") && is_function_word("the"));
/// assert!(!is_function_word("not") && !is_function_word("drain"));
/// ```
pub fn is_function_word(word: &str) -> bool {
    is_folded_function_word(&fold(&normalize(word)))
}

/// The same of a word that is normalised and folded.
pub(super) fn is_folded_function_word(word: &str) -> bool {
    static ALL: OnceLock<HashSet<&str>> = OnceLock::new();
    ALL.get_or_init(|| LISTS.iter().flat_map(|(_, list)| list.split_ascii_whitespace()).collect())
        .contains(word)
}

fn has(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == word)
}

/// The language of a text: by its script, else by its function words; `None` when they do not tell.
///
/// ```
/// use rankgate::text::language_of;
/// assert_eq!(language_of("Wie lange hält der Vorrat?"), Some("de"));
/// assert_eq!(language_of("ボリュームを戻す"), Some("ja"));
/// assert_eq!(language_of("DEC-0054"), None);
/// ```
pub fn language_of(text: &str) -> Option<&'static str> {
    let count = |of: fn(char) -> bool| text.chars().filter(|&c| of(c)).count();
    if count(|c| ('\u{3041}'..='\u{30ff}').contains(&c)) > 0 {
        return Some("ja");
    }
    type Belongs = fn(char) -> bool;
    let others: [(&str, Belongs); 5] = [
        ("ko", |c| ('\u{ac00}'..='\u{d7a3}').contains(&c)),
        ("zh", is_unspaced),
        ("ru", |c| ('\u{400}'..='\u{4ff}').contains(&c)),
        ("el", |c| ('\u{370}'..='\u{3ff}').contains(&c)),
        ("ar", |c| ('\u{600}'..='\u{6ff}').contains(&c)),
    ];
    if let Some((language, _)) = others.into_iter().find(|&(_, of)| count(of) > 0) {
        return Some(language);
    }
    let words: Vec<String> =
        segments(text).into_iter().flat_map(|segment| segment.parts).map(|word| fold(&word)).collect();
    let known = |list| words.iter().filter(|word| has(list, word)).count();
    let mut counts = LISTS.map(|(language, list)| (known(list), language));
    counts.sort_by_key(|&(count, _)| std::cmp::Reverse(count));
    (counts[0].0 > counts[1].0).then_some(counts[0].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_told_apart_by_their_smallest_words() {
        for (text, language) in [
            ("how do I send traffic back to the previous pool", Some("en")),
            ("Was geschieht mit ausgebauten SSDs, auf denen Kundendaten liegen?", Some("de")),
            ("qui informe les clients pendant une panne et à quel rythme", Some("fr")),
            ("ogni quanti anni si cambiano gli accumulatori al piombo", Some("it")),
            ("¿quién autoriza descartar por completo una dirección atacada?", Some("es")),
            ("一个机柜最多可以用多少千瓦", Some("zh")),
            ("데이터베이스 복구", Some("ko")),
            ("RPO RTO", None),
            ("", None),
        ] {
            assert_eq!(language_of(text), language, "{text}");
        }
    }

    #[test]
    fn lists_are_folded_as_words_are() {
        for (language, list) in LISTS {
            for word in list.split_ascii_whitespace() {
                assert_eq!(fold(&normalize(word)), word, "{language}");
            }
        }
    }
}
