//! `[notify]`: how the user is notified when a run ends or waits for the user. Only the user's file
//! may set it.

use ralph_core::notify::NotifyKind;
use serde::{Deserialize, Deserializer, Serialize};

use crate::tokens::{BaseUrl, BaseUrlError};

/// The most arguments of a notification command.
const MAX_ARGUMENTS: usize = 64;

/// `[notify]`: the channels of notifications.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NotifySettings {
    /// The kinds of notifications.
    pub on: Vec<NotifyKind>,
    /// Whether a terminal rings its bell.
    pub bell: bool,
    /// Whether the desktop shows a notification, if a program for it exists.
    pub desktop: bool,
    /// A program with its arguments; empty starts none.
    #[serde(deserialize_with = "deserialize_command")]
    pub command: Vec<String>,
    /// An address that receives JSON; empty sends nothing.
    #[serde(deserialize_with = "deserialize_webhook")]
    pub webhook: String,
}

impl Default for NotifySettings {
    fn default() -> Self {
        Self {
            on: NotifyKind::ALL.into(),
            bell: false,
            desktop: false,
            command: Vec::new(),
            webhook: String::new(),
        }
    }
}

fn deserialize_command<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<String>, D::Error> {
    let command = Vec::<String>::deserialize(deserializer)?;
    let invalid = if command.first().is_some_and(String::is_empty) {
        "the program of the command is empty"
    } else if command.iter().any(|argument| argument.contains('\0')) {
        "an argument of the command contains a NUL character"
    } else if command.len() > MAX_ARGUMENTS {
        "the command has more than 64 arguments"
    } else {
        return Ok(command);
    };
    Err(serde::de::Error::custom(invalid))
}

/// Accepts an address with `https`, or with `http` on this machine. Its query may contain a token.
fn deserialize_webhook<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    let address = text.split('?').next().unwrap_or_default();
    if text.is_empty() {
        return Ok(text);
    }
    let problem = match BaseUrl::parse(address) {
        Ok(_) if text.parse::<hyper::Uri>().is_ok() => return Ok(text),
        Ok(_) | Err(BaseUrlError::Form) => "a webhook looks like `https://host/path`",
        Err(BaseUrlError::Readable) => "a webhook with `http` must be on this machine; use `https`",
        Err(BaseUrlError::Parts) => "a webhook cannot contain a user or `#`",
    };
    Err(serde::de::Error::custom(problem))
}
