//! What a person may start in the mode `debug`: ids, never texts. What an id stands for is written
//! in the contract, or it is a file that the run has anyway.

use std::fmt;

use crate::task::Contract;

/// The id of the test command.
const TEST: &str = "test";
/// What the ids of the verify commands start with; the first is 1.
const VERIFY: &str = "verify-";
/// The longest id.
const MAX_ID: usize = 32;

/// A file that can be printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Log {
    /// `activity.log`.
    Activity,
    /// `errors.log`.
    Errors,
    /// `test_output.txt` of the last iteration.
    TestOutput,
}

impl Log {
    const ALL: [(&'static str, Self); 3] = [
        ("log-activity", Self::Activity),
        ("log-errors", Self::Errors),
        ("log-tests", Self::TestOutput),
    ];
}

/// What an id stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    /// A command of the contract.
    Command(String),
    /// The end of a file.
    Log(Log),
}

/// There is no such id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// The ids there are.
    pub known: Vec<String>,
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "there is no such id; there are `{}`",
            self.known.join("`, `")
        )
    }
}

/// Returns what an id stands for in a contract.
pub fn resolve(contract: &Contract, id: &str) -> Result<Known, Unknown> {
    all(contract)
        .into_iter()
        .find(|(known, _)| known == id)
        .map(|(_, meaning)| meaning)
        .ok_or_else(|| Unknown {
            known: ids(contract),
        })
}

/// Returns every id of a contract.
pub fn ids(contract: &Contract) -> Vec<String> {
    all(contract).into_iter().map(|(id, _)| id).collect()
}

fn all(contract: &Contract) -> Vec<(String, Known)> {
    let test = contract
        .test_command
        .iter()
        .map(|command| (TEST.to_owned(), command));
    let verify = (1..).zip(&contract.verify_commands);
    let verify =
        verify.map(|(number, command): (usize, &String)| (format!("{VERIFY}{number}"), command));
    let named = contract
        .debug_commands
        .iter()
        .map(|(id, command)| (id.clone(), command));
    let commands = test
        .chain(verify)
        .chain(named)
        .map(|(id, command)| (id, Known::Command(command.clone())));
    let logs = Log::ALL.map(|(id, log)| (id.to_owned(), Known::Log(log)));
    commands.chain(logs).collect()
}

/// Tells whether a task may give a command this id.
pub fn is_free_id(id: &str) -> bool {
    let is_well_formed = !id.is_empty()
        && id.len() <= MAX_ID
        && !id.starts_with('-')
        && id
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
    let is_taken =
        id == TEST || id.starts_with(VERIFY) || Log::ALL.iter().any(|(log, _)| *log == id);
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
    fn an_id_is_what_the_contract_says() {
        let contract = contract();
        let command = |text: &str| Ok(Known::Command(text.into()));
        assert_eq!(resolve(&contract, "test"), command("npm test"));
        assert_eq!(resolve(&contract, "verify-1"), command("npm run lint"));
        assert_eq!(resolve(&contract, "types"), command("npm run typecheck"));
        assert_eq!(
            resolve(&contract, "log-errors"),
            Ok(Known::Log(Log::Errors))
        );
        for id in [
            "", "npm test", "verify-2", "verify-0", "id", "log", "test;id", "$(id)",
        ] {
            assert_eq!(
                resolve(&contract, id).unwrap_err().known,
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
    fn an_id_is_short_plain_and_not_taken() {
        for id in ["types", "a-1", &"x".repeat(32)] {
            assert!(is_free_id(id), "{id}");
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
            assert!(!is_free_id(id), "{id}");
        }
    }
}
