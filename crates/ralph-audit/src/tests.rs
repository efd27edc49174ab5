//! Builds a true run by hand, then breaks each promise once: exactly the check that guards it must see.

mod broken;
mod fixture;
mod healthy;
mod journal_script;
