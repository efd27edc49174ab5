//! Finding and keeping credentials: which place is asked, in which order.

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

/// Which places are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreSelection {
    /// All that there are.
    All,
    /// Only the keyring.
    Keyring,
    /// Only the files.
    Files,
}

/// Where credentials come from.
pub struct TokenSources {
    /// Which places are used.
    pub selection: StoreSelection,
    /// The directory of the files.
    pub files: PathBuf,
    /// The keyring of this machine, if there is one.
    pub keyring: Option<Box<dyn TokenStore>>,
    /// Credentials of the environment, by the variable's name.
    pub variables: Vec<(&'static str, Secret)>,
    /// The address of the gateway that the environment names.
    pub gateway: Option<BaseUrl>,
    /// The time.
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

/// A credential, and where it was.
#[derive(Debug)]
pub struct FoundToken {
    /// The credential.
    pub token: AuthToken,
    /// How it is shown to the API.
    pub mode: AuthMode,
    /// Where it was.
    pub store: TokenStoreKind,
}

/// Where a credential went.
#[derive(Debug)]
pub struct SavedToken {
    /// The place.
    pub store: TokenStoreKind,
    /// Why it is not in the keyring, if it should be there.
    pub keyring_error: Option<TokenStoreError>,
}

impl TokenStorage {
    /// Takes the places.
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

    /// Returns the same with another keyring.
    #[must_use]
    pub fn with_keyring(self, keyring: Box<dyn TokenStore>) -> Self {
        Self {
            keyring: Some(keyring),
            ..self
        }
    }

    /// Returns the time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns a credential that holds, or an error that names the command which helps.
    ///
    /// Without a mode it is the first that there is: what was stored comes before the environment,
    /// subscriptions before keys. One that has ended is not passed over for another: that could
    /// silently cost money.
    pub async fn find_valid(
        &self,
        agent: &AgentName,
        mode: Option<AuthMode>,
    ) -> Result<FoundToken, TokenError> {
        let found = self.find(agent, mode).await?;
        match found.token.expires {
            Some(expired) if found.token.is_expired(self.now()) => Err(TokenError::Expired {
                agent: agent.clone(),
                mode: found.mode,
                expired,
            }),
            Some(_) | None => Ok(found),
        }
    }

    /// Returns a credential, whether it has ended or not.
    pub async fn find(
        &self,
        agent: &AgentName,
        mode: Option<AuthMode>,
    ) -> Result<FoundToken, TokenError> {
        let modes: Vec<AuthMode> = mode.map_or_else(|| AuthMode::ALL.into(), |mode| vec![mode]);
        let mut unasked = None;
        for mode in &modes {
            let slot = TokenSlot {
                agent: agent.clone(),
                mode: *mode,
            };
            for store in self.stores() {
                match store.load(&slot).await {
                    Ok(Some(kept)) => return parse_stored(slot, store, &kept),
                    Ok(None) => {}
                    Err(error @ TokenStoreError::Program(_)) => unasked = Some(error),
                    Err(source) => return Err(store_error(agent, source)),
                }
            }
        }
        self.find_in_environment(agent, &modes)
            .ok_or_else(|| TokenError::Missing {
                agent: agent.clone(),
                mode,
                unasked,
            })
    }

    /// Returns the places that keep credentials. A file is there only when the keyring could not be
    /// used the last time, so it is the newer one.
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

    fn find_in_environment(&self, agent: &AgentName, modes: &[AuthMode]) -> Option<FoundToken> {
        if self.selection != StoreSelection::All {
            return None;
        }
        let known = AgentAuth::for_agent(agent);
        let candidates = known
            .variables
            .iter()
            .filter(|(mode, _)| modes.contains(mode));
        candidates.into_iter().find_map(|(mode, name)| {
            let (name, secret) = self.variables.iter().find(|(set, _)| set == name)?;
            let mut token = AuthToken::from_secret(Secret::new(secret.expose().to_owned())).ok()?;
            match mode {
                // Without its address a gateway's key would go to the provider.
                AuthMode::Gateway => token.base_url = Some(self.gateway.clone()?),
                AuthMode::Oauth | AuthMode::ApiKey => {}
            }
            Some(FoundToken {
                token,
                mode: *mode,
                store: TokenStoreKind::Variable(name),
            })
        })
    }

    /// Keeps a credential: in the keyring, or in a file where that cannot be and may be.
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
        let mut refused = None;
        if let Some(keyring) = keyring {
            match (keyring.save(slot, &value).await, self.selection) {
                (Ok(()), _) => {
                    self.files.remove(slot).map_err(failed)?;
                    let place = keyring.kind(slot);
                    return Ok(SavedToken {
                        store: place,
                        keyring_error: refused,
                    });
                }
                (Err(error), StoreSelection::Keyring) => return Err(failed(error)),
                (Err(error), StoreSelection::All | StoreSelection::Files) => refused = Some(error),
            }
        }
        self.files.save(slot, &value).await.map_err(failed)?;
        let place = self.files.kind(slot);
        Ok(SavedToken {
            store: place,
            keyring_error: refused,
        })
    }
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
    kept: &Secret,
) -> Result<FoundToken, TokenError> {
    let place = store.kind(&slot);
    match AuthToken::from_json(kept) {
        Ok(token) => Ok(FoundToken {
            token,
            mode: slot.mode,
            store: place,
        }),
        Err(why) => Err(TokenError::Damaged {
            agent: slot.agent,
            mode: slot.mode,
            place,
            why,
        }),
    }
}
