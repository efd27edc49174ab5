//! `store-token`, `check-token`, `get-token`: their words, their places, and that nothing else ever
//! holds a token.

pub(crate) mod fixture;
mod keyrings;
mod token_api;
mod typed;
mod validated;
mod words;
