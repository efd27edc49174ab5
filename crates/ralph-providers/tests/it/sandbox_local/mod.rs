//! The local sandbox: the contract, and what only it can be asked.

mod alone;
mod contract;
mod directories;
mod place;
mod processes;
mod resources;
