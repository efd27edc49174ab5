//! The local sandbox: the common contract and its specifics.

#[cfg(target_os = "linux")]
mod confinement;
mod contract;
mod directories;
mod fixture;
#[cfg(target_os = "linux")]
pub(crate) mod own_process;
#[cfg(target_os = "linux")]
mod processes;
#[cfg(target_os = "linux")]
mod resources;
