//! The sessions of browsers. Each has a cookie, of which only the digest is kept.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use ralph_core::secret::Secret;
use tokio::sync::watch;

use super::random_text::{SecretDigest, random_secret};
use super::scope::AccessScope;

/// The time after which a session ends, used or not.
const MAX_AGE: Duration = Duration::from_hours(7 * 24);
/// The time after which an unused session ends.
const MAX_IDLE: Duration = Duration::from_hours(12);
/// The most sessions at a time; the least recently used one ends first.
const MAX_SESSIONS: usize = 64;

/// Completes when a session ends, so that its streams are closed.
#[derive(Debug, Clone)]
pub(crate) struct SessionEnd(watch::Receiver<()>);

impl SessionEnd {
    /// Waits for the end of the session.
    pub(crate) async fn ended(mut self) {
        // The sender never sends: it is dropped with the session.
        while self.0.changed().await.is_ok() {}
    }
}

/// A session of a browser.
#[derive(Debug)]
struct BrowserSession {
    scope: AccessScope,
    last_used: Timestamp,
    expires: Timestamp,
    /// The share link that the session came from.
    share: Option<String>,
    /// Open streams hold a receiver.
    alive: watch::Sender<()>,
}

/// All sessions of a server.
#[derive(Debug, Default)]
pub(crate) struct BrowserSessions {
    sessions: BTreeMap<SecretDigest, BrowserSession>,
}

/// The session of a request.
#[derive(Debug, Clone)]
pub(crate) struct SessionAccess {
    pub(crate) scope: AccessScope,
    pub(crate) end: SessionEnd,
    pub(crate) expires: Timestamp,
}

impl BrowserSessions {
    /// Opens a session, and returns its cookie and its end. It ends at `expires` at the latest.
    pub(crate) fn open(
        &mut self,
        scope: AccessScope,
        share: Option<String>,
        expires: Option<Timestamp>,
        now: Timestamp,
    ) -> (Secret, Timestamp) {
        self.remove_expired(now);
        if self.sessions.len() >= MAX_SESSIONS {
            let oldest = self.sessions.iter().min_by_key(|(_, open)| open.last_used);
            if let Some(digest) = oldest.map(|(digest, _)| *digest) {
                self.sessions.remove(&digest);
            }
        }
        let cookie = random_secret();
        let expires = expires.unwrap_or_else(|| now + MAX_AGE);
        let session = BrowserSession {
            scope,
            last_used: now,
            expires,
            share,
            alive: watch::channel(()).0,
        };
        let digest = SecretDigest::of(cookie.expose());
        self.sessions.insert(digest, session);
        (cookie, expires)
    }

    /// Returns the session of a cookie, which counts as a use of it.
    pub(crate) fn find(&mut self, cookie: &str, now: Timestamp) -> Option<SessionAccess> {
        let session = self.sessions.get_mut(&SecretDigest::of(cookie))?;
        if session.is_expired(now) {
            return None;
        }
        session.last_used = now;
        Some(SessionAccess {
            scope: session.scope,
            end: SessionEnd(session.alive.subscribe()),
            expires: session.expires,
        })
    }

    /// Ends the session of a cookie.
    pub(crate) fn close(&mut self, cookie: &str) {
        self.sessions.remove(&SecretDigest::of(cookie));
    }

    /// Ends the sessions of a share link.
    pub(crate) fn close_share(&mut self, share: &str) {
        self.sessions
            .retain(|_, session| session.share.as_deref() != Some(share));
    }

    /// Ends all sessions.
    pub(crate) fn close_all(&mut self) {
        self.sessions.clear();
    }

    /// Ends the sessions that expired. An open stream is a use of its session.
    pub(crate) fn remove_expired(&mut self, now: Timestamp) {
        for session in self.sessions.values_mut() {
            if session.alive.receiver_count() > 0 && session.last_used < now {
                session.last_used = now;
            }
        }
        self.sessions.retain(|_, session| !session.is_expired(now));
    }
}

impl BrowserSession {
    fn is_expired(&self, now: Timestamp) -> bool {
        let idle = Duration::try_from(now.duration_since(self.last_used));
        now >= self.expires || idle.is_ok_and(|idle| idle >= MAX_IDLE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + hours * 3600).unwrap()
    }

    #[test]
    fn a_session_ends_when_it_is_idle_old_or_closed() {
        let mut sessions = BrowserSessions::default();
        let (cookie, _) = sessions.open(AccessScope::Full, None, None, at(0));
        for hour in [11, 22, 33] {
            assert!(sessions.find(cookie.expose(), at(hour)).is_some(), "{hour}");
        }
        assert!(sessions.find(cookie.expose(), at(45)).is_none());
        for hour in (33..168).step_by(11) {
            sessions.find(cookie.expose(), at(hour));
        }
        assert!(sessions.find(cookie.expose(), at(168)).is_none());
        let (cookie, _) = sessions.open(AccessScope::Full, None, None, at(0));
        assert!(
            sessions
                .find(&format!("{}x", cookie.expose()), at(1))
                .is_none()
        );
        sessions.close(cookie.expose());
        assert!(sessions.find(cookie.expose(), at(1)).is_none());
    }

    #[test]
    fn a_new_session_ends_the_least_recently_used_one() {
        let mut sessions = BrowserSessions::default();
        let open = |sessions: &mut BrowserSessions, hour| {
            sessions.open(AccessScope::Read, None, None, at(hour)).0
        };
        let first = open(&mut sessions, 0);
        let second = open(&mut sessions, 0);
        sessions.find(first.expose(), at(1));
        for _ in 0..MAX_SESSIONS - 1 {
            open(&mut sessions, 1);
        }
        assert!(sessions.find(second.expose(), at(1)).is_none());
        assert_eq!(sessions.sessions.len(), MAX_SESSIONS);
    }

    #[tokio::test]
    async fn streams_learn_that_their_session_ended() {
        let mut sessions = BrowserSessions::default();
        let share = Some("s".to_owned());
        let (cookie, _) = sessions.open(AccessScope::Read, share, Some(at(1)), at(0));
        let end = sessions.find(cookie.expose(), at(0)).unwrap().end;
        let waiting = tokio::spawn(end.ended());
        sessions.close_share("other");
        assert!(sessions.find(cookie.expose(), at(0)).is_some());
        sessions.close_share("s");
        waiting.await.unwrap();
    }

    #[test]
    fn an_open_stream_keeps_its_session_until_it_expires() {
        let mut sessions = BrowserSessions::default();
        let (cookie, _) = sessions.open(AccessScope::Full, None, None, at(0));
        let access = sessions.find(cookie.expose(), at(0)).unwrap();
        for hour in [6, 18, 30] {
            sessions.remove_expired(at(hour));
        }
        drop(access);
        assert!(sessions.find(cookie.expose(), at(31)).is_some());
        sessions.remove_expired(at(44));
        assert!(sessions.sessions.is_empty());
    }
}
