//! Builds the tree from the parser's events.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle, Span, options};

use super::errors::{self, DUPLICATE_KEY, MAX_DEPTH, marker_location};
use super::tree::{Completeness, YamlKey, YamlNode, YamlTree, YamlValue};
use crate::lint::{FindingLocation, LintFinding};

/// Parses the front matter.
pub(in crate::task) fn parse_front_matter(front: &str) -> YamlTree {
    let options = options! {
        disallow_directives: true,
        emit_unresolved_aliases: true,
        emit_anchor_events: true,
        emit_comments: false,
    };
    let mut builder = YamlBuilder::default();
    for next in Parser::new_from_str_with_options(front, options) {
        let step = match next {
            Ok((event, span)) => builder.handle_event(event, &span),
            Err(error) => {
                builder.give_up(errors::not_yaml(&error));
                YamlFlow::Stop
            }
        };
        if step == YamlFlow::Stop {
            break;
        }
    }
    YamlTree {
        root: builder.root,
        completeness: if builder.gave_up {
            Completeness::Partial
        } else {
            Completeness::Whole
        },
        findings: builder.findings,
    }
}

/// Whether to continue parsing.
#[derive(PartialEq)]
enum YamlFlow {
    Continue,
    Stop,
}

/// A list or map that is not complete yet.
enum OpenYamlNode {
    List(FindingLocation, Vec<YamlNode>),
    Map(FindingLocation, OpenYamlMap),
}

#[derive(Default)]
struct OpenYamlMap {
    entries: Vec<(YamlKey, YamlNode)>,
    lines: HashMap<String, u32>,
    /// The key of the next value.
    key: Option<YamlKey>,
}

#[derive(Default)]
struct YamlBuilder {
    open: Vec<OpenYamlNode>,
    root: Option<YamlNode>,
    documents: usize,
    gave_up: bool,
    findings: Vec<LintFinding>,
}

impl YamlBuilder {
    fn handle_event(&mut self, event: Event<'_>, span: &Span) -> YamlFlow {
        let location = marker_location(&span.start);
        if let Some(tag) = event.tag() {
            let start = span.tag_start().unwrap_or(span.start);
            self.give_up(errors::tag(&tag.original()).at_location(self::marker_location(&start)));
        }
        match event {
            Event::DocumentStart(..) => return self.start_document(location),
            Event::Anchor(_, name) => self.give_up(errors::anchor(&name).at_location(location)),
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                self.give_up(errors::alias().at_location(location));
                self.attach(YamlNode {
                    location,
                    value: YamlValue::Plain(String::new()),
                });
            }
            Event::Scalar(text, style, ..) => self.scalar(text, style, location),
            Event::SequenceStart(..) => {
                return self.start(OpenYamlNode::List(location, Vec::new()), location);
            }
            Event::MappingStart(..) => {
                return self.start(
                    OpenYamlNode::Map(location, OpenYamlMap::default()),
                    location,
                );
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            // Events without content.
            Event::StreamStart | Event::StreamEnd | Event::DocumentEnd | Event::Comment(..) | _ => {
            }
        }
        YamlFlow::Continue
    }

    fn start_document(&mut self, location: FindingLocation) -> YamlFlow {
        self.documents += 1;
        if self.documents == 1 {
            return YamlFlow::Continue;
        }
        self.give_up(errors::second_document().at_location(location));
        YamlFlow::Stop
    }

    fn scalar(&mut self, text: Cow<'_, str>, style: ScalarStyle, location: FindingLocation) {
        if let Some(control) = text
            .chars()
            .find(|c| c.is_control() && !matches!(c, '\n' | '\t'))
        {
            self.refuse(errors::control_character(control).at_location(location));
        }
        let text = text.into_owned();
        let value = if style == ScalarStyle::Plain {
            YamlValue::Plain(text)
        } else {
            YamlValue::Quoted(text)
        };
        self.attach(YamlNode { location, value });
    }

    fn start(&mut self, open: OpenYamlNode, location: FindingLocation) -> YamlFlow {
        if self.open.len() == MAX_DEPTH {
            self.give_up(errors::too_deep().at_location(location));
            return YamlFlow::Stop;
        }
        self.open.push(open);
        YamlFlow::Continue
    }

    fn end(&mut self) {
        let node = match self.open.pop() {
            None => return,
            Some(OpenYamlNode::List(location, items)) => YamlNode {
                location,
                value: YamlValue::List(items),
            },
            Some(OpenYamlNode::Map(location, map)) => YamlNode {
                location,
                value: YamlValue::Map(map.entries),
            },
        };
        self.attach(node);
    }

    /// Attaches a complete value to the open list or map, or at the root.
    fn attach(&mut self, node: YamlNode) {
        let finding = match self.open.last_mut() {
            None => {
                self.root.get_or_insert(node);
                None
            }
            Some(OpenYamlNode::List(_, items)) => {
                items.push(node);
                None
            }
            Some(OpenYamlNode::Map(_, map)) => match map.key.take() {
                None => map.open_key(node),
                Some(key) => map.close_key(key, node),
            },
        };
        match finding {
            None => {}
            Some(finding) if finding.code == DUPLICATE_KEY => self.refuse(finding),
            Some(finding) => self.give_up(finding),
        }
    }

    /// Records the first finding of each kind, but all duplicate keys.
    fn refuse(&mut self, finding: LintFinding) {
        let known = |code| self.findings.iter().any(|old| old.code == code);
        if finding.code == DUPLICATE_KEY || !known(finding.code) {
            self.findings.push(finding);
        }
    }

    /// Reports an error that leaves values unknown.
    fn give_up(&mut self, finding: LintFinding) {
        self.gave_up = true;
        self.refuse(finding);
    }
}

impl OpenYamlMap {
    /// Accepts a key. An invalid key remains as a placeholder for its value.
    fn open_key(&mut self, node: YamlNode) -> Option<LintFinding> {
        let location = node.location;
        let (name, finding) = match node.value {
            YamlValue::Plain(name) if name == "<<" => (name, Some(errors::merge_key())),
            YamlValue::Plain(name) | YamlValue::Quoted(name) => (name, None),
            YamlValue::List(_) | YamlValue::Map(_) => (String::new(), Some(errors::complex_key())),
        };
        self.key = Some(YamlKey { name, location });
        finding.map(|finding| finding.at_location(location))
    }

    fn close_key(&mut self, key: YamlKey, node: YamlNode) -> Option<LintFinding> {
        match self.lines.entry(key.name.clone()) {
            Entry::Vacant(vacant) => {
                vacant.insert(key.location.line);
                self.entries.push((key, node));
                None
            }
            Entry::Occupied(first) => {
                let finding = errors::duplicate_key(&key.name, *first.get(), key.location.line);
                Some(finding.at_location(key.location))
            }
        }
    }
}
