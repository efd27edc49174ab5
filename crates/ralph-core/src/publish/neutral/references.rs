//! References to issues and users: `#12`, `GH-12`, `owner/repo#12`, `@user`, addresses of issues.

use super::BREAK;

/// Breaks mentions and references to issues in text without Markdown.
pub(super) fn break_references(text: &str, own_issue: Option<u64>) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut at = 0;
    while let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) {
        if let Some(url) = url_at(text, at).filter(|url| issue_of_url(url).is_some()) {
            at += push_broken_scheme(url, &mut out);
            continue;
        }
        at += push_reference(text, at, c, own_issue, &mut out);
    }
    out
}

/// Writes the character at a position, or the reference that starts there, and returns the number of
/// bytes read.
pub(super) fn push_reference(
    text: &str,
    at: usize,
    c: char,
    own_issue: Option<u64>,
    out: &mut String,
) -> usize {
    let before = text.get(..at).and_then(|before| before.chars().next_back());
    let after = text.get(at + c.len_utf8()..).unwrap_or_default();
    out.push(c);
    let follows = |is: fn(&char) -> bool| after.chars().next().as_ref().is_some_and(is);
    match c {
        '@' if !before.is_some_and(|c| c.is_ascii_alphanumeric())
            && follows(char::is_ascii_alphanumeric) =>
        {
            out.push(BREAK);
        }
        '#' if follows(char::is_ascii_digit) => {
            let is_plain = !before.is_some_and(|c| c.is_alphanumeric() || "/_-.".contains(c));
            if !(is_plain && is_own(after, own_issue)) {
                out.push(BREAK);
            }
        }
        '-' if follows(char::is_ascii_digit)
            && ends_with_gh(text.get(..at).unwrap_or_default())
            && !is_own(after, own_issue) =>
        {
            out.push(BREAK);
        }
        _ => {}
    }
    c.len_utf8()
}

fn is_own(digits: &str, own_issue: Option<u64>) -> bool {
    own_issue.is_some() && leading_number(digits).map(|(number, _)| number) == own_issue
}

/// Returns whether text ends with `GH`, possibly before a backslash that Markdown removes.
fn ends_with_gh(text: &str) -> bool {
    let text = text.strip_suffix('\\').unwrap_or(text).as_bytes();
    let Some((rest, gh)) = text.split_last_chunk::<2>() else {
        return false;
    };
    gh.eq_ignore_ascii_case(b"gh") && !rest.last().is_some_and(u8::is_ascii_alphanumeric)
}

/// Returns the number at the start of a text, and its length.
pub(super) fn leading_number(text: &str) -> Option<(u64, usize)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let number = crate::parse_value(text.get(..end)?)?;
    Some((number, end))
}

/// Writes the start of an address so that no host turns it into a link, and returns the number of
/// bytes read.
pub(super) fn push_broken_scheme(url: &str, out: &mut String) -> usize {
    let scheme = url.find("//").and_then(|end| url.get(..end));
    let scheme = scheme.unwrap_or_default();
    out.push_str(scheme);
    out.push(BREAK);
    scheme.len()
}

/// Returns the address that starts at a position, without punctuation at its end.
pub(super) fn url_at(text: &str, at: usize) -> Option<&str> {
    let rest = text.get(at..)?;
    let scheme = ["https://", "http://"].into_iter().find(|scheme| {
        rest.get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    })?;
    let ends = |c: char| {
        c.is_whitespace() || c.is_control() || !c.is_ascii() || "<>\"'`[](){}\\*|".contains(c)
    };
    let end = rest.find(ends).unwrap_or(rest.len());
    let url = rest.get(..end)?;
    let url = url.trim_end_matches(['.', ',', ';', ':', '!', '?', '_', '~']);
    (url.len() > scheme.len()).then_some(url)
}

/// Returns whether every host turns the address at a position into a link, so that nothing inside is
/// a mention.
pub(super) fn is_always_linked(url: &str, before: Option<char>) -> bool {
    let Some((_, rest)) = url.split_once("://") else {
        return false;
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, port) = rest.get(..end).map_or((rest, None), |authority| {
        authority
            .split_once(':')
            .map_or((authority, None), |(host, port)| (host, Some(port)))
    });
    let is_label = |label: &str| {
        !label.is_empty()
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    let is_port = |port: &str| port.bytes().all(|b| b.is_ascii_digit());
    before.is_none_or(|c| c.is_whitespace() || c == '(')
        && host.contains('.')
        && host.split('.').all(is_label)
        && port.is_none_or(is_port)
}

/// An issue or a pull request in an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UrlIssue<'a> {
    /// `owner/name`
    pub(super) repository: &'a str,
    pub(super) number: u64,
}

/// Returns the issue that an address names, such as `https://host/owner/name/issues/12`.
pub(super) fn issue_of_url(url: &str) -> Option<UrlIssue<'_>> {
    let (_, rest) = url.split_once("://")?;
    let (_, path) = rest.split_once('/')?;
    for kind in ["/issues/", "/pull/", "/pulls/", "/discussions/"] {
        if let Some((repository, number)) = path.split_once(kind)
            && let Some((number, _)) = leading_number(number)
        {
            return Some(UrlIssue { repository, number });
        }
    }
    None
}
