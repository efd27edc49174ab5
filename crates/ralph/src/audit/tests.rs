//! Builds a true run by hand, then breaks each promise once: exactly the check that guards it must see.

mod broken;
mod healthy;
mod story;
mod world;
