//! Builds the tree from the parser's events.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle, Span, options};

use super::refusal::{self, DUPLICATE_KEY, MAX_DEPTH, place};
use super::tree::{Completeness, Key, Node, Tree, Value};
use crate::lint::{Finding, Place};

/// Reads the front matter.
pub(in crate::task) fn read(front: &str) -> Tree {
    let options = options! {
        disallow_directives: true,
        emit_unresolved_aliases: true,
        emit_anchor_events: true,
        emit_comments: false,
    };
    let mut builder = Builder::default();
    for next in Parser::new_from_str_with_options(front, options) {
        let step = match next {
            Ok((event, span)) => builder.take(event, &span),
            Err(error) => {
                builder.give_up(refusal::not_yaml(&error));
                Step::Stop
            }
        };
        if step == Step::Stop {
            break;
        }
    }
    Tree {
        root: builder.root,
        completeness: if builder.gave_up {
            Completeness::Partial
        } else {
            Completeness::Whole
        },
        findings: builder.findings,
    }
}

/// Whether the rest of the front matter is worth reading.
#[derive(PartialEq)]
enum Step {
    Continue,
    Stop,
}

/// A list or map whose end has not been reached.
enum Open {
    List(Place, Vec<Node>),
    Map(Place, OpenMap),
}

#[derive(Default)]
struct OpenMap {
    entries: Vec<(Key, Node)>,
    lines: HashMap<String, u32>,
    /// The key whose value comes next.
    key: Option<Key>,
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    root: Option<Node>,
    documents: usize,
    gave_up: bool,
    findings: Vec<Finding>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: &Span) -> Step {
        let place = place(&span.start);
        if let Some(tag) = event.tag() {
            let start = span.tag_start().unwrap_or(span.start);
            self.give_up(refusal::tag(&tag.original()).at(self::place(&start)));
        }
        match event {
            Event::DocumentStart(..) => return self.start_document(place),
            Event::Anchor(_, name) => self.give_up(refusal::anchor(&name).at(place)),
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                self.give_up(refusal::alias().at(place));
                self.put(Node {
                    place,
                    value: Value::Plain(String::new()),
                });
            }
            Event::Scalar(text, style, ..) => self.scalar(text, style, place),
            Event::SequenceStart(..) => return self.start(Open::List(place, Vec::new()), place),
            Event::MappingStart(..) => {
                return self.start(Open::Map(place, OpenMap::default()), place);
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            // Marks without content.
            Event::StreamStart | Event::StreamEnd | Event::DocumentEnd | Event::Comment(..) | _ => {
            }
        }
        Step::Continue
    }

    fn start_document(&mut self, place: Place) -> Step {
        self.documents += 1;
        if self.documents == 1 {
            return Step::Continue;
        }
        self.give_up(refusal::second_document().at(place));
        Step::Stop
    }

    fn scalar(&mut self, text: Cow<'_, str>, style: ScalarStyle, place: Place) {
        if let Some(control) = text
            .chars()
            .find(|c| c.is_control() && !matches!(c, '\n' | '\t'))
        {
            self.refuse(refusal::control_character(control).at(place));
        }
        let text = text.into_owned();
        let value = if style == ScalarStyle::Plain {
            Value::Plain(text)
        } else {
            Value::Quoted(text)
        };
        self.put(Node { place, value });
    }

    fn start(&mut self, open: Open, place: Place) -> Step {
        if self.open.len() == MAX_DEPTH {
            self.give_up(refusal::too_deep().at(place));
            return Step::Stop;
        }
        self.open.push(open);
        Step::Continue
    }

    fn end(&mut self) {
        let node = match self.open.pop() {
            None => return,
            Some(Open::List(place, items)) => Node {
                place,
                value: Value::List(items),
            },
            Some(Open::Map(place, map)) => Node {
                place,
                value: Value::Map(map.entries),
            },
        };
        self.put(node);
    }

    /// Puts a complete value where it belongs: into the open list or map, or at the root.
    fn put(&mut self, node: Node) {
        let refused = match self.open.last_mut() {
            None => {
                self.root.get_or_insert(node);
                None
            }
            Some(Open::List(_, items)) => {
                items.push(node);
                None
            }
            Some(Open::Map(_, map)) => match map.key.take() {
                None => map.open_key(node),
                Some(key) => map.close_key(key, node),
            },
        };
        match refused {
            None => {}
            Some(finding) if finding.code == DUPLICATE_KEY => self.refuse(finding),
            Some(finding) => self.give_up(finding),
        }
    }

    /// Keeps the first finding of each kind; duplicate keys are all kept, each names another key.
    fn refuse(&mut self, finding: Finding) {
        let known = |code| self.findings.iter().any(|old| old.code == code);
        if finding.code == DUPLICATE_KEY || !known(finding.code) {
            self.findings.push(finding);
        }
    }

    /// Refuses something without which the values are not known.
    fn give_up(&mut self, finding: Finding) {
        self.gave_up = true;
        self.refuse(finding);
    }
}

impl OpenMap {
    /// Takes a key. What is refused still stands for a key, so that its value finds its place.
    fn open_key(&mut self, node: Node) -> Option<Finding> {
        let place = node.place;
        let (name, refused) = match node.value {
            Value::Plain(name) if name == "<<" => (name, Some(refusal::merge_key())),
            Value::Plain(name) | Value::Quoted(name) => (name, None),
            Value::List(_) | Value::Map(_) => (String::new(), Some(refusal::complex_key())),
        };
        self.key = Some(Key { name, place });
        refused.map(|finding| finding.at(place))
    }

    fn close_key(&mut self, key: Key, node: Node) -> Option<Finding> {
        match self.lines.entry(key.name.clone()) {
            Entry::Vacant(vacant) => {
                vacant.insert(key.place.line);
                self.entries.push((key, node));
                None
            }
            Entry::Occupied(first) => {
                let finding = refusal::duplicate_key(&key.name, *first.get(), key.place.line);
                Some(finding.at(key.place))
            }
        }
    }
}
