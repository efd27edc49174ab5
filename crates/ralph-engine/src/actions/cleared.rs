//! Actions that are free of known secrets.
//!
//! The text of an action is performed byte for byte or not at all. A redactor that rewrote it would
//! commit a placeholder in place of the model's code, so an action with a known secret is refused
//! as a whole. Only a [`ClearedAction`] reaches the sandbox, and it borrows the model's text.

use ralph_core::action::Action;
use ralph_core::path::WorkspacePath;
use ralph_core::secret::Redactor;

/// An action without a known secret, exactly as the model wrote it.
#[derive(Clone, Copy)]
pub(super) struct ClearedAction<'a>(&'a Action);

impl<'a> ClearedAction<'a> {
    /// Checks every text of an action that would be performed; an error is the reason to refuse it.
    pub(super) fn check(action: &'a Action, redactor: &Redactor) -> Result<Self, String> {
        for (part, text) in performed_texts(action) {
            if let Some(name) = redactor.find_known(text.as_bytes()) {
                return Err(format!("the {part} contains the value of `{name}`"));
            }
            if let Some(name) = redactor.find_placeholder(text) {
                return Err(format!(
                    "the {part} contains `[REDACTED:{name}]`, which replaces the value of `{name}` in \
                     everything that is shown; leave the original line as it is"
                ));
            }
        }
        Ok(Self(action))
    }

    pub(super) fn action(self) -> &'a Action {
        self.0
    }
}

/// Returns the texts of an action that have an effect, each with its name in a reason.
fn performed_texts(action: &Action) -> Vec<(&'static str, &str)> {
    match action {
        Action::Run { command, cwd, .. } => {
            let cwd = cwd.as_ref().map(|cwd| ("directory", cwd.as_str()));
            [("command", command.as_str())]
                .into_iter()
                .chain(cwd)
                .collect()
        }
        Action::Patch { path, patch } => vec![("path", path.as_str()), ("patch", patch)],
        Action::Write { path, content, .. } => {
            vec![("path", path.as_str()), ("content", content)]
        }
        Action::Commit { message, paths } => {
            let paths = paths.iter().map(WorkspacePath::as_str);
            let paths = paths.map(|path| ("path", path));
            [("message", message.as_str())]
                .into_iter()
                .chain(paths)
                .collect()
        }
        // The reason of a control action is only shown.
        Action::Rotate { .. }
        | Action::Pause { .. }
        | Action::StopSuccess { .. }
        | Action::StopFailure { .. } => Vec::new(),
    }
}

/// Returns the line of `new` that repeats a line of the redacted `old`, if there is one.
///
/// A model sees files through the redactor. When it writes a file back, a redacted line must not
/// replace the original one.
pub(super) fn copied_placeholder(redactor: &Redactor, old: &[u8], new: &[u8]) -> Option<usize> {
    let redacted = redactor.redact_bytes(old);
    if *redacted == *old {
        return None;
    }
    let lines = |text: &[u8]| -> std::collections::HashSet<Vec<u8>> {
        let lines = text.split(|byte| *byte == b'\n');
        lines.map(|line| line.trim_ascii().to_vec()).collect()
    };
    let (originals, shown) = (lines(old), lines(&redacted));
    let is_copy = |line: &[u8]| {
        let line = line.trim_ascii();
        shown.contains(line) && !originals.contains(line)
    };
    let found = new.split(|byte| *byte == b'\n').position(is_copy)?;
    Some(found + 1)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ralph_core::ports::WriteMode;
    use ralph_core::secret::Secret;

    use super::*;

    fn redactor() -> Redactor {
        let secrets = [("PASS", "postgres"), ("DB_KEY", "hunter2-hunter2")];
        let secrets = secrets.map(|(name, value)| (name.to_owned(), Secret::new(value.to_owned())));
        Redactor::new(secrets.into())
    }

    fn path(text: &str) -> WorkspacePath {
        WorkspacePath::parse(text).unwrap()
    }

    fn every_action(text: &str) -> Vec<(&'static str, Action)> {
        vec![
            (
                "command",
                Action::Run {
                    command: text.into(),
                    cwd: None,
                    timeout: Duration::ZERO,
                },
            ),
            (
                "directory",
                Action::Run {
                    command: "ls".into(),
                    cwd: Some(path(text)),
                    timeout: Duration::ZERO,
                },
            ),
            (
                "patch",
                Action::Patch {
                    path: path("a"),
                    patch: text.into(),
                },
            ),
            (
                "content",
                Action::Write {
                    path: path("a"),
                    content: text.into(),
                    mode: WriteMode::Replace,
                },
            ),
            (
                "message",
                Action::Commit {
                    message: text.into(),
                    paths: vec![],
                },
            ),
            (
                "path",
                Action::Commit {
                    message: "x".into(),
                    paths: vec![path(text)],
                },
            ),
        ]
    }

    #[test]
    fn an_action_with_a_known_secret_is_refused_by_the_name_of_its_variable() {
        let redactor = redactor();
        for text in ["a hunter2-hunter2 b", "aHVudGVyMi1odW50ZXIy"] {
            for (part, action) in every_action(text) {
                let refused = ClearedAction::check(&action, &redactor).err();
                let expected = format!("the {part} contains the value of `DB_KEY`");
                assert_eq!(refused, Some(expected));
            }
        }
    }

    #[test]
    fn a_placeholder_of_a_known_secret_is_refused() {
        let action = &every_action("key = [REDACTED:DB_KEY]")[3].1;
        let refused = ClearedAction::check(action, &redactor()).err().unwrap();
        assert!(refused.contains("`[REDACTED:DB_KEY]`"), "{refused}");
    }

    #[test]
    fn everything_else_is_performed_as_it_is() {
        let redactor = redactor();
        for text in [
            "image: postgres:16",
            "DATABASE_URL=postgres://app:s3cret9@localhost/db",
            "log.info('[REDACTED]')",
            "Authorization: Bearer abcdef0123456789",
        ] {
            for (_, action) in every_action(text) {
                let cleared = ClearedAction::check(&action, &redactor).unwrap();
                assert_eq!(*cleared.action(), action);
            }
        }
    }

    #[test]
    fn a_redacted_line_that_is_written_back_is_found() {
        let redactor = Redactor::default();
        let old = b"a: 1\nurl: https://u:p4ss@host/\nmark: [REDACTED]\n";
        for (new, line) in [
            (
                &b"a: 2\nurl: https://u:p4ss@host/\nmark: [REDACTED]\n"[..],
                None,
            ),
            (b"a: 2\nurl: https://[REDACTED]@host/\n", Some(2)),
            (b"a: 2\nother: [REDACTED]\n", None),
        ] {
            assert_eq!(copied_placeholder(&redactor, old, new), line);
        }
        assert_eq!(copied_placeholder(&redactor, b"x\n", b"[REDACTED]\n"), None);
    }
}
