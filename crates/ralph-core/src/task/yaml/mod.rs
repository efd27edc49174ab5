//! Reads front matter into a tree that remembers where everything stood.
//!
//! The tree is built from the YAML parser's events, so what YAML can do beyond plain settings is
//! refused where it stands, before anything is expanded: anchors, aliases, merge keys, tags, several
//! documents, directives and deep nesting. Reading therefore takes time in proportion to the text,
//! whatever the text is. Whether `30` is a number or a text is decided by who asks for the value.

mod builder;
mod errors;
mod tree;

pub(super) use builder::parse_front_matter;
pub(super) use tree::{Completeness, YamlKey, YamlNode, YamlValue};
