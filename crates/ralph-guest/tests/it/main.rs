//! The guest and its wire, without a container around them.

#[cfg(test)]
mod answers;
#[cfg(test)]
mod conversation;
#[cfg(test)]
mod wire;
