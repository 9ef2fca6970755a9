//! `[eval]`: whether searches are captured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The variable that turns capture on where no setting decides.
pub const CONTRIBUTOR_MODE: &str = "RANKGATE_CONTRIBUTOR_MODE";

/// `[eval]`: what is kept of searches, to run them again later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EvalSettings {
    /// Keep every search of the command line. Where it is not set, `RANKGATE_CONTRIBUTOR_MODE=1` turns it on.
    pub capture: Option<bool>,
    /// Replace personal data in what is kept.
    pub scrub_pii: bool,
}

impl Default for EvalSettings {
    fn default() -> Self {
        Self { capture: None, scrub_pii: true }
    }
}

/// Whether searches are captured, and what decided it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CaptureState {
    /// Whether they are.
    pub on: bool,
    /// What decided it, for people.
    pub why: String,
}

impl EvalSettings {
    /// Whether searches are captured: the setting decides, either way; without one, [`CONTRIBUTOR_MODE`] that is
    /// exactly `1`; else they are not.
    pub fn capture_state(&self) -> CaptureState {
        self.decide(std::env::var_os(CONTRIBUTOR_MODE).and_then(|value| value.into_string().ok()).as_deref())
    }

    fn decide(&self, variable: Option<&str>) -> CaptureState {
        let (on, why) = match (self.capture, variable) {
            (Some(set), _) => (set, format!("`eval.capture` is {set}")),
            (None, Some("1")) => (true, format!("{CONTRIBUTOR_MODE} is 1")),
            (None, Some(other)) if !other.is_empty() => {
                (false, format!("{CONTRIBUTOR_MODE} is `{other}`, and only `1` turns it on"))
            }
            (None, _) => (false, format!("neither `eval.capture` nor {CONTRIBUTOR_MODE} is set")),
        };
        CaptureState { on, why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_beats_the_variable_both_ways() {
        for (capture, variable, on) in [
            (None, None, false),
            (None, Some("1"), true),
            (None, Some("0"), false),
            (None, Some("true"), false),
            (None, Some(" 1"), false),
            (None, Some(""), false),
            (Some(true), None, true),
            (Some(true), Some("0"), true),
            (Some(false), Some("1"), false),
            (Some(false), None, false),
        ] {
            let settings = EvalSettings { capture, ..EvalSettings::default() };
            assert_eq!(settings.decide(variable).on, on, "{capture:?} {variable:?}");
        }
    }

    #[test]
    fn only_true_and_false_are_settings_and_scrubbing_is_a_switch_of_its_own() {
        assert!(toml::from_str::<EvalSettings>("capture = \"true\"").is_err());
        assert!(toml::from_str::<EvalSettings>("capture = 1").is_err());
        let settings: EvalSettings = toml::from_str("capture = true").expect("parses");
        assert_eq!((settings.capture, settings.scrub_pii), (Some(true), true));
        let settings: EvalSettings = toml::from_str("scrub_pii = false").expect("parses");
        assert_eq!((settings.capture, settings.scrub_pii), (None, false));
    }
}
