//! Finds the links in a document's text.

use std::collections::BTreeMap;

use unicode_normalization::UnicodeNormalization;

use crate::store::index::Link;

/// Version of the rules by which links are found; a change makes an index out of date.
pub const LINKS_VERSION: &str = "1";

/// The links in the text of document `id` to other documents of its collection, with how often each occurs.
///
/// Found are `[text](path.md)`, `[label]: path.md`, `[[Name]]`, `[[Name|text]]` and `[[folder/Name]]`, outside
/// code. Paths are relative to the document, or to the collection when they begin with `/`.
pub fn links(id: &str, text: &str) -> Vec<(Link, u32)> {
    let mut found: BTreeMap<Link, u32> = BTreeMap::new();
    let mut add = |link: Option<Link>| {
        if let Some(link) = link {
            *found.entry(link).or_default() += 1;
        }
    };
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        // Every second part is inline code.
        for part in line.split('`').step_by(2) {
            for (at, _) in part.match_indices("](") {
                add(by_path(id, &part[at + 2..], ')'));
            }
            for (at, _) in part.match_indices("[[") {
                if let Some((name, _)) = part[at + 2..].split_once("]]") {
                    add(wiki(name));
                }
            }
        }
        if let Some((label, target)) = line.trim_start().split_once("]:")
            && label.starts_with('[')
        {
            add(by_path(id, target, '\n'));
        }
    }
    found.into_iter().collect()
}

/// What links by name call the document `id`: its file's name without the ending, in one spelling.
pub fn name(id: &str) -> String {
    let file = id.rsplit('/').next().unwrap_or(id);
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    stem.trim().nfkc().flat_map(char::to_lowercase).collect()
}

fn wiki(text: &str) -> Option<Link> {
    let target = text.split(['|', '#']).next()?.trim();
    if target.is_empty() {
        return None;
    }
    if target.contains('/') {
        let ending = if target.ends_with(".md") { "" } else { ".md" };
        return Some(Link { by_name: false, target: format!("{}{ending}", target.trim_start_matches('/')) });
    }
    Some(Link {
        by_name: true,
        target: name(target.strip_suffix(".md").map_or(&format!("{target}.md"), |_| target)),
    })
}

/// The link whose destination `text` begins with, up to `close`.
fn by_path(id: &str, text: &str, close: char) -> Option<Link> {
    let text = text.trim_start();
    let destination = match text.strip_prefix('<') {
        Some(rest) => rest.split('>').next()?,
        None => text.split(|c: char| c == close || c.is_whitespace()).next()?,
    };
    let path = destination.split(['#', '?']).next()?;
    let elsewhere = path.starts_with("//") || path.split('/').next().is_some_and(|first| first.contains(':'));
    if path.is_empty() || elsewhere {
        return None;
    }
    let decoded = percent_decoded(path);
    let folder = id.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = if path.starts_with('/') { Vec::new() } else { folder.split('/').collect() };
    for part in decoded.split('/') {
        match part {
            "" | "." => {}
            // A path that leaves the collection leads nowhere.
            ".." => _ = parts.pop().filter(|part| !part.is_empty())?,
            part => parts.push(part),
        }
    }
    parts.retain(|part| !part.is_empty());
    Some(Link { by_name: false, target: parts.join("/") })
}

fn percent_decoded(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = match (first, tail) {
            (b'%', [a, b, ..]) => {
                str::from_utf8(&[*a, *b]).ok().and_then(|hex| u8::from_str_radix(hex, 16).ok())
            }
            _ => None,
        };
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| path.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_resolved_from_the_documents_place() {
        let text = "[a](../fr/b.md) [c](c.md#part \"title\") [d](</x y.md>) [e](f%20g.md) [n](../../../out.md)\n\
                    [w](https://x.org/y.md) [m](mailto:a@b) [s](#here) `[code](no.md)`\n\
                    ```\n[no](no.md)\n```\n[ref]: ./c.md\n[[Note Name|shown]] [[note name#part]] [[dir/Other]] [[ ]]\n";
        let found = links("en/a.md", text);
        let paths: Vec<_> =
            found.iter().filter(|(l, _)| !l.by_name).map(|(l, n)| (l.target.as_str(), *n)).collect();
        assert_eq!(
            paths,
            [("dir/Other.md", 1), ("en/c.md", 2), ("en/f g.md", 1), ("fr/b.md", 1), ("x y.md", 1)]
        );
        let names: Vec<_> =
            found.iter().filter(|(l, _)| l.by_name).map(|(l, n)| (l.target.as_str(), *n)).collect();
        assert_eq!(names, [("note name", 2)]);
        assert_eq!(name("a/Note Name.md"), "note name");
        assert_eq!(links("v1.2", "[[v1.3]]")[0].0.target, "v1.3");
    }
}
