//! The macOS keychain, accessed through its program `security`.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::PathBuf;

use async_trait::async_trait;
use ralph_core::secret::Secret;

use super::program::{self, KeyringProgramOutput};
use super::token_store::{TokenStore, TokenStoreError, TokenStoreKind};
use crate::tokens::TokenSlot;

/// The longest line that `security -i` reads.
const MAX_COMMAND_BYTES: usize = 4096;

/// The exit code of `security` if the entry does not exist.
const NOT_FOUND_CODE: i32 = 44;

/// The macOS keychain.
#[derive(Debug)]
pub struct Keychain {
    program: PathBuf,
    search_path: String,
}

impl Keychain {
    /// Creates access to the keychain through this program, which finds others by `search_path`.
    pub fn new(program: PathBuf, search_path: &str) -> Self {
        let search_path = search_path.to_owned();
        Self {
            program,
            search_path,
        }
    }

    async fn run(
        &self,
        arguments: &[&str],
        input: &Secret,
    ) -> Result<KeyringProgramOutput, TokenStoreError> {
        let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
        Ok(program::run(&self.program, &self.search_path, &arguments, input).await?)
    }
}

#[async_trait]
impl TokenStore for Keychain {
    fn kind(&self, _: &TokenSlot) -> TokenStoreKind {
        TokenStoreKind::Keychain
    }

    async fn load(&self, slot: &TokenSlot) -> Result<Option<Secret>, TokenStoreError> {
        let service = slot.keyring_service();
        let find = [
            "find-generic-password",
            "-s",
            &service,
            "-a",
            TokenSlot::KEYRING_ACCOUNT,
            "-w",
        ];
        let result = self.run(&find, &Secret::new(String::new())).await?;
        match result.code {
            0 => Ok(Some(Secret::new(
                result.output.expose().trim_end().to_owned(),
            ))),
            NOT_FOUND_CODE => Ok(None),
            _ => Err(result.into_error(&self.program).into()),
        }
    }

    /// Passes the value in a command on standard input, because other users can see arguments.
    async fn save(&self, slot: &TokenSlot, value: &Secret) -> Result<(), TokenStoreError> {
        let command = add_command(slot, value);
        let bytes = command.expose().len();
        if bytes > MAX_COMMAND_BYTES {
            let limit = MAX_COMMAND_BYTES;
            return Err(TokenStoreError::TooLong { bytes, limit });
        }
        let result = self.run(&["-i"], &command).await?;
        if result.code != 0 {
            return Err(result.into_error(&self.program).into());
        }
        // The exit code of a command in `security -i` is not always the exit code of the program.
        let stored = self.load(slot).await?;
        if stored.is_some_and(|stored| stored.expose() == value.expose()) {
            Ok(())
        } else if result.error_line.is_empty() {
            let store = self.kind(slot);
            Err(TokenStoreError::NotReadBack { store })
        } else {
            Err(result.into_error(&self.program).into())
        }
    }
}

/// Returns the command that stores a value. Hexadecimal digits need no quoting.
fn add_command(slot: &TokenSlot, value: &Secret) -> Secret {
    let service = slot.keyring_service();
    let mut command = String::with_capacity(MAX_COMMAND_BYTES + 2 * value.expose().len());
    write!(
        command,
        "add-generic-password -U -s {service} -a {} -X ",
        TokenSlot::KEYRING_ACCOUNT
    )
    .expect("writing to a string cannot fail");
    for byte in value.expose().bytes() {
        write!(command, "{byte:02x}").expect("writing to a string cannot fail");
    }
    command.push('\n');
    Secret::new(command)
}
