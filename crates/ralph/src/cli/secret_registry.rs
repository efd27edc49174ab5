//! The secrets that this process knows, for everything that is shown or stored.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use ralph_core::secret::{Redactor, Secret};

/// Secrets by name, and a redactor for them that is built when it is first needed.
#[derive(Default)]
pub(crate) struct SecretRegistry {
    state: Mutex<RegistryState>,
}

#[derive(Default)]
struct RegistryState {
    secrets: Vec<(String, Secret)>,
    /// Finds exactly these secrets.
    redactor: Option<Redactor>,
}

impl SecretRegistry {
    pub(super) fn new(secrets: Vec<(String, Secret)>) -> Self {
        Self {
            state: Mutex::new(RegistryState {
                secrets,
                redactor: None,
            }),
        }
    }

    pub(super) fn add(&self, name: String, secret: Secret) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.secrets.push((name, secret));
        state.redactor = None;
    }

    /// Returns a redactor for all secrets that were added so far.
    pub(super) fn redactor(&self) -> Redactor {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let RegistryState { secrets, redactor } = &mut *state;
        let build = || {
            let copies = secrets.iter().map(|(name, secret)| {
                let value = secret.expose().to_owned();
                (name.clone(), Secret::new(value))
            });
            Redactor::new(copies.collect())
        };
        redactor.get_or_insert_with(build).clone()
    }
}

impl fmt::Debug for SecretRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretRegistry").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_is_added_later_is_redacted_from_then_on() {
        let secret = |value: &str| Secret::new(value.to_owned());
        let registry = SecretRegistry::new(vec![("FIRST".to_owned(), secret("s3nt1nel-1"))]);
        let text = "s3nt1nel-1 and an0ther-val";
        assert_eq!(
            registry.redactor().redact(text),
            "[REDACTED:FIRST] and an0ther-val"
        );
        registry.add("LATER".to_owned(), secret("an0ther-val"));
        assert_eq!(
            registry.redactor().redact(text),
            "[REDACTED:FIRST] and [REDACTED:LATER]"
        );
    }
}
