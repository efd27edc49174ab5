//! A simple parser for `.env`: `KEY=VALUE` lines with quotes, comments and `export`.

/// Returns the pairs of a `.env` in order. Skips lines that are not pairs: the file may belong to a
/// program with a richer format.
pub(super) fn parse(text: &str) -> Vec<(String, String)> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let line = line
        .strip_prefix("export")
        .filter(|rest| rest.starts_with([' ', '\t']))
        .unwrap_or(line);
    let (name, value) = line.split_once('=')?;
    let name = name.trim();
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    is_name.then(|| (name.to_owned(), unquote(value.trim())))
}

fn unquote(value: &str) -> String {
    if let Some(rest) = value.strip_prefix('\'') {
        return rest.split('\'').next().unwrap_or_default().to_owned();
    }
    if let Some(rest) = value.strip_prefix('"') {
        return double_quoted(rest);
    }
    // A comment needs a space before it: `#` may be part of a value.
    match value
        .find(" #")
        .or_else(|| value.starts_with('#').then_some(0))
    {
        Some(comment) => value[..comment].trim_end().to_owned(),
        None => value.to_owned(),
    }
}

fn double_quoted(rest: &str) -> String {
    let mut value = String::new();
    let mut chars = rest.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => match chars.next() {
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some(other) => value.push(other),
                None => {}
            },
            other => value.push(other),
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_notations_are_parsed() {
        let text = concat!(
            "# comment\n",
            "\n",
            "A=plain\n",
            "export B = spaced # comment\n",
            "C=\"quoted # no comment\" # comment\n",
            "D='single \\n $A'\n",
            "E=\"two\\nlines \\\"x\\\"\"\n",
            "F=with#hash=and=equals\n",
            "G=\n",
            "H=# nothing\n",
            "exportI=1\r\n",
            "no pair\n",
            "1X=bad name\n",
            "A B=bad name\n",
        );
        let expected = [
            ("A", "plain"),
            ("B", "spaced"),
            ("C", "quoted # no comment"),
            ("D", "single \\n $A"),
            ("E", "two\nlines \"x\""),
            ("F", "with#hash=and=equals"),
            ("G", ""),
            ("H", ""),
            ("exportI", "1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(parse(text), expected);
    }
}
