//! Decides which requests are accepted.
//!
//! - `access_control` knows the token of programs (`access_token`), the one-time codes of login links
//!   (`login_codes`), the sessions of browsers (`sessions`), share links (`shares`) and the attempts
//!   that failed (`failures`).
//! - `web_origin` has the exact lists of hosts and origins, `public_url` the address behind a proxy.
//! - `guard` checks each request in order: host, origin, credential, rights, CSRF header.

mod access_control;
mod access_token;
mod cookie;
mod failures;
mod guard;
mod header_text;
mod login_codes;
mod public_url;
mod random_text;
mod scope;
mod sessions;
mod shares;
mod web_origin;

pub(crate) use access_control::{AccessControl, SignInError};
pub(crate) use access_token::AccessToken;
pub(crate) use cookie::SessionCookie;
pub(crate) use guard::{Caller, ConnectionInfo, RequestGuard, client_address};
pub(crate) use header_text::header_text;
pub use public_url::PublicUrl;
pub(crate) use random_text::{random_id, random_secret};
pub(crate) use scope::AccessScope;
pub(crate) use shares::ShareLink;
pub(crate) use web_origin::{AllowedOrigins, WebOrigin, WebScheme};
