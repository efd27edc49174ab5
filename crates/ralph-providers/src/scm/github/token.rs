//! The current token of a client: one of the user, or one that the client creates for an App.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use ralph_core::secret::Secret;

use super::app_key::AppKey;

/// How long before its end a token is replaced.
const REFRESH_MARGIN: SignedDuration = SignedDuration::from_mins(10);

/// A credential for the API.
#[derive(Debug)]
pub enum GitHubCredential {
    /// A token of a user, or one that another program created for an App.
    Token(Secret),
    /// A GitHub App, whose tokens the client creates.
    App {
        /// The id or the client id.
        id: String,
        key: AppKey,
        /// The installation; `None` selects the one of the repository.
        installation: Option<u64>,
    },
}

/// Reads the user's token again, for example from the token store, after the server rejected it.
#[async_trait]
pub trait GitHubTokenSource: Send + Sync {
    /// Returns the current token; `None` if there is none any more.
    async fn read(&self) -> Option<Secret>;
}

/// A token with the facts about it.
#[derive(Debug, Clone)]
pub(super) struct HeldToken {
    pub(super) token: Arc<Secret>,
    /// `None` for a token of the user.
    pub(super) expires: Option<Timestamp>,
    /// Empty for a token of the user.
    pub(super) permissions: BTreeMap<String, String>,
}

impl HeldToken {
    pub(super) fn of_user(token: Secret) -> Self {
        Self {
            token: Arc::new(token),
            expires: None,
            permissions: BTreeMap::new(),
        }
    }

    /// Returns whether it can be used for a while.
    pub(super) fn is_valid(&self, now: Timestamp) -> bool {
        let refresh_at = now.saturating_add(REFRESH_MARGIN);
        let refresh_at = refresh_at.unwrap_or(Timestamp::MAX);
        self.expires.is_none_or(|expires| expires > refresh_at)
    }
}
