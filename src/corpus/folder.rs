//! Reads a folder of Markdown and plain text.
//!
//! Files are taken in the order of their paths. Hidden files are left out, and so is what a `.gitignore` inside
//! the folder names; symbolic links are not followed. Nothing outside the folder changes what is read.

use std::collections::BTreeMap;
use std::path::Path;

use ignore::WalkBuilder;

use super::Document;
use crate::error::{Error, ErrorKind, Result};

/// The endings of files that are documents, without regard to case.
pub const EXTENSIONS: [&str; 3] = ["md", "markdown", "txt"];

/// Reads the documents of `root` one at a time; `root` may also be a single file.
///
/// A file that cannot be used yields an [`ErrorKind::Input`] error that names it and what is wrong; the caller
/// may go on to the next one. Fails at once when `root` does not exist.
pub fn documents(root: &Path) -> Result<impl Iterator<Item = Result<Document>> + use<>> {
    std::fs::metadata(root).map_err(|e| Error::io("read", root, e))?;
    let base = if root.is_dir() { root } else { root.parent().unwrap_or(Path::new("")) }.to_path_buf();
    Ok(walk(root).filter_map(move |entry| match entry {
        Ok(entry) if entry.file_type().is_some_and(|kind| kind.is_file()) && is_document(entry.path()) => {
            Some(read(entry.path(), &base))
        }
        Ok(_) => None,
        Err(e) => Some(Err(Error::new(ErrorKind::Io, "cannot read the folder")
            .with_source(e)
            .context(base.display()))),
    }))
}

/// The files of `root` that are no documents, counted by ending, in lower case; empty for a name without one.
pub fn others(root: &Path) -> BTreeMap<String, usize> {
    let mut count = BTreeMap::new();
    for entry in walk(root).flatten().filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file())) {
        if !is_document(entry.path()) {
            let ending = entry.path().extension().unwrap_or_default().to_string_lossy().to_lowercase();
            *count.entry(ending).or_default() += 1;
        }
    }
    count
}

fn walk(root: &Path) -> ignore::Walk {
    WalkBuilder::new(root)
        .parents(false)
        .git_global(false)
        .git_exclude(false)
        .require_git(false)
        .sort_by_file_path(Path::cmp)
        .build()
}

fn is_document(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| EXTENSIONS.iter().any(|known| ending.eq_ignore_ascii_case(known)))
}

fn read(path: &Path, base: &Path) -> Result<Document> {
    let id = docid(path, base)?;
    let bytes = std::fs::read(path).map_err(|e| Error::io("read the document", path, e))?;
    let text = String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        Error::input(format!("{}: not UTF-8 at byte {at}", path.display()))
            .with_hint("save it as UTF-8, or leave such files out with --skip-invalid")
    })?;
    let markdown = !path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("txt"));
    Ok(parse(id, text, markdown))
}

/// The path below `base` with `/` between its parts.
fn docid(path: &Path, base: &Path) -> Result<String> {
    let parts: Option<Vec<&str>> =
        path.strip_prefix(base).unwrap_or(path).iter().map(|part| part.to_str()).collect();
    parts.map(|parts| parts.join("/")).ok_or_else(|| {
        Error::input(format!("{}: the file's name is not UTF-8", path.display())).with_hint("rename the file")
    })
}

/// Makes a document of a file's text: byte order mark off, line ends `\n`, front matter taken out.
///
/// The title is the front matter's, else (in Markdown) the first heading, else the file's name without its
/// ending. Front matter that is no flat list of `key: value` lines stays in the text.
///
/// ```
/// let text = "---\ntitle: Deploying\nlang: en\n---\n# Step 1\n".to_string();
/// let document = rankgate::corpus::folder::parse("en/deploy.md".into(), text, true);
/// assert_eq!((document.title.as_str(), document.lang.as_deref()), ("Deploying", Some("en")));
/// assert_eq!(document.body, "# Step 1\n");
/// ```
pub fn parse(id: String, text: String, markdown: bool) -> Document {
    let mut text = text;
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    if text.contains("\r\n") {
        text = text.replace("\r\n", "\n");
    }
    let mut front = FrontMatter::default();
    if let Some((found, end)) = front_matter(&text) {
        front = found;
        text.drain(..end);
    }
    let title = front
        .title
        .or_else(|| if markdown { first_heading(&text) } else { None })
        .unwrap_or_else(|| stem(&id).to_string());
    Document { id, title, body: text, lang: front.lang }
}

/// The last part of an id without its ending.
fn stem(id: &str) -> &str {
    let name = id.rsplit('/').next().unwrap_or(id);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

#[derive(Debug, Default, PartialEq)]
struct FrontMatter {
    title: Option<String>,
    lang: Option<String>,
}

/// The front matter and the byte after it; `None` when the text has none that this subset of YAML can read.
fn front_matter(text: &str) -> Option<(FrontMatter, usize)> {
    let mut lines = text.split_inclusive('\n');
    let mut end = lines.next().filter(|line| line.trim_end() == "---")?.len();
    let mut front = FrontMatter::default();
    for line in lines {
        end += line.len();
        match line.trim_end() {
            "---" | "..." => return Some((front, end)),
            // Lists, nested maps and text blocks belong to a key that is of no interest here.
            "" => {}
            other if other.starts_with([' ', '\t', '#', '-']) => {}
            other => {
                let (key, value) = other.split_once(':')?;
                if key.contains(char::is_whitespace) || !(value.is_empty() || value.starts_with(' ')) {
                    return None;
                }
                let value = scalar(value);
                match key.to_ascii_lowercase().as_str() {
                    "title" => front.title = value,
                    "lang" | "language" => front.lang = value.and_then(language),
                    _ => {}
                }
            }
        }
    }
    None
}

/// A YAML scalar on one line: quotes and a trailing comment removed. A block or flow value is `None`.
fn scalar(value: &str) -> Option<String> {
    let value = value.trim();
    let text = match value.chars().next()? {
        quote @ ('"' | '\'') => {
            let inner = value[1..].rsplit_once(quote)?.0;
            if quote == '"' { inner.replace("\\\"", "\"") } else { inner.replace("''", "'") }
        }
        '>' | '|' | '[' | '{' | '&' | '*' | '!' => return None,
        _ => value.split(" #").next().unwrap_or(value).trim_end().to_string(),
    };
    (!text.trim().is_empty()).then(|| text.trim().to_string())
}

/// A language tag in lower case, when `value` has the form of one (BCP 47).
fn language(value: String) -> Option<String> {
    let first = value.split('-').next().unwrap_or_default();
    let well_formed = (2..=3).contains(&first.len())
        && value.split('-').all(|part| (1..=8).contains(&part.len()))
        && value.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    well_formed.then(|| value.to_ascii_lowercase())
}

/// The text of the first Markdown heading, `# …` or underlined, that is not in a code block.
fn first_heading(text: &str) -> Option<String> {
    let mut fence: Option<&str> = None;
    let mut before = "";
    for line in text.lines() {
        let trimmed = line.trim();
        let marker = ["```", "~~~"].into_iter().find(|marker| trimmed.starts_with(marker));
        match (fence, marker) {
            (None, Some(_)) => fence = marker,
            (Some(open), Some(found)) if open == found => fence = None,
            _ => {}
        }
        if fence.is_some() {
            before = "";
            continue;
        }
        let level = trimmed.bytes().take_while(|byte| *byte == b'#').count();
        if (1..=6).contains(&level)
            && trimmed[level..].starts_with([' ', '\t'])
            && let Some(title) = plain(trimmed[level..].trim().trim_end_matches('#'))
        {
            return Some(title);
        }
        if trimmed.len() >= 2 && trimmed.bytes().all(|byte| byte == b'=') && !before.is_empty() {
            return plain(before);
        }
        before = trimmed;
    }
    None
}

/// A heading without the marks of emphasis and code.
fn plain(heading: &str) -> Option<String> {
    let text = heading.replace(['`', '*'], "");
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Document {
        parse("a/note.md".into(), text.into(), true)
    }

    #[test]
    fn title_comes_from_front_matter_then_heading_then_name() {
        assert_eq!(parsed("---\ntitle: \"A: b\"\n---\n# H\n").title, "A: b");
        assert_eq!(parsed("```\n# no\n```\ntext\n## `Yes` *it* is ##\n").title, "Yes it is");
        assert_eq!(parsed("Under\n=====\n").title, "Under");
        assert_eq!(parsed("#hashtag only\n").title, "note");
        assert_eq!(parse("x.txt".into(), "# comment".into(), false).title, "x");
        assert_eq!(parsed("").title, "note");
    }

    #[test]
    fn marks_and_line_ends_of_other_systems_change_nothing() {
        let unix = parsed("---\nlang: DE\n---\n# H\n\ntext\n");
        let other = parsed("\u{feff}---\r\nlang: DE\r\n---\r\n# H\r\n\r\ntext\r\n");
        assert_eq!(unix, other);
        assert_eq!(unix.lang.as_deref(), Some("de"));
    }

    #[test]
    fn malformed_front_matter_stays_in_the_text() {
        for text in [
            "---\ntitle: x\n# H\n",
            "---\njust words\n---\n",
            "---\nhttp://x\n---\n",
            "----\ntitle: x\n----\n",
        ] {
            assert_eq!(parsed(text).body, text);
        }
        let nested = parsed("---\ntags:\n  - a\n- b\ntitle: >\n  folded\nlanguage: klingon!\n---\nbody");
        assert_eq!((nested.body.as_str(), nested.title.as_str(), nested.lang), ("body", "note", None));
    }

    #[test]
    fn a_folder_is_read_in_order_and_as_its_gitignore_says() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let write = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().expect("has a parent")).expect("creates");
            std::fs::write(path, bytes).expect("writes");
        };
        write("b.MD", b"# B");
        write("a/z.txt", b"z");
        write("a/skipped.md", b"no");
        write(".hidden.md", b"no");
        write("image.png", b"\xff");
        write("c.markdown", b"ok \xe4");
        write(".gitignore", b"skipped.md\n");
        let (good, bad): (Vec<_>, Vec<_>) =
            documents(dir.path()).expect("exists").partition(|document| document.is_ok());
        let ids: Vec<_> = good.into_iter().flatten().map(|document| document.id).collect();
        assert_eq!(ids, ["a/z.txt", "b.MD"]);
        let error = bad.into_iter().find_map(Result::err).expect("one is not UTF-8").report();
        assert!(error.contains("c.markdown: not UTF-8 at byte 3"), "{error}");
        assert!(documents(&dir.path().join("absent")).is_err());
        let one: Vec<_> = documents(&dir.path().join("b.MD")).expect("exists").flatten().collect();
        assert_eq!((one.len(), one[0].id.as_str()), (1, "b.MD"));
    }
}
