//! One planted corruption per line: the broken part, the change, the check that must fail, and its
//! finding.

mod case;
mod circling;
mod conduct;
mod delivered;
mod delivery;
mod files;
