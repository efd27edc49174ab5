//! Closing keywords in the messages of commits: a host closes `#12` when a commit with "Closes #12"
//! reaches the default branch.

use super::references::{issue_of_url, leading_number, url_at};

/// The words that close an issue.
const KEYWORDS: [&str; 9] = [
    "close", "closes", "closed", "fix", "fixes", "fixed", "resolve", "resolves", "resolved",
];

/// A reference to an issue.
struct IssueReference {
    /// `owner/name`, if the reference names it.
    repository: Option<String>,
    number: u64,
    /// The length in the text.
    length: usize,
}

impl IssueReference {
    /// Returns the reference in words, which hosts do not recognise.
    fn words(&self) -> String {
        match &self.repository {
            Some(repository) => format!("issue {} of {repository}", self.number),
            None => format!("issue {}", self.number),
        }
    }
}

/// Writes references behind closing keywords in words, except those to the run's own issue.
pub fn neutralize_commit(message: &str, own_issue: Option<u64>) -> String {
    let mut out = String::with_capacity(message.len() + 16);
    let mut at = 0;
    for (start, reference) in find_closing(message, own_issue) {
        out.push_str(message.get(at..start).unwrap_or_default());
        out.push_str(&reference.words());
        at = start + reference.length;
    }
    out.push_str(message.get(at..).unwrap_or_default());
    out
}

/// Returns the issues that a message would close, except the run's own, in words.
pub fn closing_references(message: &str, own_issue: Option<u64>) -> Vec<String> {
    let found = find_closing(message, own_issue).into_iter();
    found.map(|(_, reference)| reference.words()).collect()
}

fn find_closing(message: &str, own_issue: Option<u64>) -> Vec<(usize, IssueReference)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < message.len() {
        let rest = message.get(at..).unwrap_or_default();
        let Some(word) = rest.find(|c: char| c.is_ascii_alphabetic()) else {
            break;
        };
        let start = at + word;
        let word = message.get(start..).unwrap_or_default();
        let length = word
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(word.len());
        at = start + length;
        let before = message
            .get(..start)
            .and_then(|text| text.chars().next_back());
        let is_word = !before.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let keyword = word.get(..length).unwrap_or_default();
        let is_keyword = KEYWORDS
            .iter()
            .any(|known| known.eq_ignore_ascii_case(keyword));
        if !is_word || !is_keyword {
            continue;
        }
        let rest = message.get(at..).unwrap_or_default();
        let target = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ':');
        let position = at + (rest.len() - target.len());
        if let Some(reference) = reference_at(message, position)
            && !(reference.repository.is_none() && Some(reference.number) == own_issue)
        {
            at = position + reference.length;
            found.push((position, reference));
        }
    }
    found
}

/// Returns the reference at a position.
fn reference_at(message: &str, at: usize) -> Option<IssueReference> {
    if let Some(url) = url_at(message, at) {
        let issue = issue_of_url(url)?;
        return Some(IssueReference {
            repository: Some(issue.repository.to_owned()),
            number: issue.number,
            length: url.len(),
        });
    }
    let text = message.get(at..)?;
    if let Some(start) = text.get(..3)
        && start.eq_ignore_ascii_case("gh-")
    {
        let (number, digits) = leading_number(text.get(3..)?)?;
        return Some(IssueReference {
            repository: None,
            number,
            length: 3 + digits,
        });
    }
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !"/-_.".contains(c))?;
    let (repository, rest) = text.split_at_checked(end)?;
    let (number, digits) = leading_number(rest.strip_prefix('#')?)?;
    Some(IssueReference {
        repository: (!repository.is_empty()).then(|| repository.to_owned()),
        number,
        length: end + 1 + digits,
    })
}
