//! Picks the next token from the model's scores.

use std::collections::BTreeSet;

use crate::models::Prompt;

/// How many of the newest tokens are made less likely to come again.
const WINDOW: usize = 64;

/// By how much (Keskar et al. 2019, CTRL). A model of this size otherwise ends in a loop.
const PENALTY: f32 = 1.15;

/// The likeliest tokens that together reach this probability are drawn from (nucleus sampling, Holtzman et al.
/// 2020); the long tail of a small model is noise.
const NUCLEUS: f64 = 0.95;

/// Takes the likeliest token at temperature 0, else draws one; equal seeds and trials draw alike.
pub(super) struct Sampler {
    temperature: f64,
    random: SplitMix64,
}

impl Sampler {
    pub(super) fn new(prompt: &Prompt) -> Self {
        // Drawn through the generator, so that seed 1 trial 0 and seed 0 trial 1 have nothing in common.
        let seed = SplitMix64(prompt.seed).next().wrapping_add(u64::from(prompt.trial));
        Self { temperature: f64::from(prompt.temperature), random: SplitMix64(seed) }
    }

    /// The next token after `written`, out of those that are `allowed`; `None` when none is.
    pub(super) fn pick(
        &mut self,
        mut scores: Vec<f32>,
        written: &[u32],
        allowed: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let recent: BTreeSet<u32> = written.iter().rev().take(WINDOW).copied().collect();
        for token in recent {
            if let Some(score) = scores.get_mut(token as usize) {
                *score = if *score > 0.0 { *score / PENALTY } else { *score * PENALTY };
            }
        }
        let candidates = (0..).zip(scores).filter(|&(token, score)| !score.is_nan() && allowed(token));
        if self.temperature > 0.0 {
            return self.draw(candidates.collect());
        }
        // The first of equals.
        candidates.reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(token, _)| token)
    }

    fn draw(&mut self, mut candidates: Vec<(u32, f32)>) -> Option<u32> {
        candidates.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let best = f64::from(candidates.first()?.1);
        let weight = |score: f32| ((f64::from(score) - best) / self.temperature).exp();
        let weights: Vec<f64> = candidates.iter().map(|&(_, score)| weight(score)).collect();
        let enough = weights.iter().sum::<f64>() * NUCLEUS;
        let mut reached = 0.0;
        let nucleus = 1 + weights
            .iter()
            .take_while(|&weight| {
                reached += weight;
                reached < enough
            })
            .count();
        let nucleus = &weights[..nucleus.min(weights.len())];
        let mut left = self.random.unit() * nucleus.iter().sum::<f64>();
        let drawn = nucleus.iter().position(|weight| {
            left -= weight;
            left < 0.0
        });
        Some(candidates[drawn.unwrap_or(nucleus.len() - 1)].0)
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014).
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In [0, 1).
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampler(temperature: f32, seed: u64, trial: u32) -> Sampler {
        Sampler::new(&Prompt { temperature, seed, trial, ..Prompt::default() })
    }

    /// The first outputs for the seed 1234567, as its authors' C code prints them.
    #[test]
    fn the_generator_is_splitmix64() {
        let mut random = SplitMix64(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn the_likeliest_allowed_token_is_taken_and_the_first_of_equals() {
        let scores = vec![f32::NAN, 3.0, 9.0, 3.0];
        let mut greedy = sampler(0.0, 0, 0);
        assert_eq!(greedy.pick(scores.clone(), &[], |_| true), Some(2));
        assert_eq!(greedy.pick(scores.clone(), &[], |t| t != 2), Some(1));
        assert_eq!(greedy.pick(scores.clone(), &[], |t| t == 0), None, "no score, no token");
        assert_eq!(greedy.pick(scores, &[1], |t| t != 2), Some(3), "what was just written is less likely");
        assert_eq!(greedy.pick(vec![-1.0, -1.1], &[0], |_| true), Some(1), "below zero too");
    }

    #[test]
    fn draws_follow_seed_and_trial_and_leave_the_tail_out() {
        let draws = |seed, trial| -> Vec<u32> {
            let mut sampler = sampler(1.0, seed, trial);
            // Probabilities 0.49, 0.49 and 0.02.
            (0..64).filter_map(|_| sampler.pick(vec![3.2, 3.2, 0.0], &[], |_| true)).collect()
        };
        assert_eq!(draws(1, 0), draws(1, 0));
        assert_ne!(draws(1, 0), draws(1, 1));
        assert_ne!(draws(1, 0), draws(0, 1));
        let mut seen = draws(1, 0);
        assert!((20..44).contains(&seen.iter().filter(|&&t| t == 0).count()), "{seen:?}");
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, [0, 1]);
    }
}
