//! Suggests corrections of mistyped words.

/// Returns the most similar known word, if one is similar enough.
pub fn nearest<'k>(typed: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    const MAX_CHARS: usize = 40;
    if typed.chars().count() > MAX_CHARS {
        return None;
    }
    let plain: Vec<char> = typed
        .to_lowercase()
        .chars()
        .map(|c| if matches!(c, '-' | ' ' | '.') { '_' } else { c })
        .collect();
    let (distance, word) = known
        .into_iter()
        .map(|word| (distance(&plain, &word.chars().collect::<Vec<_>>()), word))
        .min_by_key(|(distance, _)| *distance)?;
    // At most a third of the letters may differ; otherwise the suggestion would only confuse.
    (distance <= (plain.len() / 3).clamp(1, 3)).then_some(word)
}

/// Counts insertions, deletions, replacements and swaps of neighbours.
fn distance(left: &[char], right: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut previous: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.iter().enumerate() {
        let mut current = vec![i + 1];
        for (j, b) in right.iter().enumerate() {
            let replaced = previous[j] + usize::from(a != b);
            let mut best = replaced.min(previous[j + 1] + 1).min(current[j] + 1);
            if i > 0 && j > 0 && *a == right[j - 1] && left[i - 1] == *b {
                best = best.min(before[j - 1] + 1);
            }
            current.push(best);
        }
        before = std::mem::replace(&mut previous, current);
    }
    previous[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_only_similar_words() {
        let known = ["max_iterations", "max_tokens_total", "engine", "pr"];
        for (typed, expected) in [
            ("max_iteration", Some("max_iterations")),
            ("max-iterations", Some("max_iterations")),
            ("maxIterations", Some("max_iterations")),
            ("max_itertaions", Some("max_iterations")),
            ("Engine", Some("engine")),
            ("engnie", Some("engine")),
            ("rp", Some("pr")),
            ("timeout", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, known), expected, "{typed}");
        }
        assert_eq!(nearest(&"x".repeat(10_000), known), None);
    }
}
