//! The text of a specification, with the positions of its steps.

use std::collections::BTreeMap;

use pulldown_cmark::{Event, HeadingLevel, Parser, Tag};

use super::commands::step_commands;
use super::heading::{StepMark, step_heading};
use super::notes::{self, NotesBlock};

/// A step of a specification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecStep {
    /// Digits, or groups of them: `3`, `3.1`.
    pub number: String,
    pub title: String,
    pub mark: StepMark,
    /// The lines of notes below the step.
    pub notes: Vec<String>,
    /// The commands of its `Test` and `Verify` lines.
    pub commands: Vec<String>,
    /// The line of its heading, counted from 0.
    pub(super) heading: usize,
    /// The bytes of the heading before its marks.
    heading_base: usize,
    /// The line after its section.
    pub(super) end: usize,
    block: Option<NotesBlock>,
}

/// The new state of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepUpdate {
    pub mark: StepMark,
    pub notes: Vec<String>,
}

/// A text with steps. Steps without a number of their own, and lines in code, do not count.
#[derive(Debug, Clone)]
pub struct SpecDocument {
    pub(super) lines: Vec<String>,
    pub(super) steps: Vec<SpecStep>,
    /// The lines that are headings of steps by their first words only.
    pub(super) unreadable: Vec<(usize, String)>,
}

/// Returns a text with `\n` line ends, without a byte order mark and with one line end after its last line.
pub fn normalise_body(body: &str) -> String {
    let body = body.strip_prefix('\u{feff}').unwrap_or(body);
    let mut text = body.replace("\r\n", "\n");
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

impl SpecDocument {
    /// Parses a text. Its line ends become `\n`.
    pub fn parse(text: &str) -> Self {
        let text = normalise_body(text);
        let outline = Outline::of(&text);
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut steps = Vec::new();
        let mut unreadable = Vec::new();
        for (index, (line, level)) in outline.headings.iter().enumerate() {
            let Some(heading) = lines.get(*line).and_then(|text| step_heading(text)) else {
                continue;
            };
            let heading = match heading {
                Ok(heading) => heading,
                Err(text) => {
                    unreadable.push((*line, text));
                    continue;
                }
            };
            let mut following = outline.headings[index + 1..].iter();
            let is_end = |(line, other): &&(usize, HeadingLevel)| {
                other <= level
                    || lines
                        .get(*line)
                        .is_some_and(|text| step_heading(text).is_some())
            };
            let end = following
                .find(is_end)
                .map_or(lines.len(), |(line, _)| *line);
            let block = NotesBlock::find(&lines, line + 1..end);
            let notes = block
                .as_ref()
                .map_or_else(Vec::new, |block| block.notes(&lines));
            let is_text = |at: &usize| {
                !outline.is_literal(*at)
                    && block.as_ref().is_none_or(|block| !block.range.contains(at))
            };
            let own = (line + 1..end).filter(is_text).map(|at| lines[at].as_str());
            steps.push(SpecStep {
                commands: step_commands(own),
                number: heading.number,
                title: heading.title,
                mark: heading.mark,
                notes,
                heading: *line,
                heading_base: heading.base,
                end,
                block,
            });
        }
        Self {
            lines,
            steps,
            unreadable,
        }
    }

    /// Returns the steps in the order of the text.
    pub fn steps(&self) -> &[SpecStep] {
        &self.steps
    }

    /// Returns the first step with a number.
    pub fn step(&self, number: &str) -> Option<&SpecStep> {
        self.steps.iter().find(|step| step.number == number)
    }

    /// Returns the whole text.
    pub fn text(&self) -> String {
        join(&self.lines)
    }

    /// Returns the text with other marks and notes. Steps without an update stay as they are.
    pub fn with_updates(&self, updates: &BTreeMap<String, StepUpdate>) -> String {
        let mut lines: Vec<String> = Vec::with_capacity(self.lines.len());
        let mut copied = 0;
        for step in &self.steps {
            let Some(update) = updates.get(&step.number) else {
                continue;
            };
            lines.extend_from_slice(&self.lines[copied..step.heading]);
            lines.push(self.heading_line(step, &update.mark));
            copied = step.end;
            if update.notes == step.notes {
                lines.extend_from_slice(&self.lines[step.heading + 1..step.end]);
                continue;
            }
            self.push_section(step, &update.notes, &mut lines);
        }
        lines.extend_from_slice(&self.lines[copied..]);
        join(&lines)
    }

    /// Returns the text in which exactly the given steps are done, of those in `known`. Other steps keep
    /// their marks.
    pub fn with_done(&self, known: &[String], is_done: impl Fn(&str) -> bool) -> String {
        let update = |step: &SpecStep| {
            let mark = match (&step.mark, is_done(&step.number)) {
                (_, true) => StepMark::Done,
                (StepMark::Done, false) => StepMark::Open,
                (mark @ (StepMark::Open | StepMark::Blocked(_)), false) => mark.clone(),
            };
            let update = StepUpdate {
                mark,
                notes: step.notes.clone(),
            };
            (step.number.clone(), update)
        };
        let affected = self
            .steps
            .iter()
            .filter(|step| known.contains(&step.number));
        self.with_updates(&affected.map(update).collect())
    }

    fn heading_line(&self, step: &SpecStep, mark: &StepMark) -> String {
        let line = &self.lines[step.heading];
        if *mark == step.mark {
            return line.clone();
        }
        format!("{}{}", &line[..step.heading_base], mark.suffix())
    }

    /// Adds the section of a step with other notes at its end.
    fn push_section(&self, step: &SpecStep, notes: &[String], lines: &mut Vec<String>) {
        let first = lines.len();
        let is_kept = |at: &usize| {
            step.block
                .as_ref()
                .is_none_or(|block| !block.range.contains(at))
        };
        let kept = (step.heading + 1..step.end).filter(is_kept);
        lines.extend(kept.map(|at| self.lines[at].clone()));
        while lines.len() > first && lines.last().is_some_and(|line| line.trim().is_empty()) {
            lines.pop();
        }
        if !notes.is_empty() {
            lines.push(String::new());
            lines.extend(notes::rendered(notes));
        }
        if step.end < self.lines.len() {
            lines.push(String::new());
        }
    }
}

fn join(lines: &[String]) -> String {
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

/// The headings of a text and the lines that are not text.
struct Outline {
    headings: Vec<(usize, HeadingLevel)>,
    /// Line ranges of code and HTML blocks, in order.
    literal: Vec<(usize, usize)>,
}

impl Outline {
    fn of(text: &str) -> Self {
        let starts: Vec<usize> = std::iter::once(0)
            .chain(text.match_indices('\n').map(|(at, _)| at + 1))
            .collect();
        let line = |offset: usize| {
            starts
                .partition_point(|start| *start <= offset)
                .saturating_sub(1)
        };
        let mut outline = Self {
            headings: Vec::new(),
            literal: Vec::new(),
        };
        for (event, range) in Parser::new(text).into_offset_iter() {
            let Event::Start(tag) = event else {
                continue;
            };
            if let Tag::Heading { level, .. } = tag {
                outline.headings.push((line(range.start), level));
            } else if matches!(tag, Tag::CodeBlock(_) | Tag::HtmlBlock) {
                outline
                    .literal
                    .push((line(range.start), line(range.end.saturating_sub(1)) + 1));
            }
        }
        outline
    }

    fn is_literal(&self, line: usize) -> bool {
        let before = self.literal.partition_point(|(start, _)| *start <= line);
        before > 0 && self.literal[before - 1].1 > line
    }
}
