//! Finds and stores credentials in the available stores.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use ralph_core::ports::Clock;
use ralph_core::secret::Secret;

use super::agent::{AgentAuth, AgentName, AuthMode, TokenSlot};
use super::base_url::BaseUrl;
use super::error::TokenError;
use super::stores::{TokenFiles, TokenStore, TokenStoreError, TokenStoreKind};
use super::token::AuthToken;

/// The stores to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreSelection {
    /// All available stores.
    All,
    /// Only the keyring.
    Keyring,
    /// Only the files.
    Files,
}

/// The sources of credentials.
pub struct TokenSources {
    pub selection: StoreSelection,
    /// The directory of the files.
    pub files: PathBuf,
    /// The keyring of this machine, if it has one.
    pub keyring: Option<Box<dyn TokenStore>>,
    /// Credentials of the environment, with the names of their variables.
    pub variables: Vec<(&'static str, Secret)>,
    /// The address of the gateway that the environment names.
    pub gateway: Option<BaseUrl>,
    pub clock: Arc<dyn Clock>,
}

/// The credentials of all agents.
pub struct TokenStorage {
    selection: StoreSelection,
    files: TokenFiles,
    keyring: Option<Box<dyn TokenStore>>,
    variables: Vec<(&'static str, Secret)>,
    gateway: Option<BaseUrl>,
    clock: Arc<dyn Clock>,
}

/// A credential with its store.
#[derive(Debug)]
pub struct FoundToken {
    pub token: AuthToken,
    /// The agent that the credential belongs to.
    pub agent: AgentName,
    pub mode: AuthMode,
    pub store: TokenStoreKind,
}

/// The result of a search in the stores and the environment.
#[derive(Debug)]
pub struct TokenSearch {
    pub found: Option<FoundToken>,
    /// The error of a keyring that may contain a credential, if none was found.
    pub keyring_error: Option<TokenStoreError>,
}

/// The result of storing a credential.
#[derive(Debug)]
pub struct SavedToken {
    pub store: TokenStoreKind,
    /// The reason why it is not in the keyring, if it should be there.
    pub keyring_error: Option<TokenStoreError>,
}

impl TokenStorage {
    /// Creates the storage from its sources.
    pub fn new(sources: TokenSources) -> Self {
        Self {
            selection: sources.selection,
            files: TokenFiles::new(sources.files),
            keyring: sources.keyring,
            variables: sources.variables,
            gateway: sources.gateway,
            clock: sources.clock,
        }
    }

    /// Returns the storage with another keyring.
    #[must_use]
    pub fn with_keyring(self, keyring: Box<dyn TokenStore>) -> Self {
        Self {
            keyring: Some(keyring),
            ..self
        }
    }

    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns a valid credential, or an error that names the fix.
    ///
    /// Without a mode, returns the first one: stored ones precede the environment, subscriptions
    /// precede keys.
    pub async fn find_valid(
        &self,
        agent: &AgentName,
        mode: Option<AuthMode>,
    ) -> Result<FoundToken, TokenError> {
        let search = self.search_valid(&slots(agent, mode)).await?;
        search.found.ok_or(TokenError::Missing {
            agent: agent.clone(),
            mode,
            keyring_error: search.keyring_error,
        })
    }

    /// Searches the slots in their order for a valid credential: first the stores, then the
    /// environment. An expired credential is not replaced by another one: that could silently cost
    /// money.
    pub async fn search_valid(&self, slots: &[TokenSlot]) -> Result<TokenSearch, TokenError> {
        let mut search = self.search_stores(slots).await?;
        if search.found.is_none() {
            search.found = slots.iter().find_map(|slot| self.find_in_environment(slot));
        }
        self.refuse_expired(search)
    }

    /// Searches only the stores for a valid credential.
    pub async fn search_valid_stored(
        &self,
        slots: &[TokenSlot],
    ) -> Result<TokenSearch, TokenError> {
        self.refuse_expired(self.search_stores(slots).await?)
    }

    fn refuse_expired(&self, search: TokenSearch) -> Result<TokenSearch, TokenError> {
        let expired = search.found.as_ref().and_then(|found| {
            let is_expired = found.token.is_expired(self.now());
            found.token.expires.filter(|_| is_expired)
        });
        match (search.found, expired) {
            (Some(found), Some(expired)) => Err(TokenError::Expired {
                agent: found.agent,
                mode: found.mode,
                expired,
            }),
            (found, _) => Ok(TokenSearch { found, ..search }),
        }
    }

    /// Returns a credential, expired or not.
    pub async fn find(
        &self,
        agent: &AgentName,
        mode: Option<AuthMode>,
    ) -> Result<FoundToken, TokenError> {
        let slots = slots(agent, mode);
        let TokenSearch {
            found,
            keyring_error,
        } = self.search_stores(&slots).await?;
        let found = found.or_else(|| slots.iter().find_map(|slot| self.find_in_environment(slot)));
        found.ok_or(TokenError::Missing {
            agent: agent.clone(),
            mode,
            keyring_error,
        })
    }

    /// Searches the stores for the first slot that has a credential, expired or not.
    async fn search_stores(&self, slots: &[TokenSlot]) -> Result<TokenSearch, TokenError> {
        let mut keyring_error = None;
        for slot in slots {
            for store in self.stores() {
                match store.load(slot).await {
                    Ok(Some(stored)) => {
                        return Ok(TokenSearch {
                            found: Some(parse_stored(slot.clone(), store, &stored)?),
                            keyring_error: None,
                        });
                    }
                    Ok(None) => {}
                    Err(error @ TokenStoreError::Program(_)) => keyring_error = Some(error),
                    Err(source) => return Err(store_error(&slot.agent, source)),
                }
            }
        }
        Ok(TokenSearch {
            found: None,
            keyring_error,
        })
    }

    /// Returns the stores of credentials. Saving to the keyring removes the file, so an existing file
    /// is newer than the entry in the keyring.
    fn stores(&self) -> impl Iterator<Item = &dyn TokenStore> {
        let files = Some(&self.files as &dyn TokenStore);
        let keyring = self.keyring.as_deref();
        let stores = match self.selection {
            StoreSelection::All => [files, keyring],
            StoreSelection::Keyring => [None, keyring],
            StoreSelection::Files => [files, None],
        };
        stores.into_iter().flatten()
    }

    fn find_in_environment(&self, slot: &TokenSlot) -> Option<FoundToken> {
        if self.selection != StoreSelection::All {
            return None;
        }
        let known = AgentAuth::for_agent(&slot.agent);
        let mut candidates = known
            .variables
            .iter()
            .filter(|(mode, _)| *mode == slot.mode);
        candidates.find_map(|(_, name)| {
            let (name, secret) = self.variables.iter().find(|(set, _)| set == name)?;
            let secret = Secret::new(secret.expose().to_owned());
            let mut token = match AuthToken::from_secret(secret) {
                Ok(token) => token,
                Err(error) => {
                    tracing::warn!(%error, "the value of `{name}` is not used");
                    return None;
                }
            };
            match slot.mode {
                // Without its address, a gateway's key would be sent to the provider.
                AuthMode::Gateway => token.base_url = Some(self.gateway.clone()?),
                AuthMode::Oauth | AuthMode::ApiKey => {}
            }
            Some(FoundToken {
                token,
                agent: slot.agent.clone(),
                mode: slot.mode,
                store: TokenStoreKind::Variable(name),
            })
        })
    }

    /// Stores a credential in the keyring, or in a file if the keyring is unavailable and files are
    /// permitted.
    pub async fn save(
        &self,
        slot: &TokenSlot,
        token: &AuthToken,
    ) -> Result<SavedToken, TokenError> {
        let value = token.to_json();
        let failed = |source| store_error(&slot.agent, source);
        let keyring = match self.selection {
            StoreSelection::All | StoreSelection::Keyring => self.keyring.as_deref(),
            StoreSelection::Files => None,
        };
        let mut keyring_error = None;
        if let Some(keyring) = keyring {
            match (keyring.save(slot, &value).await, self.selection) {
                (Ok(()), _) => {
                    self.files.remove(slot).map_err(failed)?;
                    let store = keyring.kind(slot);
                    return Ok(SavedToken {
                        store,
                        keyring_error,
                    });
                }
                (Err(error), StoreSelection::Keyring) => return Err(failed(error)),
                (Err(error), StoreSelection::All | StoreSelection::Files) => {
                    keyring_error = Some(error);
                }
            }
        }
        self.files.save(slot, &value).await.map_err(failed)?;
        let store = self.files.kind(slot);
        Ok(SavedToken {
            store,
            keyring_error,
        })
    }
}

/// Returns the slots of an agent in the order of the search.
fn slots(agent: &AgentName, mode: Option<AuthMode>) -> Vec<TokenSlot> {
    let modes = AuthMode::ALL.into_iter();
    let modes = modes.filter(|known| mode.is_none_or(|wanted| wanted == *known));
    let slot = |mode| TokenSlot {
        agent: agent.clone(),
        mode,
    };
    modes.map(slot).collect()
}

fn store_error(agent: &AgentName, source: TokenStoreError) -> TokenError {
    TokenError::Store {
        agent: agent.clone(),
        source,
    }
}

fn parse_stored(
    slot: TokenSlot,
    store: &dyn TokenStore,
    stored: &Secret,
) -> Result<FoundToken, TokenError> {
    let store = store.kind(&slot);
    match AuthToken::from_json(stored) {
        Ok(token) => Ok(FoundToken {
            token,
            agent: slot.agent,
            mode: slot.mode,
            store,
        }),
        Err(why) => Err(TokenError::Damaged {
            agent: slot.agent,
            mode: slot.mode,
            store,
            why,
        }),
    }
}
