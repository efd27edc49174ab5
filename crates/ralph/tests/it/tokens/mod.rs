//! `store-token`, `check-token`, `get-token`: their messages, their storage, and that tokens are
//! stored nowhere else.

pub(crate) mod fixture;
mod keyrings;
mod token_api;
mod typed;
mod validated;
mod words;
