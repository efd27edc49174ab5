//! Finding and keeping credentials: which place is asked, in which order.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use ralph_core::ports::Clock;
use ralph_core::secret::Secret;

use super::address::BaseUrl;
use super::agent::{Agent, AgentName, AuthMode, Slot};
use super::error::TokenError;
use super::place::{Place, PlaceError, TokenFiles, TokenStore};
use super::token::Token;

/// Which places are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Among {
    /// All that there are.
    All,
    /// Only the keyring.
    Keyring,
    /// Only the files.
    Files,
}

/// Where credentials come from.
pub struct Sources {
    /// Which places are used.
    pub among: Among,
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
pub struct Tokens {
    among: Among,
    files: TokenFiles,
    keyring: Option<Box<dyn TokenStore>>,
    variables: Vec<(&'static str, Secret)>,
    gateway: Option<BaseUrl>,
    clock: Arc<dyn Clock>,
}

/// A credential, and where it was.
#[derive(Debug)]
pub struct Found {
    /// The credential.
    pub token: Token,
    /// How it is shown to the API.
    pub mode: AuthMode,
    /// Where it was.
    pub place: Place,
}

/// Where a credential went.
#[derive(Debug)]
pub struct Kept {
    /// The place.
    pub place: Place,
    /// Why it is not in the keyring, if it should be there.
    pub refused: Option<PlaceError>,
}

impl Tokens {
    /// Takes the places.
    pub fn new(sources: Sources) -> Self {
        Self {
            among: sources.among,
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
    pub async fn ensure(
        &self,
        agent: &AgentName,
        mode: Option<AuthMode>,
    ) -> Result<Found, TokenError> {
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
    ) -> Result<Found, TokenError> {
        let modes: Vec<AuthMode> = mode.map_or_else(|| AuthMode::ALL.into(), |mode| vec![mode]);
        let mut unasked = None;
        for mode in &modes {
            let slot = Slot {
                agent: agent.clone(),
                mode: *mode,
            };
            for store in self.stores() {
                match store.load(&slot).await {
                    Ok(Some(kept)) => return found(slot, store, &kept),
                    Ok(None) => {}
                    Err(error @ PlaceError::Program(_)) => unasked = Some(error),
                    Err(source) => return Err(out_of_reach(agent, source)),
                }
            }
        }
        self.in_environment(agent, &modes)
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
        let stores = match self.among {
            Among::All => [files, keyring],
            Among::Keyring => [None, keyring],
            Among::Files => [files, None],
        };
        stores.into_iter().flatten()
    }

    fn in_environment(&self, agent: &AgentName, modes: &[AuthMode]) -> Option<Found> {
        if self.among != Among::All {
            return None;
        }
        let known = Agent::of(agent);
        let candidates = known
            .variables
            .iter()
            .filter(|(mode, _)| modes.contains(mode));
        candidates.into_iter().find_map(|(mode, name)| {
            let (name, secret) = self.variables.iter().find(|(set, _)| set == name)?;
            let mut token = Token::bare(Secret::new(secret.expose().to_owned())).ok()?;
            match mode {
                // Without its address a gateway's key would go to the provider.
                AuthMode::Gateway => token.base_url = Some(self.gateway.clone()?),
                AuthMode::Oauth | AuthMode::ApiKey => {}
            }
            Some(Found {
                token,
                mode: *mode,
                place: Place::Variable(name),
            })
        })
    }

    /// Keeps a credential: in the keyring, or in a file where that cannot be and may be.
    pub async fn store(&self, slot: &Slot, token: &Token) -> Result<Kept, TokenError> {
        let value = token.to_json();
        let failed = |source| out_of_reach(&slot.agent, source);
        let keyring = match self.among {
            Among::All | Among::Keyring => self.keyring.as_deref(),
            Among::Files => None,
        };
        let mut refused = None;
        if let Some(keyring) = keyring {
            match (keyring.save(slot, &value).await, self.among) {
                (Ok(()), _) => {
                    self.files.remove(slot).map_err(failed)?;
                    let place = keyring.place(slot);
                    return Ok(Kept { place, refused });
                }
                (Err(error), Among::Keyring) => return Err(failed(error)),
                (Err(error), Among::All | Among::Files) => refused = Some(error),
            }
        }
        self.files.save(slot, &value).await.map_err(failed)?;
        let place = self.files.place(slot);
        Ok(Kept { place, refused })
    }
}

fn out_of_reach(agent: &AgentName, source: PlaceError) -> TokenError {
    TokenError::Place {
        agent: agent.clone(),
        source,
    }
}

fn found(slot: Slot, store: &dyn TokenStore, kept: &Secret) -> Result<Found, TokenError> {
    let place = store.place(&slot);
    match Token::from_json(kept) {
        Ok(token) => Ok(Found {
            token,
            mode: slot.mode,
            place,
        }),
        Err(why) => Err(TokenError::Damaged {
            agent: slot.agent,
            mode: slot.mode,
            place,
            why,
        }),
    }
}
