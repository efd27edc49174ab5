//! The guest and its wire, without a container around them.

mod answers;
mod conversation;
mod wire;
