//! The type of a secret value.

use std::fmt;

use zeroize::Zeroizing;

/// A secret string. Its memory is wiped on drop.
///
/// Its debug output is `***`, so that it may be part of any other type:
///
/// ```
/// use ralph_core::secret::Secret;
/// let token = Secret::new("correct horse battery staple".to_owned());
/// assert_eq!(format!("{token:?}"), "***");
/// assert_eq!(token.expose(), "correct horse battery staple");
/// ```
///
/// It cannot be displayed:
///
/// ```compile_fail,E0277
/// let token = ralph_core::secret::Secret::new("correct horse".to_owned());
/// println!("{token}");
/// ```
///
/// It cannot be serialized:
///
/// ```compile_fail,E0277
/// let token = ralph_core::secret::Secret::new("correct horse".to_owned());
/// serde_json::to_string(&token);
/// ```
///
/// It cannot be copied:
///
/// ```compile_fail,E0599
/// let token = ralph_core::secret::Secret::new("correct horse".to_owned());
/// let copy = token.clone();
/// ```
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Wraps a secret.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// Returns the secret itself. Searching for `expose()` finds all code that handles one.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
