//! Builds a valid run by hand, then breaks each promise once: exactly the check for that promise
//! must fail.

mod broken;
mod fixture;
mod healthy;
mod journal_script;
