//! One-time codes of login links.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use ralph_core::secret::Secret;

use super::random_text::{SecretDigest, random_secret};

/// The time for which the code of a login link is valid.
pub(crate) const LOGIN_CODE_LIFETIME: Duration = Duration::from_mins(15);
/// The most codes at a time; the one that expires first is forgotten first.
const MAX_CODES: usize = 64;

/// The purpose of a code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CodePurpose {
    /// Signs the user in.
    Login,
    /// Opens the share link with this id.
    Share(String),
}

#[derive(Debug)]
struct LoginCode {
    purpose: CodePurpose,
    expires: Timestamp,
}

/// The codes that were not used yet. Only their digests are kept.
#[derive(Debug, Default)]
pub(crate) struct LoginCodes {
    codes: BTreeMap<SecretDigest, LoginCode>,
}

impl LoginCodes {
    /// Creates a code.
    pub(crate) fn create(
        &mut self,
        purpose: CodePurpose,
        expires: Timestamp,
        now: Timestamp,
    ) -> Secret {
        self.codes.retain(|_, code| code.expires > now);
        if self.codes.len() >= MAX_CODES {
            let first = self.codes.iter().min_by_key(|(_, code)| code.expires);
            if let Some(digest) = first.map(|(digest, _)| *digest) {
                self.codes.remove(&digest);
            }
        }
        let code = random_secret();
        let digest = SecretDigest::of(code.expose());
        self.codes.insert(digest, LoginCode { purpose, expires });
        code
    }

    /// Uses a code up, and returns its purpose.
    pub(crate) fn redeem(&mut self, code: &str, now: Timestamp) -> Option<CodePurpose> {
        let code = self.codes.remove(&SecretDigest::of(code))?;
        (code.expires > now).then_some(code.purpose)
    }

    /// Forgets the code of a share link.
    pub(crate) fn forget_share(&mut self, share: &str) {
        let is_share = |code: &LoginCode| code.purpose == CodePurpose::Share(share.to_owned());
        self.codes.retain(|_, code| !is_share(code));
    }

    /// Forgets all codes.
    pub(crate) fn clear(&mut self) {
        self.codes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + minutes * 60).unwrap()
    }

    #[test]
    fn a_code_is_used_once_and_expires() {
        let mut codes = LoginCodes::default();
        let code = codes.create(CodePurpose::Login, at(15), at(0));
        assert_eq!(codes.redeem("other", at(1)), None);
        assert_eq!(codes.redeem(code.expose(), at(1)), Some(CodePurpose::Login));
        assert_eq!(codes.redeem(code.expose(), at(1)), None);
        let code = codes.create(CodePurpose::Login, at(15), at(0));
        assert_eq!(codes.redeem(code.expose(), at(15)), None);
    }

    #[test]
    fn a_revoked_share_has_no_code_and_codes_are_bounded() {
        let mut codes = LoginCodes::default();
        let share = codes.create(CodePurpose::Share("a".into()), at(60), at(0));
        codes.forget_share("a");
        assert_eq!(codes.redeem(share.expose(), at(1)), None);
        for _ in 0..MAX_CODES + 10 {
            codes.create(CodePurpose::Login, at(15), at(0));
        }
        assert_eq!(codes.codes.len(), MAX_CODES);
    }
}
