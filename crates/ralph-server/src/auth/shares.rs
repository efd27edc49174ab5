//! Share links: they show the server to another person for a short time, and change nothing.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::random_text::random_id;

/// The most share links at a time.
const MAX_SHARES: usize = 32;

/// There are too many share links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there are {MAX_SHARES} share links already")]
pub(crate) struct TooManyShares;

/// A share link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct ShareLink {
    pub(crate) id: String,
    #[schema(value_type = String, format = DateTime)]
    pub(crate) created_at: Timestamp,
    /// The link and its session end then.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) expires_at: Timestamp,
    /// The time of its only use; null before.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) used_at: Option<Timestamp>,
}

/// The share links that are valid.
#[derive(Debug, Default)]
pub(crate) struct ShareLinks {
    links: Vec<ShareLink>,
}

impl ShareLinks {
    /// Creates a link.
    pub(crate) fn create(
        &mut self,
        now: Timestamp,
        expires_at: Timestamp,
    ) -> Result<ShareLink, TooManyShares> {
        self.remove_expired(now);
        if self.links.len() >= MAX_SHARES {
            return Err(TooManyShares);
        }
        let link = ShareLink {
            id: random_id(),
            created_at: now,
            expires_at,
            used_at: None,
        };
        self.links.push(link.clone());
        Ok(link)
    }

    /// Records the use of a link, and returns when its session ends.
    pub(crate) fn open(&mut self, id: &str, now: Timestamp) -> Option<Timestamp> {
        self.remove_expired(now);
        let link = self.links.iter_mut().find(|link| link.id == id)?;
        link.used_at = Some(now);
        Some(link.expires_at)
    }

    /// Returns the valid links, the oldest first.
    pub(crate) fn list(&mut self, now: Timestamp) -> Vec<ShareLink> {
        self.remove_expired(now);
        self.links.clone()
    }

    /// Removes a link. Returns whether it was valid.
    pub(crate) fn revoke(&mut self, id: &str, now: Timestamp) -> bool {
        self.remove_expired(now);
        let before = self.links.len();
        self.links.retain(|link| link.id != id);
        self.links.len() < before
    }

    /// Removes all links.
    pub(crate) fn clear(&mut self) {
        self.links.clear();
    }

    fn remove_expired(&mut self, now: Timestamp) {
        self.links.retain(|link| link.expires_at > now);
    }
}
