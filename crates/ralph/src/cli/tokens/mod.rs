//! `ralph store-token`, `check-token` and `get-token`: the credentials of agents.
//!
//! - `args` defines the arguments, `command` runs the three commands.
//! - `prompt`, `setup_token` and `stdin_token` are the input methods of `store-token`,
//!   `terminal_mode` hides typed text.

mod args;
mod command;
mod prompt;
mod setup_token;
mod stdin_token;
mod terminal_mode;

pub(super) use args::{StoreTokenArgs, TokenArgs};
pub(super) use command::{check, get, store};
