//! Baselines of single cases, kept as insta snapshots.

use std::path::PathBuf;

use sha2::{Digest, Sha256};

use crate::corpus::{Ranking, hex};

use super::worker::quietly;

/// Where snapshots are kept and what compares them.
#[derive(Debug, Clone)]
pub struct Snapshots {
    pub folder: PathBuf,
    /// `insta::assert_snapshot!`, expanded in the project's own source so that insta names that file.
    pub assert: fn(&str, &str),
}

impl Snapshots {
    /// Compares `text` with the accepted snapshot; returns the difference in words, if there is one.
    ///
    /// A new text is left beside the old one for `cargo insta review`, as insta's settings say.
    pub fn check(&self, eval: &str, case: &str, text: &str) -> Option<String> {
        let name = format!("{}__{}", file_name(eval), file_name(case));
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(&self.folder);
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.set_description(format!("{eval}::{case}"));
        let failure = quietly(|| settings.bind(|| (self.assert)(&name, text))).err()?;
        if !failure.contains("snapshot assertion") {
            return Some(format!("snapshot `{name}`: {failure}"));
        }
        let accepted = insta::Snapshot::from_file(&self.folder.join(format!("{name}.snap"))).ok();
        let old = accepted.as_ref().and_then(|snapshot| snapshot.as_text()).map(ToString::to_string);
        Some(match old {
            None => format!("snapshot `{name}` is new, {}", advice("", variable)),
            Some(old) => format!(
                "snapshot `{name}` differs, {}\n{}",
                advice(" or repair the subject", variable),
                difference(old.trim_end(), text.trim_end())
            ),
        })
    }
}

/// Variables that put something else in the place of what the project's settings name.
const CHOOSE: [&str; 5] =
    ["RANKGATE_EMBEDDER", "RANKGATE_RERANKER", "RANKGATE_FUSION", "RANKGATE_THOROUGHNESS", "RANKGATE_PRESET"];

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// What to do about a text that differs: nobody should accept what another model than the project's has found.
fn advice(else_do: &str, variable: impl Fn(&str) -> Option<String>) -> String {
    let chosen = CHOOSE.iter().find_map(|name| Some(format!("{name}={}", variable(name)?)));
    match chosen {
        Some(chosen) => format!("but {chosen} is set: unset it before you accept a baseline"),
        None => format!("accept it with `cargo insta review`{else_do}"),
    }
}

/// A ranking as text for a snapshot: one line a hit with rank, score and docid. Scores are rounded to 3
/// decimals, so that they survive another machine.
///
/// ```
/// let ranking = rankgate::Ranking::from_docids(["b", "a"]);
/// assert_eq!(rankgate::harness::ranking_lines(&ranking), "1 2.000 b\n2 1.000 a");
/// ```
pub fn ranking_lines(ranking: &Ranking) -> String {
    let line = |(i, hit): (usize, &crate::corpus::Hit)| format!("{} {:.3} {}", i + 1, hit.score, hit.docid);
    ranking.hits.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
}

/// A name that every file system takes: other characters become `_`, and a hash keeps such names apart.
fn file_name(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '[' | ']');
    let mut name: String = text.chars().map(|c| if plain(c) { c } else { '_' }).take(80).collect();
    if name != text {
        let hash = hex(&Sha256::digest(text.as_bytes()));
        name.push('-');
        name.push_str(&hash[..8]);
    }
    name
}

/// The lines in which two texts differ, `-` old and `+` new, in order.
fn difference(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let mut lines = Vec::new();
    for i in 0..old.len().max(new.len()) {
        let (before, after) = (old.get(i), new.get(i));
        if before != after {
            lines.extend(before.map(|line| format!("  - {line}")));
            lines.extend(after.map(|line| format!("  + {line}")));
        }
    }
    if lines.len() > 20 {
        let more = lines.len() - 20;
        lines.truncate(20);
        lines.push(format!("  … {more} more lines"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_model_found_is_not_to_be_accepted() {
        let advice =
            |set: &str| advice(" or repair the subject", |name| (name == set).then(|| "other".into()));
        assert_eq!(advice("HOME"), "accept it with `cargo insta review` or repair the subject");
        assert_eq!(
            advice("RANKGATE_EMBEDDER"),
            "but RANKGATE_EMBEDDER=other is set: unset it before you accept a baseline"
        );
    }

    #[test]
    fn file_names_are_safe_and_stay_apart() {
        assert_eq!(file_name("query[rrf]"), "query[rrf]");
        let (slash, colon) = (file_name("a/b"), file_name("a:b"));
        assert!(slash.starts_with("a_b-") && colon.starts_with("a_b-") && slash != colon);
        assert!(file_name(&"x".repeat(500)).len() < 100);
    }
}
