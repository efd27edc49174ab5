//! The values of the front matter with their locations.

use crate::lint::{FindingLocation, LintFinding};

/// A value and its location.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::task) struct YamlNode {
    pub(in crate::task) location: FindingLocation,
    pub(in crate::task) value: YamlValue,
}

/// A value of the front matter.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::task) enum YamlValue {
    /// A scalar in quotes or in block style: always a string.
    Quoted(String),
    /// A plain scalar: a string, a number, a boolean or nothing.
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

/// The parsed front matter.
pub(in crate::task) struct YamlTree {
    /// `None` if the front matter is empty.
    pub(in crate::task) root: Option<YamlNode>,
    pub(in crate::task) completeness: Completeness,
    /// The first error of each kind, and all duplicate keys.
    pub(in crate::task) findings: Vec<LintFinding>,
}

/// Whether a tree contains everything in its front matter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::task) enum Completeness {
    /// It does, so that its values can be checked even if there are findings.
    Whole,
    /// Some values are missing.
    Partial,
}
