//! To be filled.
/// P.
#[derive(Debug)]
pub struct Patched {
    /// t
    pub text: Option<String>,
    /// f
    pub fuzzy: bool,
    /// n
    pub notes: Vec<String>,
}
/// A.
pub fn apply(
    _path: &str,
    _original: Option<&str>,
    _patch: &str,
) -> Result<Patched, std::fmt::Error> {
    Err(std::fmt::Error)
}
