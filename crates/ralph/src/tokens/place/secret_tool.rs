//! The Linux keyring (the Secret Service of a desktop), through the program `secret-tool`.

use std::ffi::OsStr;
use std::path::PathBuf;

use async_trait::async_trait;
use ralph_core::secret::Secret;

use super::program::{self, Ended};
use super::store::{Place, PlaceError, TokenStore};
use crate::tokens::Slot;

/// The Linux keyring.
#[derive(Debug)]
pub struct SecretTool {
    program: PathBuf,
    search_path: String,
}

impl SecretTool {
    /// Speaks to the keyring through this program, which finds others by `search_path`.
    pub fn new(program: PathBuf, search_path: &str) -> Self {
        let search_path = search_path.to_owned();
        Self {
            program,
            search_path,
        }
    }

    async fn run(&self, verb: &[&str], slot: &Slot, input: &Secret) -> Result<Ended, PlaceError> {
        let service = slot.service();
        let entry = ["service", &service, "account", Slot::ACCOUNT];
        let arguments: Vec<&OsStr> = verb.iter().chain(&entry).map(OsStr::new).collect();
        Ok(program::run(&self.program, &self.search_path, &arguments, input).await?)
    }
}

#[async_trait]
impl TokenStore for SecretTool {
    fn place(&self, _: &Slot) -> Place {
        Place::SecretTool
    }

    async fn load(&self, slot: &Slot) -> Result<Option<Secret>, PlaceError> {
        let ended = self
            .run(&["lookup"], slot, &Secret::new(String::new()))
            .await?;
        match ended.code {
            0 => Ok(Some(Secret::new(
                ended.output.expose().trim_end().to_owned(),
            ))),
            // It ends with the same code when it cannot reach the keyring, but then it says so.
            _ if ended.complaint.is_empty() => Ok(None),
            _ => Err(ended.failed(&self.program).into()),
        }
    }

    async fn save(&self, slot: &Slot, value: &Secret) -> Result<(), PlaceError> {
        let label = format!("--label=ralph: {} for {}", slot.mode, slot.agent);
        let ended = self.run(&["store", &label], slot, value).await?;
        if ended.code != 0 {
            return Err(ended.failed(&self.program).into());
        }
        let kept = self.load(slot).await?;
        if kept.is_some_and(|kept| kept.expose() == value.expose()) {
            Ok(())
        } else {
            let place = self.place(slot);
            Err(PlaceError::Lost { place })
        }
    }
}
