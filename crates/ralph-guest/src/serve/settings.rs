//! The arguments of the guest.

use std::path::PathBuf;

/// The connection between host and guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// A socket at this path, on which the host listens.
    Socket(PathBuf),
    /// The guest's standard input and output.
    Stdio,
}

/// The settings of the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestSettings {
    /// The directory that contains the repository, the home directory and so on.
    pub root: PathBuf,
    pub transport: Transport,
    /// A user ID that commands must not use, because it belongs to a user of the host.
    pub foreign_user: Option<u32>,
    /// In bytes.
    pub disk_limit: Option<u64>,
    /// Whether commands can write outside the directory, which then counts as well.
    pub writable_root: bool,
    /// Whether all visible processes and shared memory belong to commands of the guest.
    pub own_container: bool,
}

/// An error in the arguments.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum UsageError {
    /// An unknown argument.
    #[error("unknown argument `{0}`")]
    Unknown(String),
    /// An argument with a missing or invalid value.
    #[error("`{0}` needs a valid value")]
    MissingValue(String),
    /// A required argument is missing.
    #[error("`{0}` is missing")]
    Missing(&'static str),
}

impl GuestSettings {
    /// Parses `--root DIR (--socket PATH | --stdio) [--foreign-user N] [--disk-limit BYTES]
    /// [--writable-root] [--own-container]`.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, UsageError> {
        let mut arguments = arguments.into_iter();
        let (mut root, mut transport) = (None, None);
        let (mut foreign_user, mut disk_limit) = (None, None);
        let (mut writable_root, mut own_container) = (false, false);
        while let Some(name) = arguments.next() {
            let flag = match name.as_str() {
                "--stdio" => {
                    transport = Some(Transport::Stdio);
                    continue;
                }
                "--writable-root" => Some(&mut writable_root),
                "--own-container" => Some(&mut own_container),
                _ => None,
            };
            if let Some(flag) = flag {
                *flag = true;
                continue;
            }
            let missing = || UsageError::MissingValue(name.clone());
            let mut value = || arguments.next().ok_or_else(missing);
            match name.as_str() {
                "--root" => root = Some(PathBuf::from(value()?)),
                "--socket" => transport = Some(Transport::Socket(value()?.into())),
                "--foreign-user" => {
                    foreign_user = Some(value()?.parse().map_err(|_| missing())?);
                }
                "--disk-limit" => disk_limit = Some(value()?.parse().map_err(|_| missing())?),
                _ => return Err(UsageError::Unknown(name)),
            }
        }
        Ok(Self {
            root: root.ok_or(UsageError::Missing("--root"))?,
            transport: transport.ok_or(UsageError::Missing("--socket"))?,
            foreign_user,
            disk_limit,
            writable_root,
            own_container,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<GuestSettings, UsageError> {
        GuestSettings::parse(line.split_whitespace().map(Into::into))
    }

    #[test]
    fn arguments_become_settings() {
        let line = "--root /w --socket /s --writable-root --foreign-user 1000 --disk-limit 9 --own-container";
        let full = GuestSettings {
            root: "/w".into(),
            transport: Transport::Socket("/s".into()),
            foreign_user: Some(1000),
            disk_limit: Some(9),
            writable_root: true,
            own_container: true,
        };
        assert_eq!(parse(line), Ok(full.clone()));
        assert_eq!(
            parse("--stdio --root /w"),
            Ok(GuestSettings {
                transport: Transport::Stdio,
                foreign_user: None,
                disk_limit: None,
                writable_root: false,
                own_container: false,
                ..full
            })
        );
    }

    #[test]
    fn invalid_arguments_are_named() {
        for (line, error) in [
            ("--root", UsageError::MissingValue("--root".into())),
            ("--stdio", UsageError::Missing("--root")),
            ("--root /w", UsageError::Missing("--socket")),
            ("--what x", UsageError::Unknown("--what".into())),
            ("--root /w --what", UsageError::Unknown("--what".into())),
            (
                "--foreign-user x",
                UsageError::MissingValue("--foreign-user".into()),
            ),
        ] {
            assert_eq!(parse(line), Err(error), "{line}");
        }
    }
}
