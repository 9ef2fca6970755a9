//! Personal data goes out of a row before it is written.

use serde_json::Value;

use crate::record::Captured;
use crate::text::scrub;

/// The row with personal data replaced in whatever a person or a model wrote: the query, its parts, its expansion and
/// the values of further keys. Docids and collections stay: they are names, and a replay compares them.
///
/// Kept unscrubbed, a text is the one to search for again; scrubbed, it no longer is.
pub(super) fn scrubbed(mut row: Captured) -> Captured {
    replace(&mut row.query);
    row.asked.parts.iter_mut().for_each(|part| replace(&mut part.text));
    if let Some(expansion) = &mut row.expansion {
        let texts = expansion.lexical_queries.iter_mut().chain(&mut expansion.vector_queries);
        texts.chain(&mut expansion.hyde).chain(&mut expansion.notes).for_each(replace);
    }
    row.extra.values_mut().for_each(within);
    row
}

fn replace(text: &mut String) {
    if let std::borrow::Cow::Owned(scrubbed) = scrub(text) {
        *text = scrubbed;
    }
}

fn within(value: &mut Value) {
    match value {
        Value::String(text) => replace(text),
        Value::Array(list) => list.iter_mut().for_each(within),
        Value::Object(map) => map.values_mut().for_each(within),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::{Expansion, Mode, QueryMode};
    use crate::record::Tool;
    use crate::text::find_pii;

    #[test]
    fn no_text_keeps_personal_data_and_names_stay() {
        let mail = || "mail a@example.com".to_string();
        let mut row = Captured::new(Tool::Ask, mail(), vec!["people/a@example.com".into()]);
        row.asked.parts = vec![QueryMode { mode: Mode::Hyde, text: mail() }];
        row.expansion = Some(Expansion {
            lexical_queries: vec![mail()],
            vector_queries: vec![mail()],
            hyde: Some(mail()),
            notes: Some(mail()),
        });
        row.extra = serde_json::from_str(r#"{"a": {"b": ["a@example.com", 1]}}"#).expect("is JSON");
        let row = scrubbed(row);
        let kept: Vec<_> = row.texts().into_iter().filter(|(_, text)| !find_pii(text).is_empty()).collect();
        assert_eq!(kept, [("retrieved_slugs", "people/a@example.com")]);
    }
}
