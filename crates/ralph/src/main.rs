//! The program `ralph`.
fn main() {}
