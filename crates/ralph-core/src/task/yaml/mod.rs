//! Parses front matter into a tree with locations.
//!
//! The tree is built from the YAML parser's events, so YAML features beyond plain settings are
//! rejected before anything is expanded: anchors, aliases, merge keys, tags, several documents,
//! directives and deep nesting. The running time is therefore linear in the size of the text. The
//! caller decides whether `30` is a number or a string.

mod builder;
mod errors;
mod tree;

pub(super) use builder::parse_front_matter;
pub(super) use tree::{Completeness, YamlKey, YamlNode, YamlValue};
