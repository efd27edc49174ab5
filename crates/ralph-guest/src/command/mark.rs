//! The names of local sandboxes and the marks of their commands.

use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

const NAME_BITS: u32 = 48;
const COUNT_BITS: u32 = 14;

/// The name of a sandbox: a number of 48 bits, written as twelve digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SandboxName(u64);

impl SandboxName {
    /// Makes a name that no other sandbox is likely to have.
    pub fn random() -> Self {
        // The standard library seeds each state from the system's randomness.
        let chance = RandomState::new().build_hasher().finish();
        Self(chance & ((1 << NAME_BITS) - 1))
    }

    /// Takes twelve digits; any other text is no name.
    pub fn parse(digits: &str) -> Option<Self> {
        let shaped = digits.len() == 12
            && digits
                .bytes()
                .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        match u64::from_str_radix(digits, 16) {
            Ok(number) if shaped => Some(Self(number)),
            Ok(_) | Err(_) => None,
        }
    }
}

impl fmt::Display for SandboxName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:012x}", self.0)
    }
}

/// How the first process of a command gets its mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marking {
    /// It is put on the process once that is there.
    AfterSpawn,
    /// The launcher that becomes the process puts it on itself.
    ByLauncher,
    /// The process is born with it: its parent has taken it on before. That cannot be undone, so
    /// it is for a parent that does nothing but start commands.
    Inherited,
}

/// The number that all processes of one command carry.
///
/// It is kept where a child cannot lose it by accident: in the limit of file locks, which Linux
/// has ignored since version 2.4 but still hands down through `fork`, `exec`, `setsid` and an
/// emptied environment, and shows in `/proc/<pid>/limits`. The upper bits name the sandbox, so
/// that what a dead ralph left behind is found too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CommandMark(u64);

impl CommandMark {
    /// Returns a mark for the next command in a sandbox.
    pub fn next(name: SandboxName) -> Self {
        // Two processes can have the same sandbox at the same time: one that lost its run, and the one
        // that took it over. Different first numbers keep the first from ending commands of the second.
        static COUNT: LazyLock<AtomicU64> =
            LazyLock::new(|| AtomicU64::new(RandomState::new().build_hasher().finish()));
        let count = COUNT.fetch_add(1, Ordering::Relaxed) & ((1 << COUNT_BITS) - 1);
        Self(name.0 << COUNT_BITS | count)
    }

    /// Returns a mark for the next command of a process that takes each of them on: an ordinary
    /// process can only lower its limit.
    pub fn next_lower() -> Self {
        static NEXT_LOWER: AtomicU64 = AtomicU64::new(1 << 62);
        Self(NEXT_LOWER.fetch_sub(1, Ordering::Relaxed))
    }

    /// Returns the mark as the value of the limit.
    pub fn limit(self) -> u64 {
        self.0
    }

    /// Takes the value of a limit that may be a mark.
    #[cfg(target_os = "linux")]
    pub(super) fn from_limit(limit: u64) -> Self {
        Self(limit)
    }

    /// Tells whether it marks a command of this sandbox.
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
