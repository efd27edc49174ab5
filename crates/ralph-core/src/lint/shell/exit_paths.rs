//! How a part of a command line can end, and what the operators of the shell make of that.

/// The ways in which a part of a command line can end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a set of five independent possibilities"
)]
pub(super) struct ExitPaths {
    /// It can end with 0.
    pub(super) succeeds: bool,
    /// It can fail such that `set -e` ends the shell.
    pub(super) fails: bool,
    /// It can fail such that `set -e` takes no notice, as on the left of `&&`.
    pub(super) fails_quietly: bool,
    /// It can end the shell with 0.
    pub(super) exits_with_success: bool,
    /// It can end the shell with another code.
    pub(super) exits_with_failure: bool,
    /// Why it cannot fail, where something made it so.
    pub(super) reason: Option<String>,
    /// The failures that it hides, each as a reason.
    pub(super) hidden_failures: Vec<String>,
}

impl ExitPaths {
    /// A command about which nothing is known.
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

    /// Returns whether the command after it can be reached.
    pub(super) fn returns(&self) -> bool {
        self.succeeds || self.returns_failure()
    }

    pub(super) fn returns_failure(&self) -> bool {
        self.fails || self.fails_quietly
    }

    /// `self && next`
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

    /// `self || next`, where `text` is the right side as it is written.
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

    /// `self; next`, where `text` is the last command as it is written.
    pub(super) fn then(self, next: Self, text: &str) -> Self {
        if !self.returns() {
            return self;
        }
        let because = if self.returns_failure() && !next.can_fail() {
            Some(format!("its last command, `{text}`, always succeeds"))
        } else {
            next.reason
        };
        Self {
            exits_with_success: self.exits_with_success || next.exits_with_success,
            exits_with_failure: self.exits_with_failure || next.exits_with_failure,
            reason: because,
            ..next
        }
    }

    /// `! self`
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

    /// `( self )`: an exit ends the subshell alone.
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

    /// `self` under `set -e`, where it is not a condition.
    pub(super) fn or_exit(self) -> Self {
        Self {
            fails: false,
            exits_with_failure: self.exits_with_failure || self.fails,
            ..self
        }
    }

    /// Either of two branches.
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
