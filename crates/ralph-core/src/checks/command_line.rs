//! Splits a shell command line into simple commands, without interpreting ambiguous constructs.

/// One simple command of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimpleCommand {
    /// The working directory after any preceding `cd`, relative to the repository root (empty). The
    /// `cd` of a subshell also counts for the commands after it. An absolute `cd` counts as one to
    /// the root: where the repository is in the sandbox is unknown here.
    pub directory: String,
    /// The program and its arguments, without quotes, assignments and redirections.
    pub words: Vec<String>,
    /// Whether neither input nor output is piped or redirected, so the output reaches the caller.
    pub is_plain: bool,
}

/// Programs that run the command in their arguments.
const WRAPPERS: &[&str] = &[
    "env", "time", "nice", "nohup", "exec", "command", "sudo", "stdbuf", "xvfb-run", "npx", "bunx",
    "timeout", "unbuffer",
];
/// Program and subcommand pairs that run the command in the remaining arguments.
const RUN_WRAPPERS: &[(&str, &str)] = &[
    ("poetry", "run"),
    ("uv", "run"),
    ("pipenv", "run"),
    ("pdm", "run"),
    ("hatch", "run"),
    ("bundle", "exec"),
    ("npm", "exec"),
    ("pnpm", "exec"),
    ("yarn", "exec"),
];

impl SimpleCommand {
    /// Splits a command line. Substitutions stay part of their words. Leading keywords such as `if`
    /// and `do` are dropped; other control structures, such as `for`, are treated as programs.
    pub fn split(line: &str) -> Vec<Self> {
        let mut commands = Vec::new();
        let mut directory = String::new();
        let mut current = CommandDraft::default();
        for token in &tokens(line) {
            match token {
                CommandToken::Word(word) => current.add(word),
                CommandToken::Redirection => current.redirect(),
                CommandToken::Separator(separator) => {
                    let into_pipe = *separator == "|";
                    finish_command(&mut current, into_pipe, &mut directory, &mut commands);
                    current.from_pipe = into_pipe;
                }
            }
        }
        finish_command(&mut current, false, &mut directory, &mut commands);
        commands
    }

    /// Returns the program name without its directory.
    pub fn program(&self) -> &str {
        let program = self.words.first().map_or("", String::as_str);
        program.rsplit('/').next().unwrap_or_default()
    }

    /// Resolves a path in the command against the repository; `None` if it is outside.
    pub fn repository_path(&self, path: &str) -> Option<String> {
        if path.starts_with(['/', '~', '$']) {
            return None;
        }
        join(&self.directory, path)
    }
}

/// Joins two relative paths; `None` if the result is outside the repository.
pub(super) fn join(directory: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = directory
        .split('/')
        .filter(|part| !part.is_empty())
        .collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn finish_command(
    current: &mut CommandDraft,
    into_pipe: bool,
    directory: &mut String,
    commands: &mut Vec<SimpleCommand>,
) {
    let draft = std::mem::take(current);
    let mut words = draft.words;
    strip_wrappers(&mut words);
    if words.is_empty() {
        return;
    }
    if words[0] == "cd" {
        let target = words.get(1).and_then(|target| {
            if target.starts_with(['/', '~']) {
                Some(String::new())
            } else {
                join(directory, target)
            }
        });
        if let Some(target) = target {
            *directory = target;
        }
        return;
    }
    commands.push(SimpleCommand {
        directory: directory.clone(),
        words,
        is_plain: !into_pipe && !draft.from_pipe && !draft.is_redirected,
    });
}

/// Removes leading keywords, assignments and wrapper programs.
fn strip_wrappers(words: &mut Vec<String>) {
    const KEYWORDS: &[&str] = &[
        "!", "{", "}", "(", ")", "if", "then", "else", "elif", "fi", "do", "done", "while",
    ];
    loop {
        let Some(first) = words.first().map(String::as_str) else {
            return;
        };
        let second = words.get(1).map(String::as_str);
        if KEYWORDS.contains(&first) || is_assignment(first) {
            words.remove(0);
        } else if WRAPPERS.contains(&first) {
            words.remove(0);
            // Options and the duration argument of the wrapper.
            while words.first().is_some_and(|word| {
                word.starts_with('-') || word.chars().next().is_some_and(|c| c.is_ascii_digit())
            }) {
                words.remove(0);
            }
        } else if second.is_some_and(|second| RUN_WRAPPERS.contains(&(first, second))) {
            words.drain(..2);
            while words.first().is_some_and(|word| word.starts_with('-')) {
                words.remove(0);
            }
        } else {
            return;
        }
    }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// A simple command that is being parsed.
#[derive(Default)]
struct CommandDraft {
    words: Vec<String>,
    from_pipe: bool,
    is_redirected: bool,
    skip_next: bool,
}

impl CommandDraft {
    fn add(&mut self, word: &str) {
        if std::mem::take(&mut self.skip_next) {
            return;
        }
        self.words.push(word.to_owned());
    }

    fn redirect(&mut self) {
        self.is_redirected = true;
        self.skip_next = true;
    }
}

enum CommandToken {
    Word(String),
    Separator(&'static str),
    Redirection,
}

fn tokens(line: &str) -> Vec<CommandToken> {
    let mut tokens = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let separator = match c {
            ';' | '\n' => Some(";"),
            '&' if chars.peek() == Some(&'>') => None,
            '&' => Some(if chars.next_if_eq(&'&').is_some() {
                "&&"
            } else {
                "&"
            }),
            '|' => Some(if chars.next_if_eq(&'|').is_some() {
                "||"
            } else {
                "|"
            }),
            // A subshell is read like a sequence; a parenthesis in a word is a substitution.
            '(' if word.is_none() => Some(";"),
            ')' if word.as_ref().is_none_or(|word| !word.contains('(')) => Some(";"),
            _ => None,
        };
        if let Some(separator) = separator {
            tokens.extend(word.take().map(CommandToken::Word));
            tokens.push(CommandToken::Separator(separator));
            continue;
        }
        match c {
            c if c.is_whitespace() => tokens.extend(word.take().map(CommandToken::Word)),
            '#' if word.is_none() => while chars.next_if(|c| *c != '\n').is_some() {},
            '>' | '<' => {
                // A number before a redirection is a file descriptor, not an argument.
                word = word.filter(|word| !word.chars().all(|c| c.is_ascii_digit()));
                tokens.extend(word.take().map(CommandToken::Word));
                while chars
                    .next_if(|c| matches!(c, '>' | '<' | '&' | '|'))
                    .is_some()
                {}
                tokens.push(CommandToken::Redirection);
            }
            '\'' => read_quoted(&mut chars, '\'', word.get_or_insert_default()),
            '"' => read_quoted(&mut chars, '"', word.get_or_insert_default()),
            '\\' => word.get_or_insert_default().extend(chars.next()),
            '&' => {}
            c => word.get_or_insert_default().push(c),
        }
    }
    tokens.extend(word.map(CommandToken::Word));
    tokens
}

fn read_quoted(chars: &mut impl Iterator<Item = char>, quote: char, word: &mut String) {
    while let Some(c) = chars.next() {
        match c {
            c if c == quote => return,
            '\\' if quote == '"' => word.extend(chars.next()),
            c => word.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        let commands = SimpleCommand::split(line);
        commands
            .iter()
            .map(|command| {
                let plain = if command.is_plain { "" } else { " (piped)" };
                format!("{}>{}{plain}", command.directory, command.words.join("|"))
            })
            .collect()
    }

    #[test]
    fn splits_a_line_into_commands() {
        for (line, expected) in [
            ("pytest -q tests", vec![">pytest|-q|tests"]),
            ("cd sub && ./run.sh 'a b'", vec!["sub>./run.sh|a b"]),
            ("FOO=1 timeout -k 5 60s npm test", vec![">npm|test"]),
            (
                "make test | tee log; echo done",
                vec![">make|test (piped)", ">tee|log (piped)", ">echo|done"],
            ),
            (
                "sh x.sh > out 2>&1 && cat out",
                vec![">sh|x.sh (piped)", ">cat|out"],
            ),
            ("poetry run python -m pytest", vec![">python|-m|pytest"]),
            (
                "(cd a/b; go test ./...) || exit 1",
                vec!["a/b>go|test|./...", "a/b>exit|1"],
            ),
            ("cd sub; cd /work/repo; sh a.sh", vec![">sh|a.sh"]),
            ("sh a.sh # comment; rm x", vec![">sh|a.sh"]),
            ("if ! sh a.sh; then exit 1; fi", vec![">sh|a.sh", ">exit|1"]),
            ("env -i X=1 sh \"it's\"", vec![">sh|it's"]),
            ("", vec![]),
            ("#", vec![]),
        ] {
            assert_eq!(words(line), expected, "{line}");
        }
    }

    #[test]
    fn paths_outside_the_repository_are_rejected() {
        let command = &SimpleCommand::split("cd a && sh x")[0];
        assert_eq!(command.repository_path("../b/./c").as_deref(), Some("b/c"));
        for outside in ["../../x", "/etc/x", "$HOME/x", "~/x"] {
            assert_eq!(command.repository_path(outside), None, "{outside}");
        }
    }
}
