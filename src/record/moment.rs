//! Moments as text.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A moment as UTC text, RFC 3339 with milliseconds: sorts like time.
///
/// ```
/// use std::time::{Duration, UNIX_EPOCH};
/// let moment = UNIX_EPOCH + Duration::from_millis(951_782_400_007);
/// assert_eq!(rankgate::record::utc(moment), "2000-02-29T00:00:00.007Z");
/// ```
pub fn utc(moment: SystemTime) -> String {
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    // Gregorian date from days, counted from March so that the leap day is a year's last.
    let shifted = days + 719_468;
    let era_day = shifted % 146_097;
    let year_of_era = (era_day - era_day / 1_460 + era_day / 36_524 - era_day / 146_096) / 365;
    let year_day = era_day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * year_day + 2) / 153;
    let day = year_day - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = shifted / 146_097 * 400 + year_of_era + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        second / 3_600,
        second / 60 % 60,
        second % 60,
        since.subsec_millis()
    )
}
