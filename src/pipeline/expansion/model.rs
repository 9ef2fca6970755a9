//! Expansion by a language model.

use std::sync::{Arc, OnceLock};

use jsonschema::Validator;
use serde_json::{Value, json};

use super::{Expander, ExpansionRequest, schema};
use crate::corpus::Expansion;
use crate::error::{Error, ErrorKind, Result};
use crate::models::{Generator, Prompt};
use crate::text::language_of;

/// The version of instructions, examples and bounds; part of every expansion's key.
pub const PROMPT_VERSION: &str = "expansion-v1";

/// Bytes of a query that the model sees: room for it and for the longest answer in a small context.
const LONGEST: usize = 400;
/// Enough for the longest answer that the bounds allow, three bytes a character and a token a byte.
const MAX_TOKENS: u32 = 1536;

/// What the model is told, and one worked example: without one, a small model repeats itself until it is cut.
struct Template {
    language: &'static str,
    system: &'static str,
    query: &'static str,
    answer: [&'static str; 5],
}

const ENGLISH: Template = Template {
    language: "en",
    system: "You help a search engine. For the user's query write JSON: lexicalQueries, two other sets of keywords \
             for the same subject; vectorQueries, two other ways to ask the same; hyde, one sentence that could \
             answer it. Keep names and numbers as they are.",
    query: "printer stuck after a paper jam",
    answer: [
        "paper jam clear print queue",
        "restart printer spooler",
        "How do I get the printer to work again when paper got stuck?",
        "What should I do when printing stops because of jammed paper?",
        "Remove the jammed paper and restart the spooler, so that waiting jobs are printed.",
    ],
};

const GERMAN: Template = Template {
    language: "de",
    system: "Du hilfst einer Suchmaschine. Schreibe zur Anfrage JSON: lexicalQueries, zweimal andere Stichwörter zum \
             selben Thema; vectorQueries, zweimal dieselbe Frage in anderen Worten; hyde, ein Satz, der sie \
             beantworten könnte. Namen und Zahlen bleiben, wie sie sind.",
    query: "Drucker hängt nach Papierstau",
    answer: [
        "Papierstau beheben Druckwarteschlange",
        "Druckdienst neu starten",
        "Wie bringe ich den Drucker wieder zum Laufen, wenn Papier klemmt?",
        "Was ist zu tun, wenn ein Papierstau das Drucken anhält?",
        "Das gestaute Papier entfernen und den Druckdienst neu starten, dann werden wartende Aufträge gedruckt.",
    ],
};

/// For every other language: instructions in English, an example that keeps the query's language.
const MULTILINGUAL: Template = Template {
    language: "",
    system: "You help a search engine. For the user's query write JSON in the language of the query: \
             lexicalQueries, two other sets of keywords for the same subject; vectorQueries, two other ways to ask \
             the same; hyde, one sentence that could answer it. Keep names and numbers as they are.",
    query: "imprimante bloquée après un bourrage papier",
    answer: [
        "bourrage papier vider file d'impression",
        "redémarrer service d'impression",
        "Comment remettre l'imprimante en marche quand le papier est coincé ?",
        "Que faire quand un bourrage arrête l'impression ?",
        "Retirer le papier coincé et redémarrer le service, puis les travaux en attente sont imprimés.",
    ],
};

impl Template {
    fn of(language: Option<&str>) -> &'static Self {
        let primary = language.unwrap_or("en").split(['-', '_']).next().unwrap_or_default();
        [&ENGLISH, &GERMAN].into_iter().find(|known| known.language == primary).unwrap_or(&MULTILINGUAL)
    }

    fn example(&self) -> (String, String) {
        let [first, second, question, other, hyde] = self.answer;
        let answer = json!({
            "lexicalQueries": [first, second],
            "vectorQueries": [question, other],
            "hyde": hyde,
        });
        (self.query.into(), answer.to_string())
    }
}

/// The bounds under which a small model stays valid: few items, short ones.
fn bounds() -> Value {
    let texts = |longest: u32| {
        json!({
            "type": "array", "minItems": 1, "maxItems": 3,
            "items": {"type": "string", "minLength": 3, "maxLength": longest},
        })
    };
    json!({
        "type": "object",
        "properties": {
            "lexicalQueries": texts(60),
            "vectorQueries": texts(90),
            "hyde": {"type": "string", "minLength": 3, "maxLength": 200},
        },
        "required": ["lexicalQueries", "vectorQueries", "hyde"],
        "additionalProperties": false,
    })
}

/// Asks a language model for other words, other questions and a hypothetical answer.
pub struct ModelExpander {
    generator: Arc<dyn Generator>,
}

impl ModelExpander {
    /// An expander that asks `generator`; nothing is loaded before the first query.
    pub fn new(generator: Arc<dyn Generator>) -> Self {
        Self { generator }
    }

    fn prompt(request: &ExpansionRequest<'_>) -> Prompt {
        let template = Template::of(request.lang.or_else(|| language_of(request.query)));
        let query = request.query.trim();
        let mut user = query[..query.floor_char_boundary(LONGEST)].to_string();
        if let Some(intent) = request.intent.map(str::trim).filter(|intent| !intent.is_empty()) {
            user = format!("{user}\n({})", &intent[..intent.floor_char_boundary(LONGEST)]);
        }
        Prompt {
            system: template.system.into(),
            examples: vec![template.example()],
            user,
            schema: Some(bounds()),
            max_tokens: MAX_TOKENS,
            temperature: request.temperature,
            seed: request.seed,
            trial: request.trial,
            timeout: request.timeout,
        }
    }
}

impl Expander for ModelExpander {
    fn name(&self) -> &str {
        "model"
    }

    fn version(&self) -> &str {
        PROMPT_VERSION
    }

    fn model(&self) -> Option<&str> {
        Some(self.generator.fingerprint())
    }

    fn expand(&self, request: &ExpansionRequest<'_>) -> Result<Expansion> {
        let answer = self.generator.generate(&Self::prompt(request))?;
        parse(&answer.text)
            .map_err(|e| e.context(format_args!("the expansion by `{}`", self.generator.name())))
    }
}

/// The expansion in a model's answer, which may have words around it.
fn parse(text: &str) -> Result<Expansion> {
    static SCHEMA: OnceLock<std::result::Result<Validator, String>> = OnceLock::new();
    let invalid = |why: String| {
        Error::new(ErrorKind::Model, why)
            .with_hint("the plain query is searched; another preset may do better")
    };
    let from = text.find('{').ok_or_else(|| invalid("it has no JSON object".into()))?;
    // The first whole value counts, whatever follows it.
    let value = serde_json::Deserializer::from_str(&text[from..]).into_iter::<Value>().next();
    let value = value.ok_or_else(|| invalid("it is empty".into()))?;
    let value = value.map_err(|e| invalid(format!("it is not JSON: {e}")))?;
    let compile = || jsonschema::validator_for(&schema()).map_err(|e| e.to_string());
    let schema = SCHEMA.get_or_init(compile).as_ref().map_err(|e| invalid(e.clone()))?;
    schema.validate(&value).map_err(|e| invalid(format!("it is not `expansion@1.0`: {e}")))?;
    serde_json::from_value(value).map_err(|e| invalid(format!("it is not `expansion@1.0`: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_follow_the_language() {
        let system = |query, lang| {
            ModelExpander::prompt(&ExpansionRequest { lang, ..ExpansionRequest::new(query) }).system
        };
        assert_eq!(system("Wie lange hält der Diesel?", None), GERMAN.system);
        assert_eq!(system("how long does it last", None), ENGLISH.system);
        assert_eq!(system("DEC-0054", None), ENGLISH.system);
        assert_eq!(system("drain 一直卡住怎么处理", None), MULTILINGUAL.system);
        assert_eq!(system("DEC-0054", Some("de-AT")), GERMAN.system);
    }

    #[test]
    fn the_examples_keep_the_bounds_they_teach() {
        let bounds = jsonschema::validator_for(&bounds()).expect("a schema");
        for template in [&ENGLISH, &GERMAN, &MULTILINGUAL] {
            let answer = template.example().1;
            let value: Value = serde_json::from_str(&answer).expect("is JSON");
            assert!(bounds.is_valid(&value), "{answer}");
            parse(&answer).expect("an expansion");
        }
    }

    #[test]
    fn a_long_query_is_cut_and_an_intent_is_told() {
        let long = "ü".repeat(1000);
        let mut request = ExpansionRequest::new(&long);
        assert_eq!(ModelExpander::prompt(&request).user.len(), LONGEST);
        request.query = "frost";
        request.intent = Some("plants");
        assert_eq!(ModelExpander::prompt(&request).user, "frost\n(plants)");
    }

    #[test]
    fn answers_are_checked() {
        let good = r#"Sure: {"lexicalQueries": ["a"], "vectorQueries": []} and more }"#;
        assert_eq!(parse(good).expect("is valid").lexical_queries, ["a"]);
        for (bad, words) in [
            ("", "no JSON object"),
            ("{\"lexicalQueries\": [\"a\"", "not JSON"),
            (r#"{"lexicalQueries": ["a"]}"#, "vectorQueries"),
            (r#"{"lexicalQueries": [1], "vectorQueries": []}"#, "expansion@1.0"),
            (r#"{"lexicalQueries": ["1","2","3","4","5","6"], "vectorQueries": []}"#, "expansion@1.0"),
            (r#"{"lexicalQueries": [], "vectorQueries": [], "sources": []}"#, "sources"),
        ] {
            let error = parse(bad).expect_err(bad).report();
            assert!(error.contains(words), "{bad}: {error}");
        }
    }
}
