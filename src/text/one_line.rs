//! Texts of others in a line of ours.

/// `text` with a space for every control character: it stays in its line, where it begins no other that would mean
/// something to a terminal or to the program that reads along.
///
/// ```
/// assert_eq!(rankgate::text::one_line("gone\n::error::forged"), "gone ::error::forged");
/// ```
pub fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
