//! Integration tests of the providers, in one binary.

#[cfg(test)]
mod agents;
#[cfg(test)]
mod github;
#[cfg(test)]
mod model_http;
#[cfg(test)]
mod prices;
#[cfg(test)]
mod prune;
#[cfg(test)]
mod sandbox_docker;
#[cfg(test)]
mod sandbox_local;
#[cfg(test)]
mod seccomp;
