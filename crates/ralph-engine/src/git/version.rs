//! The version of a git program, and the oldest one that ralph works with.

use std::fmt;

/// The version of a git program, as printed by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitVersion {
    text: String,
    number: (u32, u32),
}

impl GitVersion {
    /// The oldest release that works, on the host and in sandboxes: Debian 11 has it.
    pub const OLDEST: (u32, u32) = (2, 30);

    /// Reads the output of `git --version`, such as `git version 2.39.5 (Apple Git-154)`.
    pub fn parse(output: &str) -> Option<Self> {
        let text = output.trim().strip_prefix("git version ")?;
        let text = text.split_whitespace().next()?;
        let mut parts = text.split('.');
        let mut number = || {
            let Ok(number) = parts.next()?.parse::<u32>() else {
                return None;
            };
            Some(number)
        };
        Some(Self {
            number: (number()?, number()?),
            text: text.to_owned(),
        })
    }

    /// Returns whether it is older than [`OLDEST`](Self::OLDEST).
    pub fn is_too_old(&self) -> bool {
        self.number < Self::OLDEST
    }

    /// Returns the requirement as text.
    pub fn requirement() -> String {
        let (major, minor) = Self::OLDEST;
        format!("ralph needs git {major}.{minor} or newer")
    }
}

impl fmt::Display for GitVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        for (output, shown, too_old) in [
            ("git version 2.30.0\n", "2.30.0", false),
            ("git version 2.47.3", "2.47.3", false),
            ("git version 2.39.5 (Apple Git-154)\n", "2.39.5", false),
            ("git version 3.0", "3.0", false),
            ("git version 2.50.0-rc1", "2.50.0-rc1", false),
            ("git version 2.29.3", "2.29.3", true),
            ("git version 2.9.5\n", "2.9.5", true),
            ("git version 1.8.3.1\n", "1.8.3.1", true),
        ] {
            let version = GitVersion::parse(output).unwrap();
            assert_eq!(version.to_string(), shown);
            assert_eq!(version.is_too_old(), too_old, "{output}");
        }
        for output in ["", "git version", "git version x.y", "hub version 2.14"] {
            assert_eq!(GitVersion::parse(output), None, "{output}");
        }
    }
}
