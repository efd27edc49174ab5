//! Decides who a caller is: tokens, login codes, sessions, and failed attempts.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use ralph_core::ports::Clock;
use ralph_core::secret::Secret;

use super::access_token::{AccessToken, TokenOrigin};
use super::failures::SignInFailures;
use super::login_codes::{CodePurpose, LOGIN_CODE_LIFETIME, LoginCodes};
use super::scope::AccessScope;
use super::sessions::{BrowserSessions, SessionAccess};
use super::shares::{ShareLink, ShareLinks, TooManyShares};

/// Knows the token, the login codes and the sessions of a server.
pub(crate) struct AccessControl {
    clock: Arc<dyn Clock>,
    state: Mutex<AccessState>,
}

struct AccessState {
    token: AccessToken,
    codes: LoginCodes,
    sessions: BrowserSessions,
    shares: ShareLinks,
    failures: SignInFailures,
}

/// A code and the end of its validity.
#[derive(Debug)]
pub(crate) struct CreatedCode {
    pub(crate) code: Secret,
    pub(crate) expires: Timestamp,
}

/// A session that a login code opened.
#[derive(Debug)]
pub(crate) struct OpenedSession {
    pub(crate) cookie: Secret,
    pub(crate) expires: Timestamp,
}

/// Why an attempt to sign in failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignInError {
    /// The token, the code or the cookie is not valid.
    Invalid,
    /// The client failed too often.
    TooMany { retry_after: Duration },
}

/// Why a token was not replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FixedTokenError;

impl AccessControl {
    pub(crate) fn new(token: AccessToken, clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            state: Mutex::new(AccessState {
                token,
                codes: LoginCodes::default(),
                sessions: BrowserSessions::default(),
                shares: ShareLinks::default(),
                failures: SignInFailures::default(),
            }),
        }
    }

    /// Returns a copy of the token.
    pub(crate) fn token(&self) -> Secret {
        Secret::new(self.lock().token.secret().expose().to_owned())
    }

    /// Checks a token of a program.
    pub(crate) fn check_token(&self, token: &str, client: IpAddr) -> Result<(), SignInError> {
        if self.lock().token.matches(token) {
            return Ok(());
        }
        Err(self.failed(client, "token"))
    }

    /// Returns the session of a cookie.
    pub(crate) fn session(&self, cookie: &str) -> Option<SessionAccess> {
        let now = self.clock.now();
        self.lock().sessions.find(cookie, now)
    }

    /// Creates the code of a login link.
    pub(crate) fn create_login_code(&self) -> CreatedCode {
        let now = self.clock.now();
        let expires = now + LOGIN_CODE_LIFETIME;
        let code = self.lock().codes.create(CodePurpose::Login, expires, now);
        CreatedCode { code, expires }
    }

    /// Exchanges a code for a session.
    pub(crate) fn redeem_code(
        &self,
        code: &str,
        client: IpAddr,
    ) -> Result<OpenedSession, SignInError> {
        let now = self.clock.now();
        let opened = {
            let mut state = self.lock();
            let state = &mut *state;
            match state.codes.redeem(code, now) {
                Some(CodePurpose::Login) => {
                    let scope = AccessScope::Full;
                    Some((scope, state.sessions.open(scope, None, None, now)))
                }
                Some(CodePurpose::Share(id)) => state.shares.open(&id, now).map(|ends| {
                    let scope = AccessScope::Read;
                    let opened = state.sessions.open(scope, Some(id), Some(ends), now);
                    (scope, opened)
                }),
                None => None,
            }
        };
        let Some((scope, (cookie, expires))) = opened else {
            return Err(self.failed(client, "login code"));
        };
        tracing::info!(%client, ?scope, "a browser signed in");
        Ok(OpenedSession { cookie, expires })
    }

    /// Ends the session of a cookie.
    pub(crate) fn close_session(&self, cookie: &str) {
        self.lock().sessions.close(cookie);
    }

    /// Replaces the token, and ends all sessions, codes and share links. A token of the user is fixed.
    pub(crate) fn rotate_token(&self) -> Result<Secret, FixedTokenError> {
        let mut state = self.lock();
        if state.token.origin() == TokenOrigin::Environment {
            return Err(FixedTokenError);
        }
        state.token = AccessToken::generate();
        state.codes.clear();
        state.sessions.close_all();
        state.shares.clear();
        drop(state);
        tracing::info!("the token was replaced, and all sessions ended");
        Ok(self.token())
    }

    /// Creates a share link that is valid for some time.
    pub(crate) fn create_share(
        &self,
        lifetime: Duration,
    ) -> Result<(ShareLink, Secret), TooManyShares> {
        let now = self.clock.now();
        let mut state = self.lock();
        let share = state.shares.create(now, now + lifetime)?;
        let purpose = CodePurpose::Share(share.id.clone());
        let code = state.codes.create(purpose, share.expires_at, now);
        Ok((share, code))
    }

    /// Returns the share links that are valid, the oldest first.
    pub(crate) fn shares(&self) -> Vec<ShareLink> {
        let now = self.clock.now();
        self.lock().shares.list(now)
    }

    /// Revokes a share link, and ends its session. Returns whether it existed.
    pub(crate) fn revoke_share(&self, id: &str) -> bool {
        let now = self.clock.now();
        let mut state = self.lock();
        let existed = state.shares.revoke(id, now);
        state.codes.forget_share(id);
        state.sessions.close_share(id);
        existed
    }

    /// Ends everything that expired.
    pub(crate) fn remove_expired(&self) {
        let now = self.clock.now();
        self.lock().sessions.remove_expired(now);
    }

    fn failed(&self, client: IpAddr, kind: &str) -> SignInError {
        let now = self.clock.now();
        let retry_after = self.lock().failures.record(client, now);
        tracing::warn!(%client, "rejected an invalid {kind}");
        retry_after.map_or(SignInError::Invalid, |retry_after| SignInError::TooMany {
            retry_after,
        })
    }

    fn lock(&self) -> MutexGuard<'_, AccessState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for AccessControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessControl").finish_non_exhaustive()
    }
}
