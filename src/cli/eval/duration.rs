//! How long ago: `7d`, `12h`, `30 m`.

use std::time::{Duration, SystemTime};

use crate::record::utc;

/// The units, and how many milliseconds each has.
const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Reads digits and a unit, blanks between them allowed. Fails on anything else, naming the units.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit = UNITS.iter().find(|(name, _)| *name == unit.trim_start());
    let (Some((_, length)), false) = (unit, number.is_empty()) else {
        return Err(
            "a duration is a whole number and one of ms, s, m, h, d: `7d`, `12h`; a week is `7d`".into()
        );
    };
    let length = number.parse::<u64>().ok().and_then(|number| number.checked_mul(*length));
    length.map(Duration::from_millis).ok_or_else(|| "longer than time itself".into())
}

/// The moment `ago` before now as text; the first there is, for whatever lies before it.
pub(super) fn before_now(ago: Duration) -> String {
    utc(SystemTime::now().checked_sub(ago).unwrap_or(SystemTime::UNIX_EPOCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_those_of_the_format_and_nothing_else_passes() {
        for (text, wanted) in [
            ("0d", 0),
            ("250ms", 250),
            ("90s", 90_000),
            ("5 m", 300_000),
            ("12h", 43_200_000),
            ("7d", 604_800_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(wanted)), "{text}");
        }
        for text in
            ["", "7", "d", "1w", "-1d", "1.5h", "+1d", "7D", " 7d", "7d ", "yesterday", "\u{0661}d", "1d2h"]
        {
            assert!(parse(text).is_err_and(|e| e.contains("ms, s, m, h, d")), "{text}");
        }
        assert!(parse("99999999999999999999d").is_err() && parse("18446744073709551615d").is_err());
        assert!(before_now(Duration::from_millis(u64::MAX)).starts_with("1970-01-01"));
    }
}
