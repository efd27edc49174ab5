//! Detects an indentation that differs between patch and file by one consistent rule.

/// The interchangeable indentation steps.
const INDENT_STEPS: [&str; 4] = ["\t", "  ", "    ", "        "];

/// The conversion from the patch's indentation to the file's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IndentShift<'a> {
    /// The file has this additional prefix.
    Deeper(&'a str),
    /// The file lacks this prefix.
    Shallower(&'a str),
    /// The file uses another step the same number of times.
    Steps(&'static str, &'static str),
}

impl IndentShift<'_> {
    /// Converts a line of the patch to the file's indentation; a blank line becomes empty.
    fn apply(self, line: &str) -> Option<String> {
        let code = line.trim_start();
        let indent = indent(line);
        match self {
            _ if code.is_empty() => Some(String::new()),
            Self::Deeper(more) => Some(format!("{more}{line}")),
            Self::Shallower(less) => line.strip_prefix(less).map(str::to_owned),
            Self::Steps(from, to) => {
                let steps = indent.len() / from.len();
                (from.repeat(steps) == indent).then(|| to.repeat(steps) + code)
            }
        }
    }

    fn is_one_space(self) -> bool {
        matches!(self, Self::Deeper(" ") | Self::Shallower(" "))
    }
}

fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

/// A line of the patch and the matching line of the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinePair<'a> {
    pub(super) patch: &'a str,
    pub(super) file: &'a str,
    pub(super) removed: bool,
}

/// Returns the added lines with the file's indentation, or `None` if no shift explains all pairs or
/// several shifts produce different lines.
pub(super) fn shift_added_lines(pairs: &[LinePair<'_>], added: &[&str]) -> Option<Vec<String>> {
    let pairs: Vec<&LinePair<'_>> = pairs
        .iter()
        .filter(|pair| !pair.patch.trim().is_empty())
        .collect();
    // A context line that only lost its leading space has the same shift, but then the added lines
    // are already correct. Removed lines show that the shift applies to changed lines, too.
    let one_space = pairs.iter().any(|pair| pair.removed);
    let first = pairs.first()?;
    let (patch, file) = (indent(first.patch), indent(first.file));
    let deeper = file.strip_suffix(patch).map(IndentShift::Deeper);
    let shallower = patch.strip_suffix(file).map(IndentShift::Shallower);
    let steps = INDENT_STEPS.into_iter().flat_map(|from| {
        let others = INDENT_STEPS.into_iter().filter(move |to| *to != from);
        others.map(move |to| IndentShift::Steps(from, to))
    });
    let mut results = deeper
        .into_iter()
        .chain(shallower)
        .chain(steps)
        .filter(|shift| one_space || !shift.is_one_space())
        .filter(|shift| {
            pairs.iter().all(|pair| {
                let moved = shift.apply(pair.patch);
                moved.is_some_and(|moved| moved.trim_end() == pair.file.trim_end())
            })
        })
        .filter_map(|shift| added.iter().map(|line| shift.apply(line)).collect());
    let lines: Vec<String> = results.next()?;
    results.all(|other| other == lines).then_some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pairs<'a> = &'a [(&'a str, &'a str)];

    fn shift(pairs: Pairs<'_>, removed: bool, added: &[&str]) -> Option<Vec<String>> {
        let pairs: Vec<LinePair<'_>> = pairs
            .iter()
            .map(|(patch, file)| LinePair {
                patch,
                file,
                removed,
            })
            .collect();
        shift_added_lines(&pairs, added)
    }

    #[test]
    fn one_rule_for_all_lines_shifts_the_added_ones() {
        let cases: [(Pairs<'_>, &str, Option<&str>); 8] = [
            (
                &[("a", "    a"), ("  b", "      b")],
                "  x",
                Some("      x"),
            ),
            (
                &[("    a", "a"), ("      b", "  b")],
                "      x",
                Some("  x"),
            ),
            (
                &[("    a", "\ta"), ("        b", "\t\tb")],
                "    x",
                Some("\tx"),
            ),
            (&[("a", "a"), ("\tb", "  b")], "\t\tx", Some("    x")),
            (&[("a", "a"), ("  b", "    b")], "    x", Some("        x")),
            // Not one rule.
            (&[("a", "  a"), ("b", "    b")], "x", None),
            // Four deeper or twice as deep: the added line would differ.
            (&[("    a", "        a")], "        x", None),
            // Not a whole number of steps.
            (&[("a", "a"), ("    b", "\tb")], "      x", None),
        ];
        for (pairs, added, expected) in cases {
            let expected = expected.map(|line| vec![line.to_owned()]);
            assert_eq!(shift(pairs, true, &[added]), expected, "{pairs:?}");
        }
    }

    #[test]
    fn one_space_needs_a_removed_line() {
        let pairs = [("   a", "    a")];
        assert_eq!(shift(&pairs, false, &["    x"]), None);
        assert_eq!(shift(&pairs, true, &["    x"]), Some(vec!["     x".into()]));
    }
}
