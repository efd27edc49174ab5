//! The macOS keychain, through its program `security`.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::PathBuf;

use async_trait::async_trait;
use ralph_core::secret::Secret;

use super::program::{self, Ended};
use super::store::{Place, PlaceError, TokenStore};
use crate::tokens::Slot;

/// The longest line that `security -i` reads.
const MOST_COMMAND: usize = 4096;

/// What `security` ends with when there is no such entry.
const NOT_FOUND: i32 = 44;

/// The macOS keychain.
#[derive(Debug)]
pub struct Keychain {
    program: PathBuf,
    search_path: String,
}

impl Keychain {
    /// Speaks to the keychain through this program, which finds others by `search_path`.
    pub fn new(program: PathBuf, search_path: &str) -> Self {
        let search_path = search_path.to_owned();
        Self {
            program,
            search_path,
        }
    }

    async fn run(&self, arguments: &[&str], input: &Secret) -> Result<Ended, PlaceError> {
        let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
        Ok(program::run(&self.program, &self.search_path, &arguments, input).await?)
    }
}

#[async_trait]
impl TokenStore for Keychain {
    fn place(&self, _: &Slot) -> Place {
        Place::Keychain
    }

    async fn load(&self, slot: &Slot) -> Result<Option<Secret>, PlaceError> {
        let service = slot.service();
        let find = [
            "find-generic-password",
            "-s",
            &service,
            "-a",
            Slot::ACCOUNT,
            "-w",
        ];
        let ended = self.run(&find, &Secret::new(String::new())).await?;
        match ended.code {
            0 => Ok(Some(Secret::new(
                ended.output.expose().trim_end().to_owned(),
            ))),
            NOT_FOUND => Ok(None),
            _ => Err(ended.failed(&self.program).into()),
        }
    }

    /// Hands the value over in a command on standard input: an argument is there for everybody to see.
    async fn save(&self, slot: &Slot, value: &Secret) -> Result<(), PlaceError> {
        let command = add_command(slot, value);
        let bytes = command.expose().len();
        if bytes > MOST_COMMAND {
            let most = MOST_COMMAND;
            return Err(PlaceError::TooLong { bytes, most });
        }
        let ended = self.run(&["-i"], &command).await?;
        if ended.code != 0 {
            return Err(ended.failed(&self.program).into());
        }
        // What a command inside `security -i` ends with is not always what the program ends with.
        let kept = self.load(slot).await?;
        if kept.is_some_and(|kept| kept.expose() == value.expose()) {
            Ok(())
        } else if ended.complaint.is_empty() {
            let place = self.place(slot);
            Err(PlaceError::Lost { place })
        } else {
            Err(ended.failed(&self.program).into())
        }
    }
}

/// Returns the command that keeps a value. In hexadecimal digits nothing has to be quoted.
fn add_command(slot: &Slot, value: &Secret) -> Secret {
    let service = slot.service();
    let mut command = String::with_capacity(MOST_COMMAND + 2 * value.expose().len());
    // Writing to a String cannot fail.
    write!(
        command,
        "add-generic-password -U -s {service} -a {} -X ",
        Slot::ACCOUNT
    )
    .ok();
    for byte in value.expose().bytes() {
        write!(command, "{byte:02x}").ok();
    }
    command.push('\n');
    Secret::new(command)
}
