//! Splits text into lines with their endings.

/// One line and its ending: `\n`, `\r\n`, or nothing at the end of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileLine<'a> {
    pub(super) text: &'a str,
    pub(super) ending: &'a str,
}

/// Splits text into lines; concatenating all lines and endings restores it.
pub(super) fn split(text: &str) -> Vec<FileLine<'_>> {
    text.split_inclusive('\n')
        .map(|line| {
            let body = line.strip_suffix('\n').unwrap_or(line);
            let body = match line.len() - body.len() {
                0 => body,
                _ => body.strip_suffix('\r').unwrap_or(body),
            };
            FileLine {
                text: body,
                ending: &line[body.len()..],
            }
        })
        .collect()
}

/// Returns the most common ending, by default `\n`.
pub(super) fn common_ending(rows: &[FileLine<'_>]) -> &'static str {
    let windows = rows.iter().filter(|row| row.ending == "\r\n").count();
    let unix = rows.iter().filter(|row| row.ending == "\n").count();
    if windows > unix { "\r\n" } else { "\n" }
}
