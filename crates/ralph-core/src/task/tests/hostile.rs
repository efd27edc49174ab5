//! Hostile files, and files that are broken in every way.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::{errors, parse, with_front};
use crate::lint::check;
use crate::templates;

#[test]
fn a_billion_laughs_file_is_rejected_at_its_first_anchor() {
    let mut front =
        "task_id: t\na0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for level in 1..20 {
        let previous = format!("*a{}", level - 1);
        let row = vec![previous; 9].join(", ");
        writeln!(front, "a{level}: &a{level} [{row}]").unwrap();
    }
    snapbox::assert_data_eq!(
        errors(&with_front(&front)),
        snapbox::str![[r"
[yaml-anchor:5] line 3: anchors (`&a0`) are not allowed — write the value out where it is used; a string that starts with `&` needs quotes
[yaml-alias:10] line 4: aliases (`*name`) are not allowed — write the value out; a string that starts with `*` needs quotes
"]]
    );
}

/// YAML that is rejected after a valid `task_id`.
const REFUSED_YAML: &[&str] = &[
    "a: &x 1",
    "a: *x",
    "a: &x [1]\nb: *x",
    "<<: {a: 1}",
    "a: {<<: {b: 1}}",
    "a: !!str 1",
    "a: ! x",
    "!x a: 1",
    "a: !ruby/object:X {}",
    "a: !e!x 1",
    "a: !<tag:x> 1",
    "a: 1\n--- b",
    "a: 1\n...\nb: 2",
    "%YAML 1.2\n--- \na: 1",
    "? [a, b]\n: 1",
    "a: [1",
    "a: \"x",
    "a: b: c",
    "\ta: 1",
    "a: @x",
    "a: 1\na: 2\na: 3",
    "max_iterations: 3\nmax_iterations: 4",
    "pr:\n  draft: true\n  draft: true",
];

#[test]
fn yaml_features_beyond_settings_are_rejected() {
    let deep_flow = format!("a: {}{}", "[".repeat(16), "]".repeat(16));
    let deeper = format!("a: {}", "[".repeat(5000));
    let rows: Vec<String> = (0..40).map(|depth| " ".repeat(depth) + "k:").collect();
    let deep_block = rows.join("\n");
    let deep = [deep_flow.as_str(), &deeper, &deep_block];
    let mut table = String::new();
    for front in REFUSED_YAML.iter().copied().chain(deep) {
        let shown = front.replace('\n', " ⏎ ").replace('\t', "→");
        let shown: String = shown.chars().take(30).collect();
        let text = errors(&with_front(&format!("task_id: t\n{front}")));
        writeln!(table, "{shown}\n{text}\n").unwrap();
    }
    snapbox::assert_data_eq!(table, snapbox::file!["snapshots/refused_yaml.txt"]);
}

#[test]
fn the_same_characters_in_texts_are_accepted() {
    let commands = [
        "a && b",
        "ls *.rs",
        "! false",
        "cat << EOF",
        "x & y",
        "a !b *c &d <<e",
    ];
    for command in commands {
        for front in [
            format!("test_command: \"{command}\""),
            format!("test_command: '{command}'"),
            format!("test_command: |\n  {command}"),
            format!("test_command: >-\n  {command}"),
            format!("test_command: x {command}"),
        ] {
            let task = parse(&with_front(&format!("task_id: t\n{front}")));
            let found = task.contract.test_command.unwrap();
            assert!(found.ends_with(command), "{front:?} gave {found:?}");
        }
    }
    let body = "task_id: t\npr:\n  body_template: |\n    &a *b !c <<d\n    --- \n    key: value\n    key: value";
    assert_eq!(
        parse(&with_front(body)).contract.pr.body_template.unwrap(),
        "&a *b !c <<d\n--- \nkey: value\nkey: value\n"
    );
}

#[test]
fn large_files_are_rejected() {
    let mut file = templates::TASK.to_owned();
    file += &"x".repeat(10_000_000);
    snapbox::assert_data_eq!(
        errors(&file),
        snapbox::str![
            "[task-too-large] task is 10.0 MB, limit 256 KiB — move long material into files in the repository and reference them in the task"
        ]
    );
    let exact = format!(
        "{}{}",
        templates::TASK,
        "x".repeat(256 * 1024 - templates::TASK.len())
    );
    assert_eq!(exact.len(), 256 * 1024);
    assert_eq!(parse(&exact).checkboxes.len(), 5);
    snapbox::assert_data_eq!(
        errors(&format!("{exact}x")),
        snapbox::str![
            "[task-too-large] task is 256.1 KiB, limit 256 KiB — move long material into files in the repository and reference them in the task"
        ]
    );
}

#[test]
fn deeply_nested_bodies_are_checked() {
    let head = "---\ntask_id: t\n---\n";
    for unit in [
        "- ",
        "> ",
        "* [ ] ",
        "[",
        "![",
        "*",
        "_a ",
        "`",
        "<",
        "<!--",
        "#",
        "1. ",
        "- [ ] x\n",
        "- [ ] x\n ",
        "\\",
        "&",
        "~~~\n",
        "a\n- verify: `b`\n",
        "### Milestone M1\n",
        "[a](",
        "\t- ",
    ] {
        let body = unit.repeat((200 * 1024) / unit.len());
        let report = check(format!("{head}{body}").as_bytes());
        assert!(!report.is_ok(), "{unit:?}");
    }
}

#[test]
fn lists_nested_line_by_line_are_parsed() {
    let rows = (0..400).map(|depth| format!("{}- [ ] x\n", "  ".repeat(depth)));
    let report = check(format!("---\ntask_id: t\n---\n{}", rows.collect::<String>()).as_bytes());
    assert_eq!(report.task.unwrap().checkboxes.len(), 400);
}

#[test]
fn no_prefix_and_no_changed_byte_causes_a_panic() {
    const BYTES: [u8; 11] = *b"\n -[\":&`x\0\xff";
    let bytes = templates::TASK.as_bytes();
    let mut good = 0;
    for end in 0..=bytes.len() {
        good += usize::from(check(&bytes[..end]).is_ok());
    }
    // The file is valid from the second box on.
    let second = templates::TASK.find("M1.2").unwrap();
    assert!((1..=bytes.len() - second).contains(&good), "{good}");
    let mut changed = bytes.to_vec();
    for (at, byte) in (0..bytes.len()).zip(BYTES.iter().cycle()) {
        changed[at] = *byte;
        let report = check(&changed);
        assert!(report.task.is_some() || !report.is_ok());
        changed[at] = bytes[at];
    }
}

#[test]
fn no_mixture_of_pieces_causes_a_panic() {
    const PIECES: [&str; 32] = [
        "\n",
        "\n",
        "\n",
        "---\n",
        "- ",
        "  ",
        "* ",
        "1. ",
        "[ ] ",
        "[x]\t",
        "verify:",
        "`",
        "``",
        "é",
        "日本",
        "M1.1",
        "### Milestone ",
        "# ",
        "> ",
        "**",
        "<!--",
        "-->",
        "```\n",
        "task_id: t\n",
        "pr: ",
        "{",
        "[",
        "\"",
        "'",
        ": ",
        "| \n",
        "\u{feff}",
    ];
    // A linear congruential generator, so that every run tests the same mixtures.
    let mut state = 1_u64;
    let mut parsed = 0;
    for round in 0..3000 {
        let mut text = if round % 2 == 0 {
            "---\ntask_id: t\n---\n".to_owned()
        } else {
            "---\n".to_owned()
        };
        for _ in 0..40 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            text += PIECES[(state >> 59) as usize];
        }
        let task = check(text.as_bytes()).task;
        if let Some(task) = &task {
            let open = task.with_ticks(&BTreeSet::new());
            assert_eq!(open.len(), text.len());
        }
        parsed += usize::from(task.is_some());
    }
    assert!(parsed > 1000, "{parsed}");
}
