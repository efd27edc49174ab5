//! Parses a command line and computes its possible outcomes.

use super::exit_paths::ExitPaths;
use super::known_commands::{self, FILTERS};
use super::lexer::{ShellOperator, ShellToken, ShellWord, SpannedToken, tokens};

/// Longer command lines are not analysed.
const MAX_BYTES: usize = 16 << 10;
/// More deeply nested commands are not analysed.
const MAX_DEPTH: usize = 12;

/// The shell options that change the effect of a failure.
#[derive(Debug, Clone, Default)]
pub(super) struct ShellOptions {
    errexit: bool,
    pipefail: bool,
    /// Whether a trap on `EXIT` ends the shell with 0.
    trap_exits_zero: bool,
}

impl ShellOptions {
    /// Applies the arguments of `set`, or the flags of a shell.
    pub(super) fn apply_arguments(&mut self, arguments: &[ShellWord]) {
        let mut arguments = arguments.iter();
        while let Some(word) = arguments.next() {
            let on = word.text.starts_with('-');
            let Some(flags) = word.text.strip_prefix(['-', '+']) else {
                return;
            };
            if flags.contains('e') {
                self.errexit = on;
            }
            if flags.contains('o')
                && let Some(name) = arguments.next()
            {
                self.apply_named(&name.text, on);
            }
        }
    }

    /// Applies an option by its long name.
    pub(super) fn apply_named(&mut self, name: &str, on: bool) {
        match name {
            "errexit" => self.errexit = on,
            "pipefail" => self.pipefail = on,
            _ => {}
        }
    }

    /// Applies the arguments of `trap`.
    pub(super) fn apply_trap(&mut self, arguments: &[ShellWord], depth: usize) {
        let [script, signals @ ..] = arguments else {
            return;
        };
        if signals
            .iter()
            .any(|word| word.text == "EXIT" || word.text == "0")
        {
            let paths = evaluate(&script.text, Self::default(), depth);
            self.trap_exits_zero = paths.is_some_and(|paths| {
                paths.exits_with_success && !paths.exits_with_failure && !paths.returns()
            });
        }
    }
}

/// Returns the possible outcomes of a script; `None` if its syntax is not supported.
pub(super) fn evaluate(source: &str, options: ShellOptions, depth: usize) -> Option<ExitPaths> {
    if source.len() > MAX_BYTES || depth > MAX_DEPTH {
        return None;
    }
    let mut parser = ShellParser {
        source,
        tokens: tokens(source)?,
        position: 0,
        options,
        depth,
        in_condition: false,
    };
    let paths = parser.list(&[])?;
    if parser.position < parser.tokens.len() {
        return None;
    }
    if parser.options.trap_exits_zero {
        return Some(ExitPaths::success(
            "its trap on EXIT replaces the exit code with 0",
        ));
    }
    Some(paths)
}

struct ShellParser<'s> {
    source: &'s str,
    tokens: Vec<SpannedToken>,
    position: usize,
    options: ShellOptions,
    depth: usize,
    /// Whether `set -e` ignores failures here.
    in_condition: bool,
}

impl ShellParser<'_> {
    fn operator(&self) -> Option<ShellOperator> {
        match self.tokens.get(self.position).map(|spanned| &spanned.token) {
            Some(ShellToken::Operator(operator)) => Some(*operator),
            Some(ShellToken::Word(_) | ShellToken::Redirection { .. }) | None => None,
        }
    }

    /// Returns the next word if it is unquoted and thus may be a keyword.
    fn keyword(&self) -> Option<&str> {
        match self.tokens.get(self.position).map(|spanned| &spanned.token) {
            Some(ShellToken::Word(word)) if !word.is_quoted => Some(&word.text),
            Some(
                ShellToken::Word(_) | ShellToken::Operator(_) | ShellToken::Redirection { .. },
            )
            | None => None,
        }
    }

    fn accept(&mut self, operator: ShellOperator) -> bool {
        let found = self.operator() == Some(operator);
        self.position += usize::from(found);
        found
    }

    fn accept_keyword(&mut self, word: &str) -> bool {
        let found = self.keyword() == Some(word);
        self.position += usize::from(found);
        found
    }

    /// Returns the source from the token `first` to the last consumed one, on one line.
    fn text_since(&self, first: usize) -> String {
        let start = self.tokens.get(first).map(|spanned| spanned.span.start);
        let end = self
            .position
            .checked_sub(1)
            .and_then(|last| self.tokens.get(last));
        let end = end.map(|spanned| spanned.span.end);
        let text = start
            .zip(end)
            .and_then(|(start, end)| self.source.get(start..end));
        crate::lint::excerpt(text.unwrap_or_default())
    }

    /// Parses commands up to one of the keywords, a closing bracket or the end.
    fn list(&mut self, until: &[&str]) -> Option<ExitPaths> {
        let mut paths: Option<ExitPaths> = None;
        loop {
            while self.accept(ShellOperator::Then) {}
            let at_keyword = self.keyword().is_some_and(|word| until.contains(&word));
            if at_keyword
                || self.position >= self.tokens.len()
                || self.operator() == Some(ShellOperator::Close)
            {
                return Some(paths.unwrap_or_else(|| ExitPaths::success("it runs no command")));
            }
            let first = self.position;
            let mut next = self.and_or()?;
            let text = self.text_since(first);
            if self.accept(ShellOperator::Background) {
                next = ExitPaths::success(format!(
                    "`{text} &` runs in the background, so its exit code is ignored"
                ));
            }
            if self.options.errexit && !self.in_condition {
                next = next.or_exit();
            }
            paths = Some(match paths {
                Some(before) => before.then(next, &text),
                None => next,
            });
        }
    }

    fn and_or(&mut self) -> Option<ExitPaths> {
        let mut paths = self.pipeline()?;
        loop {
            let is_and = if self.accept(ShellOperator::And) {
                true
            } else if self.accept(ShellOperator::Or) {
                false
            } else {
                return Some(paths);
            };
            while self.accept(ShellOperator::Then) {}
            let first = self.position;
            let next = self.pipeline()?;
            let text = self.text_since(first);
            paths = if is_and {
                paths.and(next)
            } else {
                paths.or(next, &text)
            };
        }
    }

    fn pipeline(&mut self) -> Option<ExitPaths> {
        let negated = self.accept_keyword("!");
        let first = self.position;
        let mut paths = self.command()?;
        if self.operator() == Some(ShellOperator::Pipe) {
            paths = self.pipe(first, paths)?;
        }
        let text = self.text_since(first);
        Some(if negated { paths.not(&text) } else { paths })
    }

    /// Parses the rest of a pipe. Without `pipefail`, its exit code is that of the last command.
    fn pipe(&mut self, first: usize, start: ExitPaths) -> Option<ExitPaths> {
        let source = self.text_since(first);
        let mut before = start.in_subshell();
        let mut last = first;
        let mut paths = ExitPaths::unknown();
        while self.accept(ShellOperator::Pipe) {
            while self.accept(ShellOperator::Then) {}
            last = self.position;
            paths = self.command()?.in_subshell();
            if self.operator() == Some(ShellOperator::Pipe) {
                before = before.either(paths.clone());
            }
        }
        if self.options.pipefail {
            let fails = before.can_fail() || paths.can_fail();
            return Some(ExitPaths {
                fails,
                reason: paths.reason.filter(|_| !fails),
                ..paths
            });
        }
        let last_token = self.tokens.get(last).map(|spanned| &spanned.token);
        if let Some(ShellToken::Word(word)) = last_token
            && FILTERS.contains(&word.text.as_str())
            && before.can_fail()
        {
            paths.hidden_failures.push(format!(
                "the exit code of a pipe is that of its last command, `{}`; `{source}` can fail unnoticed",
                word.text
            ));
        }
        if before.can_fail() && !paths.can_fail() {
            let text = self.text_since(last);
            paths.reason = Some(format!("`| {text}` replaces its exit code with 0"));
        }
        Some(paths)
    }

    fn command(&mut self) -> Option<ExitPaths> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let paths = self.compound();
        self.depth -= 1;
        paths
    }

    fn compound(&mut self) -> Option<ExitPaths> {
        if self.accept(ShellOperator::Open) {
            let outer = self.options.clone();
            let paths = self.list(&[])?.in_subshell();
            self.options = outer;
            return (self.accept(ShellOperator::Close) && self.redirections()).then_some(paths);
        }
        match self.keyword() {
            Some("{") => {
                self.position += 1;
                let paths = self.list(&["}"])?;
                (self.accept_keyword("}") && self.redirections()).then_some(paths)
            }
            Some("if") => {
                self.position += 1;
                let paths = self.branches()?;
                self.redirections().then_some(paths)
            }
            Some("for") => self.for_loop(),
            // Not analysed and thus accepted. A loop that waits for a condition can fail by timeout.
            Some("while" | "until" | "case" | "function" | "select" | "coproc" | "((") => None,
            Some(_) | None => self.simple(),
        }
    }

    /// Skips redirections of a compound command.
    fn redirections(&mut self) -> bool {
        while matches!(
            self.tokens.get(self.position).map(|spanned| &spanned.token),
            Some(ShellToken::Redirection { .. })
        ) {
            self.position += 1;
        }
        true
    }

    /// Parses the condition and branches after `if` or `elif`.
    fn branches(&mut self) -> Option<ExitPaths> {
        let outer = std::mem::replace(&mut self.in_condition, true);
        let condition = self.list(&["then"])?;
        self.in_condition = outer;
        if !self.accept_keyword("then") {
            return None;
        }
        let body = self.list(&["elif", "else", "fi"])?;
        let otherwise = if self.accept_keyword("elif") {
            self.branches()?
        } else if self.accept_keyword("else") {
            let paths = self.list(&["fi"])?;
            if !self.accept_keyword("fi") {
                return None;
            }
            paths
        } else if self.accept_keyword("fi") {
            ExitPaths::success("`if` without `else` succeeds if its condition fails")
        } else {
            return None;
        };
        let mut paths = ExitPaths {
            exits_with_success: condition.exits_with_success,
            exits_with_failure: condition.exits_with_failure,
            ..ExitPaths::default()
        };
        if condition.returns_failure() {
            paths = paths.either(otherwise);
        }
        if condition.succeeds {
            paths = paths.either(body);
        }
        Some(paths)
    }

    /// Parses `for NAME in WORDS; do …; done`. Without `set -e`, only its last iteration decides.
    fn for_loop(&mut self) -> Option<ExitPaths> {
        let first = self.position;
        while self.keyword() != Some("do") {
            let is_separator = self
                .operator()
                .is_none_or(|operator| operator == ShellOperator::Then);
            if self.position >= self.tokens.len() || !is_separator {
                return None;
            }
            self.position += 1;
        }
        self.position += 1;
        let body = self.list(&["done"])?;
        if !self.accept_keyword("done") {
            return None;
        }
        let text = self.text_since(first);
        let hides = body.returns_failure();
        let mut paths = body.either(ExitPaths::success("a loop over nothing succeeds"));
        if hides {
            paths.hidden_failures.push(format!(
                "only the last iteration of `{text}` determines the exit code"
            ));
        }
        self.redirections().then_some(paths)
    }

    fn simple(&mut self) -> Option<ExitPaths> {
        let mut words = Vec::new();
        let mut may_fail = false;
        let is_expression = self.keyword() == Some("[[");
        while let Some(spanned) = self.tokens.get(self.position) {
            match &spanned.token {
                ShellToken::Word(word) => {
                    let closes = is_expression && word.text == "]]";
                    words.push(word.clone());
                    self.position += 1;
                    if closes {
                        break;
                    }
                }
                ShellToken::Redirection { can_fail } => {
                    may_fail |= can_fail;
                    self.position += 1;
                }
                // Operators of an expression; its value is not computed.
                ShellToken::Operator(_) if is_expression => {
                    may_fail = true;
                    self.position += 1;
                }
                // A function definition.
                ShellToken::Operator(ShellOperator::Open) => return None,
                ShellToken::Operator(_) => break,
            }
        }
        if words.is_empty() {
            return may_fail.then(ExitPaths::unknown);
        }
        let mut paths = known_commands::simple_command_paths(&words, &mut self.options, self.depth);
        // The command fails if the file cannot be opened.
        if may_fail && !paths.can_fail() {
            paths = ExitPaths::unknown();
        }
        Some(paths)
    }
}
