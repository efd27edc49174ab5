//! One planted corruption per line: what is broken, how, which check must see it, what it must name.

mod case;
mod circling;
mod conduct;
mod delivered;
mod delivery;
mod files;
