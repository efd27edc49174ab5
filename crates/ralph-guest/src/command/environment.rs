//! The environment of a command: fixed, and independent of the caller's.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::mark::{CommandMark, SandboxName};

/// The directory used as `$HOME`.
pub const HOME: &str = "home";
/// The directory used as `$TMPDIR`.
pub const TMP: &str = "tmp";

/// The directory of the package managers' caches.
pub const CACHE: &str = "cache";
/// The variables of package managers with the locations of their caches.
const CACHES: [(&str, &str); 5] = [
    ("npm_config_cache", "npm"),
    ("PIP_CACHE_DIR", "pip"),
    ("CARGO_HOME", "cargo"),
    ("GOMODCACHE", "go/mod"),
    ("GOCACHE", "go/build"),
];

const SANDBOX_VARIABLE: &str = "RALPH_SANDBOX";
const COMMAND_VARIABLE: &str = "RALPH_COMMAND";

/// Returns the `NAME=value` that identifies the processes of a sandbox.
#[cfg(target_os = "linux")]
pub(super) fn sandbox_variable(name: SandboxName) -> String {
    format!("{SANDBOX_VARIABLE}={name}")
}

/// Returns the `NAME=value` that identifies the processes of a command.
#[cfg(target_os = "linux")]
pub(super) fn command_variable(mark: CommandMark) -> String {
    format!("{COMMAND_VARIABLE}={}", mark.limit())
}

/// Returns the complete environment of a command; later maps override earlier ones.
pub fn command_environment(
    search_path: &OsStr,
    directory: &Path,
    (name, mark): (SandboxName, CommandMark),
    extra: [&BTreeMap<String, String>; 3],
) -> BTreeMap<OsString, OsString> {
    let mut variables: BTreeMap<OsString, OsString> = BTreeMap::new();
    let mut set = |variable: &str, value: &OsStr| variables.insert(variable.into(), value.into());
    set("PATH", search_path);
    set("HOME", directory.join(HOME).as_os_str());
    set("TMPDIR", directory.join(TMP).as_os_str());
    // Git must not find a repository above the sandboxes, even if the agent's own is gone.
    set("GIT_CEILING_DIRECTORIES", directory.as_os_str());
    // Outside `$HOME`, which is new for each agent session. Values of the image or the host precede.
    for (variable, name) in CACHES {
        set(variable, directory.join(CACHE).join(name).as_os_str());
    }
    for (variable, value) in [
        ("LANG", "C.UTF-8"),
        ("USER", "agent"),
        ("LOGNAME", "agent"),
        ("TERM", "dumb"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_TERMINAL_PROMPT", "0"),
    ] {
        set(variable, value.as_ref());
    }
    for (variable, value) in extra.into_iter().flatten() {
        set(variable, value.as_ref());
    }
    // Set last, because leftover processes are found by these variables.
    set(SANDBOX_VARIABLE, name.to_string().as_ref());
    set(COMMAND_VARIABLE, mark.limit().to_string().as_ref());
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_gets_exactly_this_environment() {
        let name = SandboxName::parse("000000000001").unwrap();
        let mark = CommandMark::next(name);
        let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs
                .iter()
                .map(|(n, v)| ((*n).into(), (*v).into()))
                .collect()
        };
        let variables = command_environment(
            "/bin".as_ref(),
            "/s/local-000000000001".as_ref(),
            (name, mark),
            [
                &map(&[("A", "host")]),
                &map(&[("A", "sandbox"), ("B", "sandbox"), ("RALPH_SANDBOX", "x")]),
                &map(&[("B", "command"), ("LANG", "de_DE.UTF-8")]),
            ],
        );
        let text = variables
            .iter()
            .map(|(n, v)| format!("{}={}", n.display(), v.display()))
            .collect::<Vec<_>>();
        let command = format!("RALPH_COMMAND={}", mark.limit());
        assert_eq!(
            text,
            [
                "A=sandbox",
                "B=command",
                "CARGO_HOME=/s/local-000000000001/cache/cargo",
                "GIT_CEILING_DIRECTORIES=/s/local-000000000001",
                "GIT_CONFIG_NOSYSTEM=1",
                "GIT_TERMINAL_PROMPT=0",
                "GOCACHE=/s/local-000000000001/cache/go/build",
                "GOMODCACHE=/s/local-000000000001/cache/go/mod",
                "HOME=/s/local-000000000001/home",
                "LANG=de_DE.UTF-8",
                "LOGNAME=agent",
                "PATH=/bin",
                "PIP_CACHE_DIR=/s/local-000000000001/cache/pip",
                command.as_str(),
                "RALPH_SANDBOX=000000000001",
                "TERM=dumb",
                "TMPDIR=/s/local-000000000001/tmp",
                "USER=agent",
                "npm_config_cache=/s/local-000000000001/cache/npm",
            ]
        );
    }
}
