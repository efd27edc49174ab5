//! Splits build output into lines.

use std::collections::VecDeque;

use ralph_core::parse_value;

use super::progress::ImageProgress;

/// Number of lines shown for a failed build.
const TAIL_LINES: usize = 20;

/// Maximum stored line length; the rest is dropped.
const MAX_LINE_BYTES: usize = 4096;

/// Assembles chunks of output into lines and retains the last ones.
#[derive(Debug, Default)]
pub(super) struct BuildOutput {
    partial: String,
    last: VecDeque<String>,
}

impl BuildOutput {
    /// Adds a chunk and returns the progress it completes.
    pub(super) fn push(&mut self, chunk: &str) -> Vec<ImageProgress> {
        let mut progress = Vec::new();
        for part in chunk.split_inclusive(['\n', '\r']) {
            let is_complete = part.ends_with(['\n', '\r']);
            let part = part.trim_end_matches(['\n', '\r']);
            let room = MAX_LINE_BYTES.saturating_sub(self.partial.len());
            self.partial
                .push_str(&part[..part.floor_char_boundary(room)]);
            if is_complete {
                progress.extend(self.flush());
            }
        }
        progress
    }

    /// Ends the current line.
    pub(super) fn flush(&mut self) -> Option<ImageProgress> {
        let line = strip_ansi(&std::mem::take(&mut self.partial));
        let line = line.trim_end();
        if line.is_empty() || is_engine_noise(line) {
            return None;
        }
        if self.last.len() == TAIL_LINES {
            self.last.pop_front();
        }
        self.last.push_back(line.to_owned());
        Some(parse_step(line).unwrap_or_else(|| ImageProgress::Output(line.to_owned())))
    }

    /// Returns the last lines.
    pub(super) fn tail(mut self) -> Vec<String> {
        self.flush();
        self.last.into()
    }
}

/// Returns whether a line is about layers or intermediate containers, which are of no interest.
fn is_engine_noise(line: &str) -> bool {
    [
        " ---> ",
        "Removing intermediate container ",
        "Successfully built ",
        "Successfully tagged ",
    ]
    .iter()
    .any(|start| line.starts_with(start))
}

/// Parses `Step 3/11 : RUN …`.
fn parse_step(line: &str) -> Option<ImageProgress> {
    let (numbers, instruction) = line.strip_prefix("Step ")?.split_once(" : ")?;
    let (number, total) = numbers.split_once('/')?;
    Some(ImageProgress::Step {
        number: parse_value(number)?,
        total: parse_value(total)?,
        // Continuation lines leave their indentation.
        instruction: instruction.split_whitespace().collect::<Vec<_>>().join(" "),
    })
}

/// Removes the colour codes that the Docker Engine adds to errors.
fn strip_ansi(line: &str) -> String {
    let mut clean = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(start) = rest.find("\u{1b}[") {
        clean.push_str(&rest[..start]);
        let after = &rest[start + 2..];
        let end = after.find(|c: char| !c.is_ascii_digit() && c != ';');
        rest = end.map_or("", |end| {
            let letter = after[end..].chars().next().map_or(0, char::len_utf8);
            &after[end + letter..]
        });
    }
    clean.push_str(rest);
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(text: &str) -> ImageProgress {
        ImageProgress::Output(text.to_owned())
    }

    #[test]
    fn pieces_become_lines_and_steps() {
        let mut lines = BuildOutput::default();
        assert_eq!(lines.push("Step 3/11 : RUN ma"), []);
        assert_eq!(
            lines.push("ke    && true\n"),
            [ImageProgress::Step {
                number: 3,
                total: 11,
                instruction: "RUN make && true".to_owned()
            }]
        );
        assert_eq!(
            lines.push("one\r\ntwo\rthree\n\n"),
            ["one", "two", "three"].map(output)
        );
        assert_eq!(
            lines.push("\u{1b}[91mred\u{1b}[0m \u{1b}[1;31mbold\n"),
            [output("red bold")]
        );
        let noise = " ---> Running in 12ab\nRemoving intermediate container 12ab\n ---> 34cd\n";
        assert_eq!(lines.push(noise), []);
        assert_eq!(lines.push("Step one\nlast"), [output("Step one")]);
        assert_eq!(lines.flush(), Some(output("last")));
        assert_eq!(lines.flush(), None);
    }

    #[test]
    fn only_the_last_lines_are_kept() {
        let mut lines = BuildOutput::default();
        for number in 1..=30 {
            lines.push(&format!("line {number}\n"));
        }
        lines.push("open");
        let expected: Vec<String> = (12..=30)
            .map(|number| format!("line {number}"))
            .chain(["open".to_owned()])
            .collect();
        assert_eq!(lines.tail(), expected);
    }

    #[test]
    fn a_line_without_end_is_cut() {
        let mut lines = BuildOutput::default();
        lines.push(&"é".repeat(10_000));
        lines.push("more");
        let tail = lines.tail();
        assert_eq!(tail, ["é".repeat(MAX_LINE_BYTES / 2)]);
    }
}
