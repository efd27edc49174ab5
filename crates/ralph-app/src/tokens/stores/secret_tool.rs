//! The Linux keyring (the Secret Service of a desktop), accessed through the program `secret-tool`.

use std::ffi::OsStr;
use std::path::PathBuf;

use async_trait::async_trait;
use ralph_core::secret::Secret;

use super::program::{self, KeyringProgramOutput};
use super::token_store::{TokenStore, TokenStoreError, TokenStoreKind};
use crate::tokens::TokenSlot;

/// The Linux keyring.
#[derive(Debug)]
pub struct SecretTool {
    program: PathBuf,
    search_path: String,
}

impl SecretTool {
    /// Creates access to the keyring through this program, which finds others by `search_path`.
    pub fn new(program: PathBuf, search_path: &str) -> Self {
        let search_path = search_path.to_owned();
        Self {
            program,
            search_path,
        }
    }

    async fn run(
        &self,
        verb: &[&str],
        slot: &TokenSlot,
        input: &Secret,
    ) -> Result<KeyringProgramOutput, TokenStoreError> {
        let service = slot.keyring_service();
        let entry = ["service", &service, "account", TokenSlot::KEYRING_ACCOUNT];
        let arguments: Vec<&OsStr> = verb.iter().chain(&entry).map(OsStr::new).collect();
        Ok(program::run(&self.program, &self.search_path, &arguments, input).await?)
    }
}

#[async_trait]
impl TokenStore for SecretTool {
    fn kind(&self, _: &TokenSlot) -> TokenStoreKind {
        TokenStoreKind::SecretTool
    }

    async fn load(&self, slot: &TokenSlot) -> Result<Option<Secret>, TokenStoreError> {
        let result = self
            .run(&["lookup"], slot, &Secret::new(String::new()))
            .await?;
        match result.code {
            0 => Ok(Some(Secret::new(
                result.output.expose().trim_end().to_owned(),
            ))),
            // The exit code is the same if the keyring is unavailable, but then the program prints
            // an error.
            _ if result.error_line.is_empty() => Ok(None),
            _ => Err(result.into_error(&self.program).into()),
        }
    }

    async fn save(&self, slot: &TokenSlot, value: &Secret) -> Result<(), TokenStoreError> {
        let label = format!("--label=ralph: {} for {}", slot.mode, slot.agent);
        let result = self.run(&["store", &label], slot, value).await?;
        if result.code != 0 {
            return Err(result.into_error(&self.program).into());
        }
        let stored = self.load(slot).await?;
        if stored.is_some_and(|stored| stored.expose() == value.expose()) {
            Ok(())
        } else {
            let store = self.kind(slot);
            Err(TokenStoreError::NotReadBack { store })
        }
    }
}
