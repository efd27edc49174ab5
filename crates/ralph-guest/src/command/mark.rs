//! Names of local sandboxes and marks of their commands.

use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

const NAME_BITS: u32 = 48;
const COUNT_BITS: u32 = 14;

/// The name of a sandbox: a 48-bit number, written as twelve lowercase hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SandboxName(u64);

impl SandboxName {
    /// Returns a random name that is unlikely to be in use.
    pub fn random() -> Self {
        // The standard library seeds each state from the system's randomness.
        let random = RandomState::new().build_hasher().finish();
        Self(random & ((1 << NAME_BITS) - 1))
    }

    /// Parses a name of twelve lowercase hexadecimal digits.
    pub fn parse(digits: &str) -> Option<Self> {
        let is_well_formed = digits.len() == 12
            && digits
                .bytes()
                .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        match u64::from_str_radix(digits, 16) {
            Ok(number) if is_well_formed => Some(Self(number)),
            Ok(_) | Err(_) => None,
        }
    }
}

impl fmt::Display for SandboxName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:012x}", self.0)
    }
}

/// The way the first process of a command gets its mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marking {
    /// Set on the process after it was started.
    AfterSpawn,
    /// Set by the launcher before it executes the command.
    ByLauncher,
    /// Inherited from the parent, which has set it on itself. That cannot be undone, so it is only
    /// for a parent that does nothing but start commands.
    Inherited,
}

/// The number carried by all processes of a command.
///
/// It is stored in the limit on file locks, which a child cannot lose by accident: Linux has
/// ignored this limit since version 2.4 but still inherits it through `fork`, `exec`, `setsid` and
/// a cleared environment, and shows it in `/proc/<pid>/limits`. The upper bits identify the
/// sandbox, so that leftovers of a dead ralph are found too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CommandMark(u64);

impl CommandMark {
    /// Returns the mark for the next command in a sandbox.
    pub fn next(name: SandboxName) -> Self {
        // Two processes can use the same sandbox at the same time: one that lost its run and one
        // that took it over. A random start prevents the first from killing commands of the second.
        static COUNT: LazyLock<AtomicU64> =
            LazyLock::new(|| AtomicU64::new(RandomState::new().build_hasher().finish()));
        let count = COUNT.fetch_add(1, Ordering::Relaxed) & ((1 << COUNT_BITS) - 1);
        Self(name.0 << COUNT_BITS | count)
    }

    /// Returns the mark for the next command of a process that sets it on itself: an unprivileged
    /// process can only lower its limit.
    pub fn next_lower() -> Self {
        static NEXT_LOWER: AtomicU64 = AtomicU64::new(1 << 62);
        Self(NEXT_LOWER.fetch_sub(1, Ordering::Relaxed))
    }

    /// Returns the mark as a limit value.
    pub fn limit(self) -> u64 {
        self.0
    }

    /// Returns the mark for a limit value, which may be an unrelated limit.
    #[cfg(target_os = "linux")]
    pub(super) fn from_limit(limit: u64) -> Self {
        Self(limit)
    }

    /// Returns whether it marks a command of this sandbox.
    #[cfg(target_os = "linux")]
    pub(super) fn belongs_to(self, name: SandboxName) -> bool {
        self.0 >> COUNT_BITS == name.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_round_trips_through_text() {
        let name = SandboxName::random();
        assert_eq!(SandboxName::parse(&name.to_string()), Some(name));
        assert_eq!(SandboxName(1).to_string(), "000000000001");
    }

    #[test]
    fn invalid_names_are_rejected() {
        for text in [
            "",
            "+00000000001",
            "00000000001",
            "0000000000001",
            "00000000000G",
            "0000000000AB",
            "../../../etc",
            "local-000000000001",
        ] {
            assert_eq!(SandboxName::parse(text), None, "{text:?} was accepted");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_mark_identifies_its_sandbox() {
        let name = SandboxName((1 << NAME_BITS) - 1);
        let mark = CommandMark::next(name);
        assert!(mark.belongs_to(name));
        assert!(!mark.belongs_to(SandboxName(name.0 - 1)));
        assert_ne!(mark, CommandMark::next(name));
        assert_eq!(CommandMark::from_limit(mark.limit()), mark);
        assert!(CommandMark::next_lower() > CommandMark::next_lower());
    }
}
