//! The commands and logs available to the user in `debug` mode.
//!
//! The user selects them by id and never sends command text: an id refers to a command of the
//! contract or to one of the run's own files.

use std::fmt;

use crate::task::Contract;

/// The id of the test command.
const TEST_ID: &str = "test";
/// Prefix of the ids of verify commands, which are numbered from 1.
const VERIFY_ID_PREFIX: &str = "verify-";
const MAX_ID_BYTES: usize = 32;

/// A log file that can be printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DebugLog {
    /// `activity.log`.
    Activity,
    /// `errors.log`.
    Errors,
    /// `test_output.txt` of the last iteration: the output of all its commands.
    TestOutput,
}

impl DebugLog {
    const ALL: [(&'static str, Self); 3] = [
        ("log-activity", Self::Activity),
        ("log-errors", Self::Errors),
        ("log-tests", Self::TestOutput),
    ];
}

/// The meaning of a debug id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DebugTarget {
    /// A command of the contract.
    Command(String),
    /// The end of a log file.
    Log(DebugLog),
}

/// The requested debug id does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownDebugId {
    pub known_ids: Vec<String>,
}

impl fmt::Display for UnknownDebugId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "unknown debug id; known ids are `{}`",
            self.known_ids.join("`, `")
        )
    }
}

/// Resolves an id against a contract.
pub fn resolve(contract: &Contract, id: &str) -> Result<DebugTarget, UnknownDebugId> {
    debug_targets(contract)
        .into_iter()
        .find(|(known, _)| known == id)
        .map(|(_, target)| target)
        .ok_or_else(|| UnknownDebugId {
            known_ids: ids(contract),
        })
}

/// Returns all ids, those of the contract first.
pub fn ids(contract: &Contract) -> Vec<String> {
    debug_targets(contract)
        .into_iter()
        .map(|(id, _)| id)
        .collect()
}

fn debug_targets(contract: &Contract) -> Vec<(String, DebugTarget)> {
    let test = contract
        .test_command
        .iter()
        .map(|command| (TEST_ID.to_owned(), command));
    let verify = (1..).zip(&contract.verify_commands);
    let verify = verify.map(|(number, command): (usize, &String)| {
        (format!("{VERIFY_ID_PREFIX}{number}"), command)
    });
    let named = contract
        .debug_commands
        .iter()
        .map(|(id, command)| (id.clone(), command));
    let commands = test
        .chain(verify)
        .chain(named)
        .map(|(id, command)| (id, DebugTarget::Command(command.clone())));
    let logs = DebugLog::ALL.map(|(id, log)| (id.to_owned(), DebugTarget::Log(log)));
    commands.chain(logs).collect()
}

/// Returns whether a task may use this id for one of its own debug commands.
pub fn is_valid_custom_id(id: &str) -> bool {
    let is_well_formed = !id.is_empty()
        && id.len() <= MAX_ID_BYTES
        && !id.starts_with('-')
        && id
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
    let is_reserved = id == TEST_ID
        || id.starts_with(VERIFY_ID_PREFIX)
        || DebugLog::ALL.iter().any(|(log, _)| *log == id);
    is_well_formed && !is_reserved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::TaskFile;

    fn contract() -> Contract {
        let text = "---\ntask_id: t\ntest_command: npm test\nverify_commands:\n  - npm run lint\n\
                    debug_commands:\n  types: npm run typecheck\n---\n# T\n- [ ] M1.1 x\n";
        TaskFile::parse(text.as_bytes()).unwrap().contract
    }

    #[test]
    fn an_id_resolves_to_the_command_of_the_contract() {
        let contract = contract();
        let command = |text: &str| Ok(DebugTarget::Command(text.into()));
        assert_eq!(resolve(&contract, "test"), command("npm test"));
        assert_eq!(resolve(&contract, "verify-1"), command("npm run lint"));
        assert_eq!(resolve(&contract, "types"), command("npm run typecheck"));
        assert_eq!(
            resolve(&contract, "log-errors"),
            Ok(DebugTarget::Log(DebugLog::Errors))
        );
        for id in [
            "", "npm test", "verify-2", "verify-0", "id", "log", "test;id", "$(id)",
        ] {
            assert_eq!(
                resolve(&contract, id).unwrap_err().known_ids,
                [
                    "test",
                    "verify-1",
                    "types",
                    "log-activity",
                    "log-errors",
                    "log-tests"
                ],
                "{id}"
            );
        }
    }

    #[test]
    fn custom_ids_are_short_plain_and_not_reserved() {
        for id in ["types", "a-1", &"x".repeat(32)] {
            assert!(is_valid_custom_id(id), "{id}");
        }
        for id in [
            "",
            "-a",
            "A",
            "a b",
            "test",
            "verify-9",
            "log-errors",
            "é",
            &"x".repeat(33),
        ] {
            assert!(!is_valid_custom_id(id), "{id}");
        }
    }
}
