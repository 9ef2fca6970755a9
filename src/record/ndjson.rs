//! Files of one JSON object a line, read as a stream.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde_json::{Map, Value};

use super::json;
use crate::corpus::open_file;
use crate::error::{Error, Result};

/// Bytes that a line may have. A longer one is no record, and is not held in memory to find out.
pub const MAX_LINE: usize = 4 << 20;

/// One object and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    /// From 1.
    pub(super) number: u64,
    /// Where the line begins in the file.
    pub(super) start: u64,
    /// How many bytes it takes there, with its end.
    pub(super) length: u64,
    /// Its bytes, without blanks around it and without its end.
    pub(super) bytes: Vec<u8>,
    pub(super) object: Map<String, Value>,
}

/// The lines of a reader that hold anything. After an error it goes on with the next line, except where reading
/// itself failed.
pub(super) struct Lines<R> {
    reader: R,
    name: String,
    number: u64,
    position: u64,
    ended: bool,
}

impl Lines<BufReader<File>> {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = open_file(path, "records")?;
        Ok(Self::new(BufReader::new(file), &path.display().to_string()))
    }
}

impl<R: BufRead> Lines<R> {
    /// `name` stands for the file in errors.
    pub(super) fn new(reader: R, name: &str) -> Self {
        Self { reader, name: name.into(), number: 0, position: 0, ended: false }
    }

    /// The bytes of the next line, its end excluded; `Ok(None)` at the end of the file.
    fn next_bytes(&mut self) -> Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        let failed = |e| Error::io("read on in", Path::new(&self.name), e);
        // One byte for the line's end, and one to see that there is too much.
        let length =
            (&mut self.reader).take(MAX_LINE as u64 + 2).read_until(b'\n', &mut bytes).map_err(failed)?;
        if length == 0 {
            return Ok(None);
        }
        self.number += 1;
        self.position += length as u64;
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        if bytes.len() > MAX_LINE {
            let skipped = skip_line(&mut self.reader).map_err(failed)?;
            self.position += skipped;
            let what = format!("{}:{}: the line has more than {MAX_LINE} bytes", self.name, self.number);
            return Err(Error::input(what).with_hint("write one JSON object a line"));
        }
        Ok(Some(bytes))
    }
}

/// Reads up to and with the next line's end; the bytes that were passed over.
fn skip_line(reader: &mut impl BufRead) -> std::io::Result<u64> {
    let mut skipped = 0;
    loop {
        let buffer = reader.fill_buf()?;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(buffer.len(), |end| end + 1);
        reader.consume(length);
        skipped += length as u64;
        if end.is_some() || length == 0 {
            return Ok(skipped);
        }
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Result<Line>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            let start = self.position;
            let bytes = match self.next_bytes() {
                Ok(Some(bytes)) => bytes,
                Ok(None) => break,
                Err(e) => {
                    self.ended = e.kind() != crate::error::ErrorKind::Input;
                    return Some(Err(e));
                }
            };
            let bytes =
                if self.number == 1 { bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes) } else { &bytes };
            let bytes = bytes.trim_ascii();
            if !bytes.is_empty() {
                let object = object(bytes).map_err(|e| e.context(format!("{}:{}", self.name, self.number)));
                return Some(object.map(|object| Line {
                    number: self.number,
                    start,
                    length: self.position - start,
                    bytes: bytes.into(),
                    object,
                }));
            }
        }
        self.ended = true;
        None
    }
}

/// The object that a line holds; errors leave out the file.
pub(super) fn object(bytes: &[u8]) -> Result<Map<String, Value>> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| Error::input("not UTF-8").with_hint("save the file as UTF-8 text"))?;
    let value = json::from_str(text).map_err(|e| {
        // The position that serde_json appends is one inside the line.
        let what = e.to_string().replace(" at line 1 column ", " at column ");
        Error::input(format!("not JSON: {what}")).with_hint("write one JSON object a line")
    })?;
    match value {
        Value::Object(object) => Ok(object),
        other => Err(Error::input(format!("{} where an object belongs", kind(&other)))
            .with_hint("write one JSON object a line")),
    }
}

/// What sort of JSON value it is: `a string`.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Vec<Result<(u64, u64), String>> {
        let lines = Lines::new(bytes, "f");
        lines.map(|line| line.map(|line| (line.number, line.start)).map_err(|e| e.to_string())).collect()
    }

    #[test]
    fn marks_ends_and_blank_lines_are_passed_over() {
        assert_eq!(read(b"\xef\xbb\xbf{}\r\n\n  \r\n {} \n{}"), [Ok((1, 0)), Ok((4, 12)), Ok((5, 17))]);
        assert_eq!(read(b""), []);
    }

    #[test]
    fn a_bad_line_is_named_and_the_next_one_read() {
        let found = read(b"{\"a\":}\n{}\n[1]\n\xff\n{\"a\":1");
        let errors: Vec<_> = found.iter().filter_map(|line| line.as_ref().err()).collect();
        assert_eq!(found[1], Ok((2, 7)));
        assert!(errors[0].starts_with("f:1: not JSON: expected value at column 6"), "{errors:?}");
        assert!(errors[1].starts_with("f:3: a list where an object belongs"), "{errors:?}");
        assert!(
            errors[2].starts_with("f:4: not UTF-8") && errors[3].starts_with("f:5: not JSON"),
            "{errors:?}"
        );
        assert_eq!(errors.len(), 4);
    }

    #[test]
    fn an_endless_line_is_not_held() {
        let mut text = vec![b' '; 3 * MAX_LINE];
        text.extend(b"\n{}\n");
        let found = read(&text);
        assert!(found[0].as_ref().is_err_and(|e| e.contains("f:1: the line has more than")), "{found:?}");
        assert_eq!(found[1], Ok((2, 3 * MAX_LINE as u64 + 1)));
        let mut longest = vec![b' '; MAX_LINE - 2];
        longest.extend(b"{}\n");
        assert_eq!(read(&longest), [Ok((1, 0))]);
    }

    #[test]
    fn deep_nesting_is_an_error() {
        let text = "[".repeat(100_000);
        assert!(read(text.as_bytes())[0].is_err());
    }
}
