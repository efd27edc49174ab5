//! `store-token`, `check-token`, `get-token`: their words, their places, and that nothing else ever
//! holds a token.

pub(crate) mod bench;
mod keyrings;
mod provider;
mod typed;
mod validated;
mod words;
