//! Tables of corruptions; each must fail exactly one check with the expected finding.

mod case;
mod circling;
mod conduct;
mod delivered;
mod delivery;
mod files;
