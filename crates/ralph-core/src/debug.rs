//! What a person may start in the mode `debug`: ids, never texts. What an id stands for is written
//! in the contract, or it is a file that the run has anyway.

use std::fmt;

use crate::task::Contract;

/// The id of the test command.
const TEST_ID: &str = "test";
/// What the ids of the verify commands start with; the first is 1.
const VERIFY_ID_PREFIX: &str = "verify-";
/// The longest id.
const MAX_ID_BYTES: usize = 32;

/// A file that can be printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DebugLog {
    /// `activity.log`.
    Activity,
    /// `errors.log`.
    Errors,
    /// `test_output.txt` of the last iteration.
    TestOutput,
}

impl DebugLog {
    const ALL: [(&'static str, Self); 3] = [
        ("log-activity", Self::Activity),
        ("log-errors", Self::Errors),
        ("log-tests", Self::TestOutput),
    ];
}

/// What an id stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DebugTarget {
    /// A command of the contract.
    Command(String),
    /// The end of a file.
    Log(DebugLog),
}

/// There is no such id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownDebugId {
    /// The ids there are.
    pub known_ids: Vec<String>,
}

impl fmt::Display for UnknownDebugId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "there is no such id; there are `{}`",
            self.known_ids.join("`, `")
        )
    }
}

/// Returns what an id stands for in a contract.
pub fn resolve(contract: &Contract, id: &str) -> Result<DebugTarget, UnknownDebugId> {
    debug_targets(contract)
        .into_iter()
        .find(|(known, _)| known == id)
        .map(|(_, meaning)| meaning)
        .ok_or_else(|| UnknownDebugId {
            known_ids: ids(contract),
        })
}

/// Returns every id of a contract.
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

/// Tells whether a task may give a command this id.
pub fn is_valid_custom_id(id: &str) -> bool {
    let is_well_formed = !id.is_empty()
        && id.len() <= MAX_ID_BYTES
        && !id.starts_with('-')
        && id
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
    let is_taken = id == TEST_ID
        || id.starts_with(VERIFY_ID_PREFIX)
        || DebugLog::ALL.iter().any(|(log, _)| *log == id);
    is_well_formed && !is_taken
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
