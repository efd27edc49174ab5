//! Splits a command line into words and operators by the quoting rules of the shell.

use std::ops::Range;

/// A word without its quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShellWord {
    pub(super) text: String,
    /// Whether the shell uses the text unchanged, without any expansion.
    pub(super) is_literal: bool,
    /// Whether any part is quoted; a quoted word is never a keyword.
    pub(super) is_quoted: bool,
    /// Whether it contains a command substitution.
    pub(super) substitutes: bool,
}

/// An operator between commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShellOperator {
    And,
    Or,
    /// `;` or the end of a line.
    Then,
    Background,
    Pipe,
    Open,
    Close,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ShellToken {
    Word(ShellWord),
    Operator(ShellOperator),
    /// A redirection, which can fail if it opens a file.
    Redirection {
        can_fail: bool,
    },
}

/// A token with its span in the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SpannedToken {
    pub(super) token: ShellToken,
    pub(super) span: Range<usize>,
}

/// Splits a command line. Returns `None` for unsupported syntax such as here documents.
pub(super) fn tokens(source: &str) -> Option<Vec<SpannedToken>> {
    let mut lexer = ShellLexer {
        source,
        position: 0,
    };
    let mut tokens: Vec<SpannedToken> = Vec::new();
    while let Some(c) = lexer.peek() {
        let start = lexer.position;
        let token = match c {
            ' ' | '\t' | '\r' => {
                lexer.skip(1);
                continue;
            }
            '\\' if lexer.rest().starts_with("\\\n") => {
                lexer.skip(2);
                continue;
            }
            '#' => {
                lexer.skip(lexer.rest().find('\n').unwrap_or(lexer.rest().len()));
                continue;
            }
            '<' | '>' => {
                // `2>file`: the number belongs to the redirection.
                let descriptor = |last: &SpannedToken| {
                    last.span.end == start
                        && matches!(&last.token, ShellToken::Word(word)
                            if !word.is_quoted && word.text.bytes().all(|b| b.is_ascii_digit()))
                };
                tokens.pop_if(|last| descriptor(last));
                lexer.redirection()?
            }
            '&' if lexer.rest().starts_with("&>") => {
                lexer.skip(1);
                lexer.redirection()?
            }
            '&' | '|' | ';' | '\n' | '(' | ')' => ShellToken::Operator(lexer.operator()?),
            _ => ShellToken::Word(lexer.word()?),
        };
        let span = start..lexer.position;
        tokens.push(SpannedToken { token, span });
    }
    Some(tokens)
}

struct ShellLexer<'s> {
    source: &'s str,
    position: usize,
}

impl<'s> ShellLexer<'s> {
    fn rest(&self) -> &'s str {
        &self.source[self.position..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn skip(&mut self, bytes: usize) {
        self.position += bytes;
    }

    fn operator(&mut self) -> Option<ShellOperator> {
        let (text, operator) = [
            ("&&", ShellOperator::And),
            ("||", ShellOperator::Or),
            ("|&", ShellOperator::Pipe),
            ("&", ShellOperator::Background),
            ("|", ShellOperator::Pipe),
            (";", ShellOperator::Then),
            ("\n", ShellOperator::Then),
            ("(", ShellOperator::Open),
            (")", ShellOperator::Close),
        ]
        .into_iter()
        .find(|(text, _)| self.rest().starts_with(text))?;
        // `;;` belongs to `case`.
        if self.rest().starts_with(";;") {
            return None;
        }
        self.skip(text.len());
        Some(operator)
    }

    /// Reads a redirection. `>/dev/null` and `2>&1` cannot fail.
    fn redirection(&mut self) -> Option<ShellToken> {
        let operator = [
            ">>", ">|", "<>", ">&", "<&", "<<<", "<<", "<(", ">(", "<", ">",
        ]
        .into_iter()
        .find(|operator| self.rest().starts_with(operator))?;
        if ["<<", "<(", ">("].contains(&operator) {
            return None;
        }
        self.skip(operator.len());
        while self.peek().is_some_and(|c| c == ' ' || c == '\t') {
            self.skip(1);
        }
        let target = self.word()?;
        let is_safe = operator == "<<<"
            || target.text == "/dev/null"
            || (operator.ends_with('&')
                && target.text.bytes().all(|b| b.is_ascii_digit() || b == b'-'));
        Some(ShellToken::Redirection { can_fail: !is_safe })
    }

    fn word(&mut self) -> Option<ShellWord> {
        let start = self.position;
        let mut word = ShellWord {
            text: String::new(),
            is_literal: true,
            is_quoted: false,
            substitutes: false,
        };
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' | '\r' | '\n' | '&' | '|' | ';' | '(' | ')' | '<' | '>' => break,
                '\'' => {
                    self.skip(1);
                    let end = self.rest().find('\'')?;
                    word.text.push_str(&self.rest()[..end]);
                    word.is_quoted = true;
                    self.skip(end + 1);
                }
                '"' => self.double_quoted(&mut word)?,
                '\\' => {
                    self.skip(1);
                    if let Some(escaped) = self.peek() {
                        self.skip(escaped.len_utf8());
                        // An escaped line break joins two lines.
                        if escaped != '\n' {
                            word.text.push(escaped);
                            word.is_quoted = true;
                        }
                    }
                }
                '$' | '`' => self.expansion(&mut word)?,
                '*' | '?' | '[' | '~' => {
                    // `[` and `[[` are commands.
                    word.is_literal &= c == '[' && ["", "["].contains(&word.text.as_str());
                    word.text.push(c);
                    self.skip(1);
                }
                _ => {
                    word.text.push(c);
                    self.skip(c.len_utf8());
                }
            }
        }
        (self.position > start).then_some(word)
    }

    fn double_quoted(&mut self, word: &mut ShellWord) -> Option<()> {
        word.is_quoted = true;
        self.skip(1);
        loop {
            match self.peek()? {
                '"' => {
                    self.skip(1);
                    return Some(());
                }
                '\\' => {
                    self.skip(1);
                    let escaped = self.peek()?;
                    if !matches!(escaped, '"' | '\\' | '$' | '`') {
                        word.text.push('\\');
                    }
                    word.text.push(escaped);
                    self.skip(escaped.len_utf8());
                }
                '$' | '`' => self.expansion(word)?,
                c => {
                    word.text.push(c);
                    self.skip(c.len_utf8());
                }
            }
        }
    }

    /// Copies an expansion verbatim.
    fn expansion(&mut self, word: &mut ShellWord) -> Option<()> {
        let rest = self.rest();
        let length = match rest.as_bytes().get(1) {
            _ if rest.starts_with('`') => rest[1..].find('`')? + 2,
            Some(b'(') => 1 + balanced(&rest[1..], '(', ')')?,
            Some(b'{') => 1 + balanced(&rest[1..], '{', '}')?,
            Some(_) | None => 1,
        };
        word.substitutes |= rest.starts_with('`') || rest.starts_with("$(");
        // A lone `$` is text.
        word.is_literal &= length == 1
            && !rest[1..]
                .starts_with(|c: char| c.is_ascii_alphanumeric() || "_?!@*#$-".contains(c));
        word.text.push_str(&rest[..length]);
        self.skip(length);
        Some(())
    }
}

/// Returns the length of the bracketed text at the start of `text`, ignoring quoted brackets.
fn balanced(text: &str, open: char, close: char) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quote = None;
    let mut characters = text.char_indices();
    while let Some((index, c)) = characters.next() {
        match (quote, c) {
            (None | Some('"'), '\\') => {
                characters.next();
            }
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, c) if c == open => depth += 1,
            (None, c) if c == close => {
                depth -= 1;
                if depth == 0 {
                    return Some(index + c.len_utf8());
                }
            }
            (Some(_) | None, _) => {}
        }
    }
    None
}
