//! Parses the body of a task: its title, milestones, checkboxes and verify lines.
//!
//! The Markdown parser recognises headings, list items and boxes, so text in code fences and HTML
//! comments does not count. Texts and commands are copied from the source: Markdown would remove
//! the asterisks of a command that is not in a code span.

use std::ops::Range;

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::criteria::{MAX_CHECKBOXES, Milestone, RawBox};
use super::grammar::{LineIndex, after_bullet, milestone_heading, title, verify_line};
use crate::lint::{self, LintFinding};

/// A parsed body, before its boxes get their ids.
#[derive(Default)]
pub(super) struct TaskBody {
    pub(super) title: Option<String>,
    pub(super) milestones: Vec<Milestone>,
    pub(super) boxes: Vec<RawBox>,
    /// The number of boxes, including those beyond the limit.
    pub(super) box_count: usize,
    /// Lint findings about ignored or unusual lines.
    pub(super) remarks: Vec<LintFinding>,
}

/// Parses the body, which starts at offset `start` of the text, in line `first_line`.
pub(super) fn parse_body(text: &str, start: usize, first_line: u32) -> TaskBody {
    let source = &text[start..];
    let mut parser = TaskBodyParser {
        source,
        start,
        lines: LineIndex::new(source, first_line),
        body: TaskBody::default(),
        items: Vec::new(),
        literal_depth: 0,
        heading: None,
        milestone: None,
        verify: None,
    };
    let events = Parser::new_ext(source, Options::ENABLE_TASKLISTS).into_offset_iter();
    for (event, range) in events {
        parser.handle_event(event, range);
    }
    parser.finish_verify();
    parser.body
}

/// The state of the parser.
struct TaskBodyParser<'s> {
    source: &'s str,
    start: usize,
    lines: LineIndex,
    body: TaskBody,
    /// The enclosing list items, innermost last.
    items: Vec<OpenListItem>,
    /// The number of enclosing code and HTML blocks.
    literal_depth: usize,
    heading: Option<OpenHeading>,
    milestone: Option<(String, HeadingLevel)>,
    verify: Option<OpenVerifyLine<'s>>,
}

struct OpenListItem {
    /// Start of the item's own text, after the bullet and the box.
    text_start: usize,
    /// Index of the item's box.
    own_box: Option<usize>,
    /// The last line that was examined.
    line: Option<u32>,
}

struct OpenHeading {
    level: HeadingLevel,
    line: u32,
    text: String,
}

/// A verify line that is not complete yet.
struct OpenVerifyLine<'s> {
    line: u32,
    own_box: Option<usize>,
    /// The text after `verify:`.
    rest: &'s str,
    /// The code spans in the line.
    commands: Vec<CowStr<'s>>,
}

impl OpenVerifyLine<'_> {
    /// Returns the command and a lint finding about the line, if any.
    fn command(&self) -> (Option<String>, Option<LintFinding>) {
        let command = self.commands.first().map_or(self.rest, |code| code.trim());
        if command.is_empty() {
            return (None, Some(empty_verify()));
        }
        match self.commands.len() {
            0 if command.contains('`') => (None, Some(unclosed_code())),
            0 | 1 => (Some(command.to_owned()), None),
            _ => (Some(command.to_owned()), Some(further_commands(command))),
        }
    }
}

fn stray_verify() -> LintFinding {
    LintFinding::warning(
        "stray-verify",
        "this verify line does not belong to a checkbox and is ignored",
        "indent it by two spaces below its checkbox",
    )
}

fn empty_verify() -> LintFinding {
    LintFinding::error(
        "empty-command",
        "this verify line has no command",
        "write the command in backticks after `verify:`",
    )
}

fn unclosed_code() -> LintFinding {
    LintFinding::error(
        "unclosed-code",
        "the command of this verify line has no closing backtick",
        "put a backtick on either side of the command",
    )
}

fn further_commands(first: &str) -> LintFinding {
    LintFinding::warning(
        "further-commands",
        format!("only the first command of this verify line is used: `{first}`"),
        "write one verify line per command",
    )
}

impl<'s> TaskBodyParser<'s> {
    fn handle_event(&mut self, event: Event<'s>, range: Range<usize>) {
        match event {
            Event::Start(tag) => self.enter(&tag, &range),
            Event::End(tag) => self.leave(tag),
            Event::TaskListMarker(checked) => self.open_box(checked, &range),
            Event::Code(code) => self.handle_inline(&range, Some(code)),
            Event::Text(text) => {
                if let Some(heading) = &mut self.heading {
                    heading.text.push_str(&text);
                } else {
                    self.handle_inline(&range, None);
                }
            }
            Event::InlineHtml(_) => self.handle_inline(&range, None),
            Event::SoftBreak | Event::HardBreak => {
                if let Some(heading) = &mut self.heading {
                    heading.text.push(' ');
                }
            }
            Event::Html(_)
            | Event::Rule
            | Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::FootnoteReference(_) => {}
        }
    }

    fn enter(&mut self, tag: &Tag<'_>, range: &Range<usize>) {
        if let Tag::Heading { level, .. } = tag {
            self.heading = Some(OpenHeading {
                level: *level,
                line: self.lines.line_number(range.start),
                text: String::new(),
            });
        } else if matches!(tag, Tag::Item) {
            self.items.push(OpenListItem {
                text_start: after_bullet(self.source, range.start),
                own_box: None,
                line: None,
            });
        } else if matches!(tag, Tag::CodeBlock(_) | Tag::HtmlBlock) {
            self.literal_depth += 1;
        }
    }

    fn leave(&mut self, tag: TagEnd) {
        if matches!(tag, TagEnd::Heading(_)) {
            self.close_heading();
        } else if tag == TagEnd::Item {
            self.finish_verify();
            self.items.pop();
        } else if matches!(tag, TagEnd::CodeBlock | TagEnd::HtmlBlock) {
            self.literal_depth = self.literal_depth.saturating_sub(1);
        }
    }

    fn close_heading(&mut self) {
        let Some(heading) = self.heading.take() else {
            return;
        };
        if let Some((id, title)) = milestone_heading(&heading.text) {
            self.milestone = Some((id.to_owned(), heading.level));
            self.body.milestones.push(Milestone {
                id: id.to_owned(),
                title: title.to_owned(),
                line: heading.line,
            });
            return;
        }
        if self.body.title.is_none() && heading.level == HeadingLevel::H1 {
            self.body.title = title(&heading.text);
        }
        // A milestone ends at the next heading of the same or a higher rank.
        if matches!(&self.milestone, Some((_, level)) if heading.level <= *level) {
            self.milestone = None;
        }
    }

    fn open_box(&mut self, checked: bool, range: &Range<usize>) {
        self.body.box_count += 1;
        let Some(item) = self.items.last_mut() else {
            return;
        };
        item.text_start = range.end;
        if self.body.boxes.len() == MAX_CHECKBOXES {
            return;
        }
        item.own_box = Some(self.body.boxes.len());
        let line = self.lines.line_number(range.start);
        self.body.boxes.push(RawBox {
            text: String::new(),
            milestone: self.milestone.as_ref().map(|(id, _)| id.clone()),
            checked,
            line,
            last_line: line,
            verify: Vec::new(),
            // The range ends after the closing bracket.
            mark: self.start + range.end - 2,
        });
    }

    /// Handles inline text in a list item, which may be the first of its line.
    fn handle_inline(&mut self, range: &Range<usize>, code: Option<CowStr<'s>>) {
        if let (Some(heading), Some(code)) = (&mut self.heading, &code) {
            heading.text.push_str(code);
        }
        if self.literal_depth > 0 || self.heading.is_some() {
            return;
        }
        let line = self.lines.line_number(range.start);
        if self
            .items
            .last()
            .is_some_and(|item| item.line != Some(line))
        {
            self.finish_verify();
            self.open_line(line);
        }
        if let (Some(verify), Some(code)) = (&mut self.verify, code)
            && verify.line == line
        {
            verify.commands.push(code);
        }
    }

    /// Decides whether a line of a list item is a verify line or part of a box's text.
    fn open_line(&mut self, line: u32) {
        let enclosing = self.items.iter().rev().find_map(|item| item.own_box);
        let Some(item) = self.items.last_mut() else {
            return;
        };
        item.line = Some(line);
        let raw = self.lines.rest_of_line(self.source, line, item.text_start);
        let raw = raw.trim_start_matches([' ', '\t', '>']).trim_end();
        if let Some(rest) = verify_line(raw) {
            self.verify = Some(OpenVerifyLine {
                line,
                own_box: enclosing,
                rest,
                commands: Vec::new(),
            });
        } else if let Some(own_box) = item.own_box.map(|index| &mut self.body.boxes[index]) {
            own_box.add_line(raw, line);
        }
    }

    fn finish_verify(&mut self) {
        let Some(verify) = self.verify.take() else {
            return;
        };
        let remark = match verify.own_box {
            None => Some(stray_verify()),
            Some(own_box) => {
                let (command, remark) = verify.command();
                let doubt = command.as_deref().and_then(lint::lint_command);
                self.body
                    .remarks
                    .extend(doubt.map(|finding| finding.on_line(verify.line)));
                self.body.boxes[own_box].verify.extend(command);
                remark
            }
        };
        let remark = remark.map(|finding| finding.on_line(verify.line));
        self.body.remarks.extend(remark);
    }
}
