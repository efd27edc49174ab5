//! What the guest is started with.

use std::path::PathBuf;

/// How the host reaches the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// By a socket at this path, where the host listens.
    Socket(PathBuf),
    /// By the guest's own input and output.
    Stdio,
}

/// What the guest is started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestSettings {
    /// The directory that holds the repository, the home directory and so on.
    pub root: PathBuf,
    /// How the host reaches the guest.
    pub transport: Transport,
    /// A user that commands must not run as, because it means somebody outside.
    pub foreign_user: Option<u32>,
    /// How many bytes the sandbox may hold on disk.
    pub disk_limit: Option<u64>,
    /// Whether commands can write outside of the directory, which then counts as well.
    pub writable_root: bool,
    /// Whether all processes and all shared memory that the guest sees are those of its commands.
    pub own_container: bool,
}

/// Why the arguments make no sense.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum UsageError {
    /// An argument that nobody knows.
    #[error("unknown argument `{0}`")]
    Unknown(String),
    /// An argument without its value, or with one that is none.
    #[error("`{0}` needs a value")]
    MissingValue(String),
    /// Something that has to be said was not.
    #[error("`{0}` is missing")]
    Missing(&'static str),
}

impl GuestSettings {
    /// Reads `--root DIR (--socket PATH | --stdio) [--foreign-user N] [--disk-limit BYTES]
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
            let value = arguments.next().ok_or_else(missing)?;
            match name.as_str() {
                "--root" => root = Some(PathBuf::from(value)),
                "--socket" => transport = Some(Transport::Socket(value.into())),
                "--foreign-user" => {
                    foreign_user = Some(value.parse().map_err(|_| missing())?);
                }
                "--disk-limit" => disk_limit = Some(value.parse().map_err(|_| missing())?),
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
            (
                "--foreign-user x",
                UsageError::MissingValue("--foreign-user".into()),
            ),
        ] {
            assert_eq!(parse(line), Err(error), "{line}");
        }
    }
}
