//! The commands of a step: its `Test` and `Verify` lines.

/// The most commands of one step.
const MAX_COMMANDS: usize = 20;

/// The longest command, in bytes.
const MAX_COMMAND: usize = 2_000;

/// Returns the commands in the lines of a step.
///
/// A `Test` or `Verify` line has a command if a code span follows the label, such as ``Verify: `make test` ``
/// or ``**Verify:** Run `make test`. Fix failures.`` Other lines are instructions in prose.
pub(super) fn step_commands<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    for command in lines.filter_map(line_command) {
        if commands.len() < MAX_COMMANDS && !commands.contains(&command) {
            commands.push(command);
        }
    }
    commands
}

fn line_command(line: &str) -> Option<String> {
    let line = line.trim_start();
    let line = line
        .strip_prefix(['-', '*', '+'])
        .filter(|rest| rest.starts_with(' '))
        .unwrap_or(line);
    let line = line.trim_start().trim_start_matches('*');
    let (label, rest) = line.split_once(':')?;
    let label = label.trim_end_matches('*');
    if !["test", "verify"]
        .iter()
        .any(|known| label.eq_ignore_ascii_case(known))
    {
        return None;
    }
    let rest = rest.trim_start_matches('*').trim_start();
    let rest = match rest.get(..3) {
        Some(word) if word.eq_ignore_ascii_case("run") => rest[3..].trim_start_matches([':', ' ']),
        Some(_) | None => rest,
    };
    let fence = rest.len() - rest.trim_start_matches('`').len();
    let (fence, rest) = rest.split_at(fence);
    let (command, _) = rest.split_once(fence).filter(|_| !fence.is_empty())?;
    let command = command.trim();
    let is_usable = !command.is_empty()
        && command.len() <= MAX_COMMAND
        && !command.contains('`')
        && !command.contains(char::is_control);
    is_usable.then(|| command.to_owned())
}

#[cfg(test)]
mod tests {
    use super::line_command;

    #[test]
    fn a_command_is_the_code_after_the_label() {
        for (line, expected) in [
            ("Verify: `make test`", Some("make test")),
            (
                "**Verify:** Run `pytest -v`. Fix any failures.",
                Some("pytest -v"),
            ),
            ("- **Test**: run: `make`", Some("make")),
            ("test: ``a b``", Some("a b")),
            ("Verify: All checks pass clean.", None),
            ("Verify: the command `make` succeeds", None),
            ("Test:", None),
            ("Tests: `make`", None),
            ("Verify: `open", None),
            ("Verify: ``", None),
            ("Review: `make`", None),
            ("é", None),
        ] {
            assert_eq!(line_command(line).as_deref(), expected, "{line}");
        }
    }
}
