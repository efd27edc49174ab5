use super::*;

/// Shows zero-width spaces.
fn shown(text: &str) -> String {
    text.replace(BREAK, "·")
}

#[test]
fn mentions_and_references_have_no_effect() {
    for (text, expected) in [
        (
            "plain text, a*b, 1 < 2, x & y",
            "plain text, a*b, 1 < 2, x & y",
        ),
        // Mentions.
        ("ask @octocat", "ask @·octocat"),
        ("@org/team and (@a)", "@·org/team and (@·a)"),
        ("me@example.com", "me@example.com"),
        (r"\@octocat", r"\@·octocat"),
        (
            "&#64;octocat &commat;x &amp;",
            "&amp;#·64;octocat &amp;commat;x &amp;amp;",
        ),
        // References and closing keywords.
        ("see #12", "see #·12"),
        (
            "Closes #12, fixes owner/repo#3",
            "Closes #·12, fixes owner/repo#·3",
        ),
        ("GH-7 and gh-8, high-7", "GH-·7 and gh-·8, high-7"),
        (r"GH\-7 \#3", r"GH\-·7 \#·3"),
        (
            "resolves https://github.com/o/r/issues/4.",
            "resolves https:·//github.com/o/r/issues/4.",
        ),
        (
            "https://github.com/o/r/pull/4#discussion_r1",
            "https:·//github.com/o/r/pull/4#discussion_r1",
        ),
        ("# heading", "# heading"),
    ] {
        assert_eq!(shown(&neutralize(text, None)), expected, "{text}");
    }
}

#[test]
fn hidden_text_and_images_become_visible() {
    for (text, expected) in [
        ("a <!-- hidden --> b", "a &lt;!-- hidden --> b"),
        (
            "<img src=x> </details> <?x <3",
            "&lt;img src=x> &lt;/details> &lt;?x <3",
        ),
        ("[//]: # (hidden)", r"[//]\: # (hidden)"),
        ("[ref]: https://x.y/", r"[ref]\: https://x.y/"),
        ("a\u{200b}\u{e0041}\u{feff}b", "ab"),
        ("a\u{202e}b\u{1b}[1m", r"a\u{202e}b\u{1b}[1m"),
        // Images and links.
        (
            "![x](https://track.er/p.png)",
            r"!\[x]\(https://track.er/p.png)",
        ),
        (
            "[ok](https://evil.example/?id=1)",
            r"[ok]\(https://evil.example/?id=1)",
        ),
        ("![x][ref]", r"!\[x]\[ref]"),
        ("- [ ] todo\n- [x] done", "- [ ] todo\n- [x] done"),
        // Addresses keep what looks like a mention.
        (
            "https://example.com/@user/#1",
            "https://example.com/@user/#1",
        ),
        ("https://localhost/@user", "https://localhost/@·user"),
        ("\"https://a.b/@user\"", "\"https://a.b/@·user\""),
        (
            "a ` https://h.x/o/r/issues/1 b",
            "a ` https:·//h.x/o/r/issues/1 b",
        ),
        ("xhttps://a.b/@user", "xhttps://a.b/@·user"),
        ("https://a.b](@user)", r"https://a.b]\(@·user)"),
    ] {
        assert_eq!(shown(&neutralize(text, None)), expected, "{text}");
    }
}

#[test]
fn code_stays_as_it_is_but_only_if_it_is_code() {
    for (text, expected) in [
        (
            "run `npm i @types/node #1` now",
            "run `npm i @types/node #1` now",
        ),
        ("``a ` @b`` @c", "``a ` @b`` @·c"),
        ("```sh\n@a <b> #1\n```\n@a", "```sh\n@a <b> #1\n```\n@·a"),
        ("~~~\n```\n@a\n~~~", "~~~\n```\n@a\n~~~"),
        ("````\n```\n@a\n````", "````\n```\n@a\n````"),
        // The block ends with the text.
        ("```\n@a", "```\n@a\n```\n"),
        // A backtick of an earlier line may be the partner.
        (
            "a ` b\nc ` @d ` e\n\n` @f `",
            "a ` b\nc ` @·d ` e\n\n` @f `",
        ),
        (r"\` @a `", r"\` @·a `"),
        ("| ` | @a ` |", "| ` | @·a ` |"),
        // An indented fence ends with its list, so it is no code.
        ("- a\n  ```\n@b\n  ```", "- a\n  \\```\n@·b\n  \\```"),
        ("> ```\n@b", "> \\```\n@·b"),
        ("  ```\n```\n@b\n```", "  \\```\n```\n@b\n```"),
        ("```a`b\n@c", "```a`b\n@·c"),
    ] {
        assert_eq!(shown(&neutralize(text, None)), expected, "{text}");
    }
}

#[test]
fn the_own_issue_may_be_closed() {
    for (text, expected) in [
        ("Closes #5", "Closes #5"),
        ("Closes #55, #5.", "Closes #·55, #5."),
        ("Closes GH-5", "Closes GH-5"),
        ("Closes other/repo#5", "Closes other/repo#·5"),
    ] {
        assert_eq!(shown(&neutralize(text, Some(5))), expected, "{text}");
    }
}

#[test]
fn a_line_and_a_title_stay_one_line() {
    let text = "a\n\n# b @c `x`\u{7}";
    assert_eq!(shown(&neutralize_line(text, None)), r"a  # b @·c `x`\u{7}");
    assert_eq!(
        neutralize_line("```sh @x", None).replace(BREAK, "·"),
        "\\```sh @·x"
    );
    let title = "Fix #12\nfor @a: <b> [c](d) https://h.x/o/r/issues/3";
    let expected = "Fix #·12 for @·a: <b> [c](d) https:·//h.x/o/r/issues/3";
    assert_eq!(shown(&neutralize_title(title, None)), expected);
}

#[test]
fn commits_close_only_the_own_issue() {
    for (message, expected, closed) in [
        ("Add a file\n\nSee #12", "Add a file\n\nSee #12", ""),
        ("Fixes #12", "Fixes issue 12", "issue 12"),
        ("FIXED: gh-12.", "FIXED: issue 12.", "issue 12"),
        (
            "resolve o/r#1 and close #2",
            "resolve issue 1 of o/r and close issue 2",
            "issue 1 of o/r, issue 2",
        ),
        (
            "Closes https://github.com/o/r/issues/3!",
            "Closes issue 3 of o/r!",
            "issue 3 of o/r",
        ),
        ("closes\n#4", "closes\nissue 4", "issue 4"),
        ("Closes #5", "Closes #5", ""),
        ("prefixes #6, enclosed #7", "prefixes #6, enclosed #7", ""),
        ("fix the bug", "fix the bug", ""),
        ("fix", "fix", ""),
        ("ümläut fixes #8", "ümläut fixes issue 8", "issue 8"),
    ] {
        assert_eq!(neutralize_commit(message, Some(5)), expected);
        assert_eq!(closing_references(message, Some(5)).join(", "), closed);
    }
}

/// Parts of text that start or end syntax.
const PIECES: &[&str] = &[
    "@user",
    "#1",
    "a",
    " ",
    " ",
    "\n",
    "\n",
    "\n\n",
    "`",
    "``",
    "```",
    "~~~",
    "- ",
    "> ",
    "  ",
    "    ",
    "1. ",
    "|",
    "[x]",
    "(https://h.x/p)",
    "](",
    "![",
    "[",
    "]:",
    ": ",
    "<b>",
    "<!--",
    "-->",
    "\\",
    "&#64;",
    "*",
    "_",
    "https://h.x/@user",
    "https://h.x/o/r/issues/1",
    "GH-1",
    "o/r#1",
    "# ",
    "---\n",
    "\t",
    "<",
    "\n```\n",
    "\n~~~\n",
];

/// Returns the pieces of a pseudorandom text.
fn random_text(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap()
    };
    let length = 1 + next() % 14;
    (0..length).map(|_| PIECES[next() % PIECES.len()]).collect()
}

/// Removes the addresses that a host turns into links.
fn without_links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("https://h.x/") {
        let is_issue = rest[at..].starts_with("https://h.x/o/r/issues");
        let ends = |c: char| !c.is_ascii() || " ()[]<>\"'`*|\\\n".contains(c);
        let end = rest[at..].find(ends).map_or(rest.len(), |end| at + end);
        out.push_str(&rest[..if is_issue { end } else { at }]);
        rest = &rest[end..];
    }
    out + rest
}

/// Returns why a Markdown parser finds an effect in text.
fn effect_of(text: &str) -> Option<String> {
    use pulldown_cmark::{Event, Options, Parser, Tag};
    let mut code = false;
    let mut plain = String::new();
    for event in Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => code = true,
            Event::End(pulldown_cmark::TagEnd::CodeBlock) => code = false,
            Event::Text(part) if !code => plain.push_str(&part),
            Event::Html(html) | Event::InlineHtml(html) => return Some(format!("HTML {html}")),
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                return Some(format!("a link to {dest_url}"));
            }
            Event::Start(_)
            | Event::End(_)
            | Event::Text(_)
            | Event::Code(_)
            | Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::FootnoteReference(_)
            | Event::SoftBreak
            | Event::HardBreak
            | Event::Rule
            | Event::TaskListMarker(_) => plain.push(' '),
        }
    }
    let text = without_links(&plain);
    for reference in ["@user", "#1", "GH-1", "https://h.x/o/r/issues/1"] {
        let mut found = text.match_indices(reference);
        let live = found.find(|(at, _)| {
            let before = text[..*at].chars().next_back();
            !before.is_some_and(|c| c.is_ascii_alphanumeric())
        });
        if live.is_some() {
            return Some(format!("{reference} in {plain:?}"));
        }
    }
    None
}

#[test]
fn a_markdown_parser_finds_no_effect_in_neutral_text() {
    for seed in 0..60_000 {
        let text = random_text(seed);
        let neutral = neutralize(&text, None);
        if let Some(effect) = effect_of(&neutral) {
            panic!("{text:?} became {neutral:?} with {effect}");
        }
    }
}
