//! Tests of the guest and its protocol without a container.

#[cfg(test)]
mod requests;
#[cfg(test)]
mod test_guest;
#[cfg(test)]
mod wire;
