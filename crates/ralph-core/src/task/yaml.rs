//! Reads front matter into a tree that remembers where everything stood.
//!
//! The tree is built from the YAML parser's events, so what YAML can do beyond plain settings is
//! refused where it stands, before anything is expanded: anchors, aliases, merge keys, tags, several
//! documents, directives and deep nesting. Reading therefore takes time in proportion to the text,
//! whatever the text is. Whether `30` is a number or a text is decided by who asks for the value.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde_saphyr::granit_parser::{
    ErrorKind, Event, Marker, Parser, ScalarStyle, ScanError, Span, options,
};

use crate::lint::{Finding, Place, count, excerpt};

/// How deep lists and maps may be nested.
pub(super) const MAX_DEPTH: usize = 16;

/// A value and where it starts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) value: Value,
}

/// A value of the front matter.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
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
pub(super) struct Key {
    pub(super) name: String,
    pub(super) place: Place,
}

/// What was read of the front matter.
pub(super) struct Tree {
    /// The values; none if the front matter is empty.
    pub(super) root: Option<Node>,
    pub(super) completeness: Completeness,
    /// What is refused: of each kind the first one.
    pub(super) findings: Vec<Finding>,
}

/// Whether a tree holds what its front matter says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Completeness {
    /// It does, so its values are worth looking at even if something is refused.
    Whole,
    /// Something is left out.
    Partial,
}

/// Reads the front matter.
pub(super) fn read(front: &str) -> Tree {
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
                builder.give_up(not_yaml(&error));
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
        if let (Some(tag), Some(start)) = (event.tag(), span.tag_start()) {
            let name = excerpt(&tag.original());
            self.give_up(tag_refused(&name).at(self::place(&start)));
        }
        match event {
            Event::DocumentStart(..) => return self.start_document(place),
            Event::Anchor(_, name) => self.give_up(anchor_refused(&name).at(place)),
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                self.give_up(alias_refused().at(place));
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
        let finding = Finding::error(
            "yaml-documents",
            "the front matter holds more than one YAML document",
            "keep one set of settings, without `---` or `...` inside",
        );
        self.give_up(finding.at(place));
        Step::Stop
    }

    fn scalar(&mut self, text: Cow<'_, str>, style: ScalarStyle, place: Place) {
        if let Some(control) = text
            .chars()
            .find(|c| c.is_control() && !matches!(c, '\n' | '\t'))
        {
            let finding = Finding::error(
                "control-character",
                format!("a text contains the control character {control:?}"),
                "remove the escape; `\\n` and `\\t` are the only control characters allowed",
            );
            self.refuse(finding.at(place));
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
            let finding = Finding::error(
                "yaml-depth",
                format!("lists and maps are nested more than {MAX_DEPTH} deep"),
                "settings need two levels at most",
            );
            self.give_up(finding.at(place));
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
        let known = self.findings.iter().any(|old| old.code == finding.code);
        if !known || finding.code == DUPLICATE_KEY {
            self.findings.push(finding);
        }
    }

    /// Refuses something without which the values are not known.
    fn give_up(&mut self, finding: Finding) {
        self.gave_up = true;
        self.refuse(finding);
    }
}

const DUPLICATE_KEY: &str = "duplicate-key";

impl OpenMap {
    /// Takes a key. What is refused still stands for a key, so that its value finds its place.
    fn open_key(&mut self, node: Node) -> Option<Finding> {
        let place = node.place;
        let (name, refused) = match node.value {
            Value::Plain(name) if name == "<<" => {
                let finding = Finding::error(
                    "yaml-merge-key",
                    "merge keys (`<<`) are not allowed",
                    "write the settings out",
                );
                (name, Some(finding.at(place)))
            }
            Value::Plain(name) | Value::Quoted(name) => (name, None),
            Value::List(_) | Value::Map(_) => {
                let finding = Finding::error(
                    "yaml-complex-key",
                    "a key is a list or a map",
                    "use plain words as keys",
                );
                (String::new(), Some(finding.at(place)))
            }
        };
        self.key = Some(Key { name, place });
        refused
    }

    fn close_key(&mut self, key: Key, node: Node) -> Option<Finding> {
        match self.lines.entry(key.name.clone()) {
            Entry::Vacant(vacant) => {
                vacant.insert(key.place.line);
                self.entries.push((key, node));
                None
            }
            Entry::Occupied(first) => {
                let finding = Finding::error(
                    DUPLICATE_KEY,
                    format!(
                        "key `{}` is given twice, in line {} and in line {}",
                        excerpt(&key.name),
                        first.get(),
                        key.place.line
                    ),
                    "keep one of the two lines",
                );
                Some(finding.at(key.place))
            }
        }
    }
}

/// Returns the place in the file: the front matter starts in its second line.
fn place(marker: &Marker) -> Place {
    Place {
        line: count(marker.line() + 1),
        column: count(marker.col() + 1),
    }
}

fn anchor_refused(name: &str) -> Finding {
    Finding::error(
        "yaml-anchor",
        format!("anchors (`&{}`) are not allowed", excerpt(name)),
        "write the value out where it is used; a text that starts with `&` needs quotes",
    )
}

fn alias_refused() -> Finding {
    Finding::error(
        "yaml-alias",
        "aliases (`*name`) are not allowed",
        "write the value out; a text that starts with `*` needs quotes",
    )
}

fn tag_refused(name: &str) -> Finding {
    Finding::error(
        "yaml-tag",
        format!("tags (`{name}`) are not allowed"),
        "remove it; a text that starts with `!` needs quotes",
    )
}

fn not_yaml(error: &ScanError) -> Finding {
    let place = place(error.marker());
    // A tag of an unknown kind is refused like every other tag, an undeclared handle is no news.
    if *error.kind() == ErrorKind::UndeclaredTagHandle {
        return tag_refused("!").at(place);
    }
    Finding::error(
        "invalid-yaml",
        format!("the front matter is not valid YAML: {}", error.info()),
        "indent with spaces, and put quotes around a text that contains `: ` or ` #`",
    )
    .at(place)
}
