//! How far two raters agree.

/// Cohen's kappa (Educational and Psychological Measurement 20, 1960): agreement beyond chance of two raters who put
/// the same items into classes, (p₀ − pₑ) / (1 − pₑ), where p₀ is the share of items on which they agree and pₑ the
/// share that raters with these class frequencies agree on by chance. 1 is full agreement, 0 is chance, below 0 is
/// worse than chance.
///
/// `None` when the two differ in length or are empty, and when both use one class, the same, for everything: chance
/// alone would make them agree, so that says nothing.
///
/// ```
/// use rankgate::metrics::agreement::cohen_kappa;
/// // They agree on 3 of 4; by chance on (2·1 + 2·3)/16 = 1/2.
/// let kappa = cohen_kappa(&[true, true, false, false], &[true, false, false, false]).expect("is defined");
/// assert!((kappa - 0.5).abs() < 1e-12);
/// ```
pub fn cohen_kappa<T: PartialEq>(first: &[T], second: &[T]) -> Option<f64> {
    if first.len() != second.len() || first.is_empty() {
        return None;
    }
    let n = first.len() as f64;
    let agree = first.iter().zip(second).filter(|(a, b)| a == b).count() as f64 / n;
    let count = |of: &[T], class: &T| of.iter().filter(|other| *other == class).count() as f64;
    // Over the items of the first rater, each class comes as often as that rater gave it.
    let by_chance = first.iter().map(|class| count(second, class)).sum::<f64>() / (n * n);
    (by_chance < 1.0).then(|| (agree - by_chance) / (1.0 - by_chance))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two raters with `table[a][b]` items that the first put into class a and the second into b.
    fn kappa<const N: usize>(table: [[usize; N]; N]) -> Option<f64> {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for (a, row) in table.iter().enumerate() {
            for (b, count) in row.iter().enumerate() {
                first.extend(std::iter::repeat_n(a, *count));
                second.extend(std::iter::repeat_n(b, *count));
            }
        }
        cohen_kappa(&first, &second)
    }

    #[test]
    fn kappa_agrees_with_examples_by_hand() {
        // p₀ = 35/50, pₑ = (25·30 + 25·20)/2500 = 0.5.
        assert!((kappa([[20, 5], [10, 15]]).expect("is defined") - 0.4).abs() < 1e-12);
        // Equal agreement of 0.6 and other margins: pₑ = 0.54 and 0.46.
        assert!((kappa([[45, 15], [25, 15]]).expect("is defined") - 0.06 / 0.46).abs() < 1e-12);
        assert!((kappa([[25, 35], [5, 35]]).expect("is defined") - 0.14 / 0.54).abs() < 1e-12);
        // Three classes: p₀ = 6/10, pₑ = (4·4 + 3·3 + 3·3)/100.
        assert!(
            (kappa([[3, 1, 0], [0, 2, 1], [1, 0, 2]]).expect("is defined") - (0.7 - 0.34) / 0.66).abs()
                < 1e-12
        );
        assert_eq!(kappa([[5, 0], [0, 5]]), Some(1.0));
        assert_eq!(kappa([[0, 5], [5, 0]]), Some(-1.0));
    }

    #[test]
    fn one_class_says_nothing() {
        assert_eq!(kappa([[9, 0], [0, 0]]), None, "both call everything good");
        assert_eq!(kappa([[6, 0], [3, 0]]), Some(0.0), "one of them calls everything good");
        assert_eq!(kappa([[0, 9], [0, 0]]), Some(0.0), "they never agree, and by chance never would");
        assert_eq!(cohen_kappa::<bool>(&[], &[]), None);
        assert_eq!(cohen_kappa(&[1], &[1, 2]), None);
    }
}
