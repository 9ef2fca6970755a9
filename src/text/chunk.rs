//! Chunks: pieces of a text that an embedding model can read whole.

use unicode_normalization::char::is_combining_mark;

use super::tokens::is_unspaced;

/// The most a chunk may hold, in hundredths of a model token by [`cost`]: 1,200 characters of plain
/// English. Of half that a passage says little, of twice that its vector is about too much, and reranking it costs
/// twice.
const BUDGET: usize = 26_400;
/// How much of a chunk is repeated in the next: a sentence or two, so that no thought is only seen cut.
const OVERLAP: usize = BUDGET * 15 / 100;
/// How far back from the limit a good place to break is looked for.
const WINDOW: usize = BUDGET * 20 / 100;

/// A piece of a text, as a range of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// First byte.
    pub start: usize,
    /// Byte after the last.
    pub end: usize,
}

/// Cuts `body` into chunks of at most about 260 tokens of a multilingual model.
///
/// That is 1,200 characters of English and 350 of Chinese, counted by a fixed price a character and not by a
/// model, so chunks stay the same when the model changes. Neighbours overlap by about 15 %. A chunk ends at
/// the last blank line, else sentence end, else line end, else space of its last fifth; never inside a
/// character or between a letter and its marks. Together the chunks cover every byte. A text without a
/// character gives one empty chunk, so that a document of a title alone has one too.
///
/// ```
/// let body = "A sentence of words. ".repeat(80);
/// let chunks = rankgate::text::chunks(&body);
/// assert_eq!(chunks.len(), 2);
/// assert!(chunks[1].start < chunks[0].end && body[..chunks[0].end].ends_with(". "));
/// ```
pub fn chunks(body: &str) -> Vec<Chunk> {
    let mut out = Vec::new();
    let mut start = 0;
    loop {
        let limit = forward(body, start, BUDGET);
        if limit == body.len() {
            out.push(Chunk { start, end: limit });
            return out;
        }
        let end = best_break(body, back(body, start, limit, WINDOW), limit);
        out.push(Chunk { start, end });
        let from = back(body, start, end, OVERLAP);
        // The overlap starts with a sentence, else with a word; a chunk always begins after the last one.
        let next = first_break(body, from, end);
        start = if next > start { next } else { end };
    }
}

/// The price of a character in hundredths of a token, rounded up from multilingual-e5's tokenizer: English
/// prose takes 4.5 characters a token, other alphabets 3, digits and marks of code 2, Han and kana 1.3.
fn cost(c: char) -> usize {
    match c {
        'a'..='z' | 'A'..='Z' | ' ' | '\n' => 22,
        c if c.is_ascii() => 50,
        c if is_unspaced(c) => 75,
        _ => 33,
    }
}

/// The last byte position after `start` such that the characters between cost at most `budget`.
fn forward(body: &str, start: usize, budget: usize) -> usize {
    let mut spent = 0;
    for (at, c) in body[start..].char_indices() {
        spent += cost(c);
        if spent > budget && at > 0 && !is_combining_mark(c) {
            return start + at;
        }
    }
    body.len()
}

/// The first byte position before `end` such that the characters between cost at most `budget`.
fn back(body: &str, start: usize, end: usize, budget: usize) -> usize {
    let mut spent = 0;
    let mut found = end;
    for (at, c) in body[start..end].char_indices().rev() {
        spent += cost(c);
        if spent > budget {
            break;
        }
        if !is_combining_mark(c) {
            found = start + at;
        }
    }
    found
}

/// The best place to break in `from..limit`: the last one of the strongest sort, else `limit`.
fn best_break(body: &str, from: usize, limit: usize) -> usize {
    breaks(body, from, limit).max().map_or(limit, |(_, at)| at)
}

/// Where an overlap may start in `from..limit`: after the first sentence end, else the first space.
fn first_break(body: &str, from: usize, limit: usize) -> usize {
    let sentence = breaks(body, from, limit).find(|&(rank, at)| rank >= Rank::Sentence && at < limit);
    let any = || breaks(body, from, limit).find(|&(_, at)| at < limit);
    sentence.or_else(any).map_or(from, |(_, at)| at)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Space,
    Line,
    Sentence,
    Paragraph,
}

/// The places in `from..limit` after which a text may be cut, in order.
fn breaks(body: &str, from: usize, limit: usize) -> impl Iterator<Item = (Rank, usize)> {
    let mut before = ['\0'; 2];
    body[from..limit].char_indices().filter_map(move |(at, c)| {
        let end = from + at + c.len_utf8();
        let [older, last] = before;
        before = [last, c];
        match c {
            '\n' if last == '\n' || (last == '\r' && older == '\n') => Some((Rank::Paragraph, end)),
            '。' | '！' | '？' | '．' | '।' => Some((Rank::Sentence, end)),
            c if c.is_whitespace() && matches!(last, '.' | '!' | '?') => Some((Rank::Sentence, end)),
            '\n' => Some((Rank::Line, end)),
            c if c.is_whitespace() => Some((Rank::Space, end)),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str) -> Vec<Chunk> {
        let chunks = chunks(body);
        assert_eq!((chunks[0].start, chunks[chunks.len() - 1].end), (0, body.len()));
        for chunk in &chunks {
            let text = &body[chunk.start..chunk.end];
            assert!(text.chars().map(cost).sum::<usize>() <= BUDGET, "{}", text.len());
        }
        for pair in chunks.windows(2) {
            assert!(pair[0].start < pair[1].start && pair[1].start <= pair[0].end, "{pair:?}");
        }
        chunks
    }

    #[test]
    fn short_and_empty_texts_are_one_chunk() {
        assert_eq!(check(""), [Chunk { start: 0, end: 0 }]);
        assert_eq!(check("word"), [Chunk { start: 0, end: 4 }]);
    }

    #[test]
    fn texts_without_any_break_are_covered() {
        assert!(check(&"x".repeat(10_000)).len() >= 5);
        assert!(check(&"数".repeat(3_000)).len() >= 5);
        assert!(check(&"🦀é".repeat(3_000)).len() >= 2);
    }

    #[test]
    fn the_strongest_break_of_the_window_wins() {
        let body = format!("{}\n\n{}", "one two. ".repeat(115), "three four. ".repeat(100));
        let chunks = check(&body);
        assert!(body[..chunks[0].end].ends_with("\n\n"));
        assert!(body[chunks[1].start..].starts_with("one"));
    }

    #[test]
    fn han_breaks_at_its_own_full_stop() {
        let body = "这是一个句子。".repeat(300);
        for chunk in check(&body) {
            assert!(body[..chunk.end].ends_with('。'));
        }
    }
}
