//! The values of the front matter, each with its place.

use crate::lint::{Finding, Place};

/// A value and where it starts.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::task) struct Node {
    pub(in crate::task) place: Place,
    pub(in crate::task) value: Value,
}

/// A value of the front matter.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::task) enum Value {
    /// A scalar that was quoted or written as a block: always a text.
    Quoted(String),
    /// A scalar as it stands there: a text, a number, a truth value or nothing.
    Plain(String),
    /// A list.
    List(Vec<Node>),
    /// A map without duplicate keys.
    Map(Vec<(Key, Node)>),
}

/// A key of a map.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::task) struct Key {
    pub(in crate::task) name: String,
    pub(in crate::task) place: Place,
}

/// What was read of the front matter.
pub(in crate::task) struct Tree {
    /// The values; none if the front matter is empty.
    pub(in crate::task) root: Option<Node>,
    pub(in crate::task) completeness: Completeness,
    /// What is refused: of each kind the first one.
    pub(in crate::task) findings: Vec<Finding>,
}

/// Whether a tree holds what its front matter says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::task) enum Completeness {
    /// It does, so its values are worth looking at even if something is refused.
    Whole,
    /// Something is left out.
    Partial,
}
