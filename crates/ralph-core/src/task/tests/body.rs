//! Titles, milestones, checkboxes, verify lines and ticks.

use std::collections::BTreeSet;

use snapbox::IntoData as _;

use super::{errors, line, parse, with_body};
use crate::task::TaskFile;

/// Returns the boxes of a body, one line each.
fn boxes(body: &str) -> String {
    let task = parse(&with_body(body));
    let lines: Vec<String> = task
        .checkboxes
        .iter()
        .map(|b| {
            format!(
                "{} {:?} {} {} line {} {:?}",
                b.id,
                b.text,
                b.milestone.as_deref().unwrap_or("-"),
                if b.checked { "done" } else { "open" },
                b.line,
                b.verify
            )
        })
        .collect();
    lines.join("\n")
}

fn remarks(body: &str) -> String {
    let task = parse(&with_body(body));
    let lines: Vec<String> = task.remarks.iter().map(line).collect();
    lines.join("\n")
}

#[test]
fn parses_boxes_with_their_verify_lines() {
    let body = r#"# Task: Foo *bar* `x`
### Milestone M1 — Behavior
- [ ] M1.1 Foo endpoint **returns** 200
  over two lines
  - verify: `node a.js` (or a curl command)
  - **Verify:** grep "*foo*" <a> &amp; b_c_d
  - a remark
- [X] **M1.2:** `loose`

  An explanation.

  - verify: `a && b`
  - [x] nested
    - verify: `` make `date` ``
* [ ] odd   spaces
  verify: `in the paragraph`
## Other
1. [ ] ordered
> - [ ] quoted
>   and more
>   - verify: `q`
"#;
    snapbox::assert_data_eq!(
        boxes(body),
        snapbox::str![[r#"
M1.1 "Foo endpoint **returns** 200 over two lines" M1 open line 6 ["node a.js", "grep \"*foo*\" <a> &amp; b_c_d"]
M1.2 "`loose`" M1 done line 11 ["a && b"]
nested "nested" M1 done line 16 ["make `date`"]
odd-spaces "odd   spaces" M1 open line 18 ["in the paragraph"]
ordered "ordered" - open line 21 []
quoted-and-more "quoted and more" - open line 22 ["q"]
"#]]
        .raw()
    );
    assert_eq!(parse(&with_body(body)).title.as_deref(), Some("Foo bar x"));
    assert_eq!(remarks(body), "");
}

#[test]
fn ignores_text_that_is_not_a_box() {
    let body = "```\n- [ ] M1.1 in a fence\n```\n\n    - [ ] indented code\n\n<!--\n- [ ] in a comment\n-->\n\n\
                - [] no blank\n- [y] no mark\n- `[ ]` code\n\n[ ] no list\n\n~~~md\n# Heading\n- [ ] x\n~~~\n";
    let task = parse(&with_body(body));
    assert_eq!((task.checkboxes, task.title), (vec![], None));
}

#[test]
fn milestones_end_at_the_next_heading_of_their_rank() {
    let body = "## Milestone M1: One\n- [ ] a\n### Details\n- [ ] b\n## Notes\n- [ ] c\n- [ ] M1.9 d\n## Milestone M2\n- [ ] e\n";
    let task = parse(&with_body(body));
    let ids = |milestone| -> Vec<&str> {
        task.milestone_boxes(milestone)
            .map(|b| b.id.as_str())
            .collect()
    };
    assert_eq!(ids("M1"), ["a", "b", "M1.9"]);
    assert_eq!(ids("M2"), ["e"]);
    assert_eq!(ids("M3"), Vec::<&str>::new());
    let titles: Vec<(&str, &str, u32)> = task
        .milestones
        .iter()
        .map(|m| (m.id.as_str(), m.title.as_str(), m.line))
        .collect();
    assert_eq!(titles, [("M1", "One", 4), ("M2", "", 11)]);
}

#[test]
fn duplicate_ids_are_rejected() {
    let body = "### Milestone M1\n- [ ] M1.1 a\n- [ ] M1.1 b\n### Milestone M1\n- [ ] M1.1 c\n";
    snapbox::assert_data_eq!(
        errors(&with_body(body)),
        snapbox::str![[r"
[duplicate-checkbox] line 6: checkbox `M1.1` is defined twice, in line 5 and in line 6 — give each one its own id
[duplicate-milestone] line 7: milestone `M1` is defined twice, in line 4 and in line 7 — give each one its own id
[duplicate-checkbox] line 8: checkbox `M1.1` is defined twice, in line 5 and in line 8 — give each one its own id
"]]
    );
}

#[test]
fn the_number_of_boxes_is_limited() {
    let body = |count: usize| "- [ ] x\n  - verify: `true`\n".repeat(count);
    assert_eq!(parse(&with_body(&body(1000))).checkboxes.len(), 1000);
    snapbox::assert_data_eq!(
        errors(&with_body(&body(1001))),
        snapbox::str![
            "[too-many-checkboxes] the task has 1001 checkboxes, limit 1000 — split the task"
        ]
    );
}

#[test]
fn reports_invalid_verify_lines() {
    let body = "- verify: `stray`\n- [ ] a\n  - verify:\n  - verify: ` `\n  - verify: `open\n  - verify: `one`, `two`\n\
                verify: in no list\n\nverify: `in no list`\n";
    snapbox::assert_data_eq!(
        remarks(body),
        snapbox::str![[r"
[stray-verify] line 4: this verify line does not belong to a checkbox and is ignored — indent it by two spaces below its checkbox
[empty-command] line 6: this verify line has no command — write the command in backticks after `verify:`
[empty-command] line 7: this verify line has no command — write the command in backticks after `verify:`
[unclosed-code] line 8: the command of this verify line has no closing backtick — put a backtick on either side of the command
[further-commands] line 9: only the first command of this verify line is used: `one` — write one verify line per command
"]]
    );
}

#[test]
fn commands_are_listed_once() {
    let text = "---\ntask_id: t\nverify_commands: [a, b]\n---\n- [ ] x\n  - verify: `b`\n  - verify: `c`\n- [ ] y\n  - verify: `c`\n";
    assert_eq!(parse(text).all_verify_commands(), ["a", "b", "c"]);
}

#[test]
fn ticks_change_nothing_but_the_marks() {
    let body = "é\n- [x] A1 a\n  - [X] A2 b\n*  [ ] A3 c\n> 1) [\t] A4 d\n- `[ ]` [ ]\n";
    let task = parse(&with_body(body));
    let ticked = BTreeSet::from(["A2".to_owned(), "A3".to_owned(), "A9".to_owned()]);
    let expected =
        with_body("é\n- [ ] A1 a\n  - [x] A2 b\n*  [x] A3 c\n> 1) [ ] A4 d\n- `[ ]` [ ]\n");
    assert_eq!(task.with_ticks(&ticked), expected);
    let again = parse(&expected);
    let done: Vec<&str> = again
        .checkboxes
        .iter()
        .filter(|b| b.checked)
        .map(|b| b.id.as_str())
        .collect();
    assert_eq!(done, ["A2", "A3"]);
}

#[test]
fn ticks_preserve_the_byte_order_mark_and_the_line_ends() {
    let text = "\u{feff}---\r\ntask_id: t\n---\r\n- [ ] A1 a\r\n- [x] A2 b\n- [x] A3 c";
    let task = TaskFile::parse(text.as_bytes()).unwrap();
    let ticked = BTreeSet::from(["A1".to_owned(), "A3".to_owned()]);
    assert_eq!(
        task.with_ticks(&ticked),
        "\u{feff}---\r\ntask_id: t\n---\r\n- [x] A1 a\r\n- [ ] A2 b\n- [x] A3 c"
    );
}

#[test]
fn a_box_without_a_verify_line_is_verified_by_the_task() {
    let commands = |front: &str| {
        let text = format!(
            "---\ntask_id: t\n{front}---\n- [ ] A1 own\n  - verify: `own`\n- [ ] A2 none\n"
        );
        let task = parse(&text);
        let boxes = task.checkboxes.iter();
        let commands = boxes.map(|checkbox| task.box_commands(checkbox).join("; "));
        commands.collect::<Vec<_>>()
    };
    assert_eq!(
        commands("test_command: test\nverify_commands: [a, b]\n"),
        ["own", "a; b"]
    );
    assert_eq!(commands("test_command: test\n"), ["own", "test"]);
    assert_eq!(commands(""), ["own", ""]);
}
