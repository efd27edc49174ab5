//! Typed access to a map of the front matter. An invalid value is reported as a finding and treated
//! as missing, so that one pass reports all errors.

use std::ops::RangeInclusive;
use std::time::Duration;

use jiff::SignedDuration;

use super::keys::refuse_unknown;
use super::suggest::nearest;
use super::yaml::{YamlKey, YamlNode, YamlValue};
use crate::lint::{FindingLocation, LintFinding, excerpt};
use crate::money::Usd;
use crate::parse_value;

/// Default length limit of a single-line string.
const MAX_LINE_CHARS: usize = 1024;

/// A map of the front matter, and the list of findings.
pub(super) struct FrontMatterSection<'t, 'f> {
    /// The key of the map with a dot, such as `pr.`; empty for the top level.
    prefix: &'static str,
    entries: &'t [(YamlKey, YamlNode)],
    findings: &'f mut Vec<LintFinding>,
}

/// A string and its location.
pub(super) struct YamlText<'t> {
    pub(super) text: &'t str,
    pub(super) location: FindingLocation,
}

impl YamlText<'_> {
    pub(super) fn owned(self) -> String {
        self.text.to_owned()
    }
}

/// A type with a fixed list of keywords.
pub(super) trait KeywordChoice: Copy + 'static {
    /// The keywords and their values.
    const WORDS: &'static [(&'static str, Self)];
}

impl<'t, 'f> FrontMatterSection<'t, 'f> {
    pub(super) fn new(
        prefix: &'static str,
        entries: &'t [(YamlKey, YamlNode)],
        findings: &'f mut Vec<LintFinding>,
    ) -> Self {
        Self {
            prefix,
            entries,
            findings,
        }
    }

    /// Returns the map under a key.
    pub(super) fn section(
        &mut self,
        key: &str,
        prefix: &'static str,
    ) -> Option<FrontMatterSection<'t, '_>> {
        let node = self.non_null(key)?;
        let YamlValue::Map(entries) = &node.value else {
            self.wrong_type(key, node, "a map", "write its settings indented below it");
            return None;
        };
        Some(FrontMatterSection::new(prefix, entries, self.findings))
    }

    /// Rejects all keys except these.
    pub(super) fn reject_unknown_keys(&mut self, known: &[&str]) {
        refuse_unknown(self.prefix, known, self.entries, self.findings);
    }

    /// Returns a key with its value of any type.
    pub(super) fn entry(&self, key: &str) -> Option<(&'t YamlKey, &'t YamlNode)> {
        self.entries
            .iter()
            .find(|(candidate, _)| candidate.name == key)
            .map(|(key, node)| (key, node))
    }

    fn non_null(&self, key: &str) -> Option<&'t YamlNode> {
        let (_, node) = self.entry(key)?;
        (!is_null(&node.value)).then_some(node)
    }

    /// Adds a finding at a location.
    pub(super) fn report(&mut self, finding: LintFinding, location: FindingLocation) {
        self.findings.push(finding.at_location(location));
    }

    /// Adds a finding about a key that is missing or has no value.
    pub(super) fn report_missing(&mut self, key: &str, finding: LintFinding) {
        match self.entry(key) {
            Some((key, node)) if is_null(&node.value) => self.report(finding, key.location),
            // Another finding explains why the value cannot be used.
            Some(_) => {}
            None => self.findings.push(finding),
        }
    }

    /// Returns a string, even if it resembles a number.
    pub(super) fn text(&mut self, key: &str) -> Option<YamlText<'t>> {
        let node = self.non_null(key)?;
        let text = scalar(node);
        if text.is_none() {
            self.wrong_type(key, node, "a string", "write it on one line, in quotes");
        }
        text
    }

    /// Returns a single-line string that is not blank.
    pub(super) fn single_line(&mut self, key: &str) -> Option<YamlText<'t>> {
        self.short_line(key, MAX_LINE_CHARS)
    }

    /// Returns a single-line string that is not blank and has at most `max_chars` characters.
    pub(super) fn short_line(&mut self, key: &str, max_chars: usize) -> Option<YamlText<'t>> {
        let text = self.text(key)?;
        self.one_line(key, text, max_chars)
    }

    /// Returns the strings of a list, with the same restrictions as [`Self::short_line`].
    pub(super) fn short_lines(&mut self, key: &str, max_chars: usize) -> Vec<String> {
        let texts = self.list(key);
        texts
            .into_iter()
            .filter_map(|text| self.one_line(key, text, max_chars))
            .map(YamlText::owned)
            .collect()
    }

    fn one_line(
        &mut self,
        key: &str,
        text: YamlText<'t>,
        max_chars: usize,
    ) -> Option<YamlText<'t>> {
        let chars = text.text.chars().count();
        let (code, wrong, fix) = if text.text.trim().is_empty() {
            let fix = "give it a value or remove the line";
            ("empty-value", "is empty".to_owned(), fix)
        } else if text.text.contains('\n') {
            let fix = "write it on one line, in quotes";
            ("line-break", "has more than one line".to_owned(), fix)
        } else if chars > max_chars {
            let wrong = format!("has {chars} characters, limit {max_chars}");
            ("too-long", wrong, "shorten it")
        } else {
            return Some(text);
        };
        let message = format!("`{}{key}` {wrong}", self.prefix);
        self.report(LintFinding::error(code, message, fix), text.location);
        None
    }

    /// Returns the strings of a list.
    pub(super) fn list(&mut self, key: &str) -> Vec<YamlText<'t>> {
        let Some(node) = self.non_null(key) else {
            return Vec::new();
        };
        let YamlValue::List(items) = &node.value else {
            self.wrong_type(key, node, "a list", "write each entry below it, after `- `");
            return Vec::new();
        };
        let mut texts = Vec::new();
        for item in items {
            match scalar(item) {
                Some(text) => texts.push(text),
                None => self.wrong_type(
                    key,
                    item,
                    "a list of strings",
                    "put quotes around an entry that contains `: ` or starts with `[` or `{`",
                ),
            }
        }
        texts
    }

    /// Returns every key of the map with its single-line string.
    pub(super) fn lines(&mut self) -> Vec<(String, YamlText<'t>)> {
        let keys: Vec<&'t str> = self
            .entries
            .iter()
            .map(|(key, _)| key.name.as_str())
            .collect();
        keys.into_iter()
            .filter_map(|key| Some((key.to_owned(), self.single_line(key)?)))
            .collect()
    }

    /// Returns `true` or `false`.
    pub(super) fn flag(&mut self, key: &str) -> Option<bool> {
        let node = self.non_null(key)?;
        match plain(node) {
            Some("true" | "True" | "TRUE") => Some(true),
            Some("false" | "False" | "FALSE") => Some(false),
            Some(_) | None => {
                let fix = "write `true` or `false`, without quotes";
                self.wrong_type(key, node, "`true` or `false`", fix);
                None
            }
        }
    }

    /// Returns an integer in a range.
    pub(super) fn integer(&mut self, key: &str, range: RangeInclusive<u64>) -> Option<u64> {
        let node = self.non_null(key)?;
        let written = plain(node).unwrap_or_default();
        let digits = written.trim_start_matches(['+', '-']);
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            let fix = "write it in digits, without quotes";
            self.wrong_type(key, node, "a whole number", fix);
            return None;
        }
        let number = parse_value(written).filter(|number| range.contains(number));
        if number.is_none() {
            let (low, high) = range.into_inner();
            self.out_of_range(key, node, written, &format!("{low} to {high}"));
        }
        number
    }

    /// Returns an integer in a range of 32-bit numbers.
    pub(super) fn integer_u32(&mut self, key: &str, range: RangeInclusive<u32>) -> Option<u32> {
        let (low, high) = range.into_inner();
        let number = self.integer(key, u64::from(low)..=u64::from(high))?;
        Some(u32::try_from(number).expect("the range has only such numbers"))
    }

    /// Returns a time in a range, written as `30s` or `2m`.
    pub(super) fn span(&mut self, key: &str, range: RangeInclusive<Duration>) -> Option<Duration> {
        let text = self.text(key)?;
        let written = text.text.trim();
        let parsed = parse_value::<SignedDuration>(written).map(Duration::try_from);
        let Some(Ok(span)) = parsed else {
            let message = format!(
                "`{}{key}` is `{}`, expected a time",
                self.prefix,
                excerpt(written)
            );
            let fix = "write a number with its unit, such as `30s`, `2m` or `1h`";
            self.report(
                LintFinding::error("wrong-type", message, fix),
                text.location,
            );
            return None;
        };
        if range.contains(&span) {
            return Some(span);
        }
        let (low, high) = range.into_inner();
        let message = format!(
            "`{}{key}` is {}, expected {} s to {} h",
            self.prefix,
            excerpt(written),
            low.as_secs(),
            high.as_secs() / 3600
        );
        let fix = "choose a value in this range";
        self.report(
            LintFinding::error("out-of-range", message, fix),
            text.location,
        );
        None
    }

    /// Returns a positive amount of dollars.
    pub(super) fn dollars(&mut self, key: &str, most: u32) -> Option<Usd> {
        let node = self.non_null(key)?;
        let written = plain(node).unwrap_or_default();
        let numeric = written.bytes().any(|b| b.is_ascii_digit())
            && written
                .bytes()
                .all(|b| b.is_ascii_digit() || b".eE+-".contains(&b));
        let number = if numeric {
            parse_value::<f64>(written)
        } else {
            None
        };
        let Some(number) = number else {
            let fix = "write the dollars as a number such as `10` or `2.50`, without quotes";
            self.wrong_type(key, node, "a number of dollars", fix);
            return None;
        };
        let amount = Usd::from_dollars(number)
            .filter(|amount| *amount > Usd::ZERO && number <= f64::from(most));
        if amount.is_none() {
            self.out_of_range(key, node, written, &format!("more than 0, up to {most}"));
        }
        amount
    }

    /// Returns one of a fixed list of keywords.
    pub(super) fn choice<T: KeywordChoice>(&mut self, key: &str) -> Option<T> {
        let text = self.single_line(key)?;
        let found = T::WORDS.iter().find(|(word, _)| *word == text.text);
        if let Some((_, choice)) = found {
            return Some(*choice);
        }
        let words = T::WORDS.iter().map(|(word, _)| *word);
        let fix = match nearest(text.text, words.clone()) {
            Some(word) => format!("did you mean `{word}`?"),
            None => "use one of these values".to_owned(),
        };
        let expected: Vec<String> = words.map(|word| format!("`{word}`")).collect();
        let finding = LintFinding::error(
            "unknown-value",
            format!(
                "`{}{key}` is `{}`, expected {}",
                self.prefix,
                excerpt(text.text),
                expected.join(", ")
            ),
            fix,
        );
        self.report(finding, text.location);
        None
    }

    fn wrong_type(&mut self, key: &str, node: &YamlNode, expected: &str, fix: &str) {
        let found = match &node.value {
            YamlValue::Quoted(text) => format!("the string \"{}\"", excerpt(text)),
            YamlValue::Plain(text) => format!("`{}`", excerpt(text)),
            YamlValue::List(_) => "a list".to_owned(),
            YamlValue::Map(_) => "a map".to_owned(),
        };
        let message = format!("`{}{key}` is {found}, expected {expected}", self.prefix);
        self.report(
            LintFinding::error("wrong-type", message, fix),
            node.location,
        );
    }

    fn out_of_range(&mut self, key: &str, node: &YamlNode, written: &str, allowed: &str) {
        let finding = LintFinding::error(
            "out-of-range",
            format!(
                "`{}{key}` is {}, expected {allowed}",
                self.prefix,
                excerpt(written)
            ),
            "choose a value in this range",
        );
        self.report(finding, node.location);
    }
}

fn is_null(value: &YamlValue) -> bool {
    matches!(value, YamlValue::Plain(text) if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
}

fn plain(node: &YamlNode) -> Option<&str> {
    match &node.value {
        YamlValue::Plain(text) => Some(text),
        YamlValue::Quoted(_) | YamlValue::List(_) | YamlValue::Map(_) => None,
    }
}

fn scalar(node: &YamlNode) -> Option<YamlText<'_>> {
    match &node.value {
        YamlValue::Plain(text) | YamlValue::Quoted(text) => Some(YamlText {
            text,
            location: node.location,
        }),
        YamlValue::List(_) | YamlValue::Map(_) => None,
    }
}
