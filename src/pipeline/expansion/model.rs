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

/// What the model is told, and worked examples on different subjects: without any, a small model repeats itself until
/// it is cut; with one, it repeats the example; in another language, it answers in that.
struct Template {
    language: &'static str,
    system: &'static str,
    examples: [Example; 3],
}

/// A query, two questions, two sets of keywords and an answer.
type Example = [&'static str; 6];

const ENGLISH: Template = Template {
    language: "en",
    system: "Expand the search query. Keep to its words and its language. vectorQueries ask the same in other words, \
             lexicalQueries are its keywords, hyde is a sentence that answers it.",
    examples: [
        [
            "printer stuck after a paper jam",
            "How do I fix a printer after a paper jam?",
            "What to do when the printer is stuck?",
            "printer paper jam fix",
            "clear stuck printer",
            "When the printer is stuck after a paper jam, remove the paper and start the printer again.",
        ],
        [
            "which trains run on sunday evening",
            "What is the train timetable on Sunday evening?",
            "When do trains run on Sunday?",
            "train timetable sunday",
            "trains sunday evening",
            "On Sunday evening trains run every hour until midnight.",
        ],
        [
            "max upload size for photos",
            "How large may an uploaded photo be?",
            "What is the size limit for photos?",
            "photo upload limit",
            "maximum photo size",
            "Uploaded photos may have a maximum size of 20 MB.",
        ],
    ],
};

const GERMAN: Template = Template {
    language: "de",
    system: "Erweitere die Suchanfrage. Bleibe bei ihren Wörtern und ihrer Sprache. vectorQueries fragen dasselbe in \
             anderen Worten, lexicalQueries sind ihre Stichwörter, hyde ist ein Satz, der sie beantwortet.",
    examples: [
        [
            "Drucker hängt nach Papierstau",
            "Wie behebe ich einen Papierstau im Drucker?",
            "Was tun, wenn der Drucker hängt?",
            "Papierstau Drucker beheben",
            "Drucker hängt",
            "Wenn der Drucker nach einem Papierstau hängt, das Papier entfernen und den Drucker neu starten.",
        ],
        [
            "Wie viel Urlaub habe ich im ersten Jahr?",
            "Wie viele Urlaubstage gibt es im ersten Jahr?",
            "Welchen Anspruch auf Urlaub habe ich?",
            "Urlaub erstes Jahr",
            "Urlaubstage Anspruch",
            "Im ersten Jahr hat man Anspruch auf 24 Tage Urlaub.",
        ],
        [
            "maximale Größe für Fotos beim Hochladen",
            "Wie groß dürfen hochgeladene Fotos sein?",
            "Welche Grenze gilt für die Größe von Fotos?",
            "Fotos maximale Größe",
            "Fotos hochladen Grenze",
            "Hochgeladene Fotos dürfen eine maximale Größe von 20 MB haben.",
        ],
    ],
};

/// For every other language: instructions in English, examples that keep their query's language.
const MULTILINGUAL: Template = Template {
    language: "",
    system: ENGLISH.system,
    examples: [
        [
            "imprimante bloquée après un bourrage papier",
            "Comment réparer l'imprimante après un bourrage papier ?",
            "Que faire quand l'imprimante est bloquée ?",
            "bourrage papier imprimante",
            "imprimante bloquée",
            "Après un bourrage papier, retirer le papier et redémarrer l'imprimante bloquée.",
        ],
        [
            "qué trenes hay el domingo por la tarde",
            "¿Cuál es el horario de trenes del domingo?",
            "¿A qué hora salen los trenes el domingo por la tarde?",
            "horario trenes domingo",
            "trenes domingo tarde",
            "El domingo por la tarde los trenes salen cada hora.",
        ],
        [
            "照片上传大小限制",
            "上传的照片最大可以是多少?",
            "照片的大小有什么限制?",
            "照片 大小 限制",
            "上传 照片 最大",
            "上传的照片最大为 20 MB。",
        ],
    ],
};

impl Template {
    fn of(language: Option<&str>) -> &'static Self {
        let primary = language.unwrap_or("en").split(['-', '_']).next().unwrap_or_default();
        [&ENGLISH, &GERMAN].into_iter().find(|known| known.language == primary).unwrap_or(&MULTILINGUAL)
    }

    /// Queries with their answers.
    fn worked(&self) -> Vec<(String, String)> {
        let worked = |[query, question, other, words, more, hyde]: Example| {
            let answer = json!({
                "vectorQueries": [question, other],
                "lexicalQueries": [words, more],
                "hyde": hyde,
            });
            (query.to_string(), answer.to_string())
        };
        self.examples.map(worked).into()
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
            // Questions first: from a sentence, a small model finds its keywords better than the other way round.
            "vectorQueries": texts(90),
            "lexicalQueries": texts(60),
            "hyde": {"type": "string", "minLength": 3, "maxLength": 200},
        },
        "required": ["vectorQueries", "lexicalQueries", "hyde"],
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
            examples: template.worked(),
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
    let compile = || jsonschema::validator_for(schema().as_value()).map_err(|e| e.to_string());
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
        assert_eq!(system("DEC-0054", Some("de-AT")), GERMAN.system);
        assert_eq!(Template::of(language_of("drain 一直卡住怎么处理")).examples, MULTILINGUAL.examples);
    }

    #[test]
    fn the_examples_keep_the_bounds_they_teach() {
        let bounds = jsonschema::validator_for(&bounds()).expect("a schema");
        for template in [&ENGLISH, &GERMAN, &MULTILINGUAL] {
            for (_, answer) in template.worked() {
                let value: Value = serde_json::from_str(&answer).expect("is JSON");
                assert!(bounds.is_valid(&value), "{answer}");
                parse(&answer).expect("an expansion");
            }
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
