//! `ralph store-token`, `check-token` and `get-token`: the credentials of agents.
//!
//! - `args` is what can be typed, `command` runs the three commands.
//! - `prompt`, `setup_token` and `stdin_token` are the ways in which `store-token` gets a credential,
//!   `terminal_mode` hides what is typed.

mod args;
mod command;
mod prompt;
mod setup_token;
mod stdin_token;
mod terminal_mode;

pub(super) use args::{StoreTokenArgs, TokenArgs};
pub(super) use command::{check, get, store};
