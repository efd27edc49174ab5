//! The possible outcomes of a part of a command line, combined by the operators of the shell.

/// The set of possible outcomes of a part of a command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a set of five independent possibilities"
)]
pub(super) struct ExitPaths {
    /// Can return 0.
    pub(super) succeeds: bool,
    /// Can fail in a way that `set -e` acts on.
    pub(super) fails: bool,
    /// Can fail in a way that `set -e` ignores, as on the left of `&&`.
    pub(super) fails_quietly: bool,
    /// Can exit the shell with 0.
    pub(super) exits_with_success: bool,
    /// Can exit the shell with a nonzero code.
    pub(super) exits_with_failure: bool,
    /// The reason why it cannot fail, if one is known.
    pub(super) reason: Option<String>,
    /// Descriptions of the failures that it hides.
    pub(super) hidden_failures: Vec<String>,
}

impl ExitPaths {
    /// Returns the outcomes of an unknown command.
    pub(super) fn unknown() -> Self {
        Self {
            succeeds: true,
            fails: true,
            ..Self::default()
        }
    }

    pub(super) fn success(because: impl Into<String>) -> Self {
        Self {
            succeeds: true,
            reason: Some(because.into()),
            ..Self::default()
        }
    }

    pub(super) fn failure() -> Self {
        Self {
            fails: true,
            ..Self::default()
        }
    }

    pub(super) fn can_fail(&self) -> bool {
        self.fails || self.fails_quietly || self.exits_with_failure
    }

    /// Returns whether the next command can be reached.
    pub(super) fn returns(&self) -> bool {
        self.succeeds || self.returns_failure()
    }

    pub(super) fn returns_failure(&self) -> bool {
        self.fails || self.fails_quietly
    }

    /// Combines as `self && next`.
    pub(super) fn and(self, next: Self) -> Self {
        if !self.succeeds {
            return Self {
                fails: false,
                fails_quietly: self.returns_failure(),
                ..self
            };
        }
        let can_fail = self.can_fail();
        Self {
            succeeds: next.succeeds,
            fails: next.fails,
            fails_quietly: next.fails_quietly || self.returns_failure(),
            exits_with_success: self.exits_with_success || next.exits_with_success,
            exits_with_failure: self.exits_with_failure || next.exits_with_failure,
            reason: next.reason.or(self.reason).filter(|_| !can_fail),
            hidden_failures: [self.hidden_failures, next.hidden_failures].concat(),
        }
    }

    /// Combines as `self || next`; `text` is the source of the right side.
    pub(super) fn or(self, next: Self, text: &str) -> Self {
        if !self.returns_failure() {
            return self;
        }
        let because = if next.can_fail() {
            None
        } else {
            Some(format!("`|| {text}` turns every failure into success"))
        };
        Self {
            succeeds: self.succeeds || next.succeeds,
            fails: next.fails,
            fails_quietly: next.fails_quietly,
            exits_with_success: self.exits_with_success || next.exits_with_success,
            exits_with_failure: self.exits_with_failure || next.exits_with_failure,
            reason: because,
            hidden_failures: [self.hidden_failures, next.hidden_failures].concat(),
        }
    }

    /// Combines as `self; next`; `text` is the source of the last command.
    pub(super) fn then(self, next: Self, text: &str) -> Self {
        if !self.returns() {
            return self;
        }
        let because = if self.returns_failure() && !next.can_fail() {
            Some(format!("its last command, `{text}`, always succeeds"))
        } else {
            next.reason
        };
        // The failures of `self` count if they end the shell, as with `set -e`. Without that, they
        // are ignored anyway.
        let hidden = if self.exits_with_failure && !self.returns_failure() {
            self.hidden_failures
        } else {
            Vec::new()
        };
        Self {
            exits_with_success: self.exits_with_success || next.exits_with_success,
            exits_with_failure: self.exits_with_failure || next.exits_with_failure,
            reason: because,
            hidden_failures: [hidden, next.hidden_failures].concat(),
            ..next
        }
    }

    /// Negates as `! self`.
    pub(super) fn not(self, text: &str) -> Self {
        let because = (!self.succeeds && !self.exits_with_failure)
            .then(|| format!("`! {text}` always succeeds"));
        Self {
            succeeds: self.returns_failure(),
            fails: false,
            fails_quietly: self.succeeds,
            reason: because,
            ..self
        }
    }

    /// Wraps as `( self )`: an exit ends only the subshell.
    pub(super) fn in_subshell(self) -> Self {
        Self {
            succeeds: self.succeeds || self.exits_with_success,
            fails: self.can_fail(),
            fails_quietly: false,
            exits_with_success: false,
            exits_with_failure: false,
            ..self
        }
    }

    /// Applies `set -e` to a command that is not a condition.
    pub(super) fn or_exit(self) -> Self {
        Self {
            fails: false,
            exits_with_failure: self.exits_with_failure || self.fails,
            ..self
        }
    }

    /// Merges the outcomes of two branches.
    pub(super) fn either(self, other: Self) -> Self {
        Self {
            succeeds: self.succeeds || other.succeeds,
            fails: self.fails || other.fails,
            fails_quietly: self.fails_quietly || other.fails_quietly,
            exits_with_success: self.exits_with_success || other.exits_with_success,
            exits_with_failure: self.exits_with_failure || other.exits_with_failure,
            reason: self.reason.or(other.reason),
            hidden_failures: [self.hidden_failures, other.hidden_failures].concat(),
        }
    }
}
