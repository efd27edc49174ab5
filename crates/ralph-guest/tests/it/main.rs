//! The guest and its wire, without a container around them.

#[cfg(test)]
mod requests;
#[cfg(test)]
mod test_guest;
#[cfg(test)]
mod wire;
