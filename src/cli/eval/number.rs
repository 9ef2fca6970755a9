//! Numbers on the command line, checked where they are read: NaN is none of them.

/// A share, from 0 to 1.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|e| format!("{e}"))?;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err("it has to be from 0 to 1".into()) }
}

/// A factor, above 0.
pub(super) fn factor(text: &str) -> Result<f64, String> {
    let factor: f64 = text.parse().map_err(|e| format!("{e}"))?;
    if factor.is_finite() && factor > 0.0 { Ok(factor) } else { Err("it has to be above 0".into()) }
}
