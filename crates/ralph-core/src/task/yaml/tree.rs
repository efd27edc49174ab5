//! The values of the front matter, each with its place.

use crate::lint::{FindingLocation, LintFinding};

/// A value and where it starts.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::task) struct YamlNode {
    pub(in crate::task) location: FindingLocation,
    pub(in crate::task) value: YamlValue,
}

/// A value of the front matter.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::task) enum YamlValue {
    /// A scalar that was quoted or written as a block: always a text.
    Quoted(String),
    /// A scalar as it stands there: a text, a number, a truth value or nothing.
    Plain(String),
    /// A list.
    List(Vec<YamlNode>),
    /// A map without duplicate keys.
    Map(Vec<(YamlKey, YamlNode)>),
}

/// A key of a map.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::task) struct YamlKey {
    pub(in crate::task) name: String,
    pub(in crate::task) location: FindingLocation,
}

/// What was read of the front matter.
pub(in crate::task) struct YamlTree {
    /// The values; none if the front matter is empty.
    pub(in crate::task) root: Option<YamlNode>,
    pub(in crate::task) completeness: Completeness,
    /// What is refused: of each kind the first one.
    pub(in crate::task) findings: Vec<LintFinding>,
}

/// Whether a tree holds what its front matter says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::task) enum Completeness {
    /// It does, so its values are worth looking at even if something is refused.
    Whole,
    /// Something is left out.
    Partial,
}
