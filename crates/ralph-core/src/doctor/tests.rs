use super::*;
use crate::advice::Guardrail;
use crate::templates;

const REPLY: &str = r#"Here it is:
```json
{"summary": "The same test fails.", "patterns": ["npm test, iterations 3 to 6"], "root_causes": ["no fixture"],
 "guardrails": [{"name": "fixture", "trigger": "before the tests", "instruction": "make the fixture", "evidence": "exit 1"}],
 "spec_edits": [{"find": "One is there", "replace": "One line is there", "why": "clearer"}],
 "model_profile": "strong",}
```"#;

fn guardrail(name: &str) -> Guardrail {
    Guardrail {
        name: name.into(),
        trigger: "before the tests".into(),
        instruction: "make the fixture".into(),
        evidence: "exit 1".into(),
    }
}

#[test]
fn a_reply_is_parsed_like_an_iteration_reply() {
    assert_eq!(
        parse(REPLY),
        Ok(DoctorReport {
            summary: "The same test fails.".into(),
            patterns: vec!["npm test, iterations 3 to 6".into()],
            root_causes: vec!["no fixture".into()],
            guardrails: vec![guardrail("fixture")],
            spec_edits: vec![SpecEdit {
                find: "One is there".into(),
                replace: "One line is there".into(),
                why: "clearer".into(),
            }],
            model_profile: Some("strong".into()),
        })
    );
}

#[test]
fn excess_guardrails_are_dropped_and_an_empty_list_is_rejected() {
    let with = |signs: usize| {
        let signs: Vec<Guardrail> = (0..signs).map(|n| guardrail(&n.to_string())).collect();
        parse(&serde_json::json!({"summary": "s", "guardrails": signs}).to_string())
    };
    assert_eq!(with(5).unwrap().guardrails.len(), 3);
    assert_eq!(
        with(0),
        Err("`guardrails` is empty; 1 to 3 guardrails are expected".into())
    );
    for (reply, words) in [
        ("I do not know", "JSON"),
        (r#"{"summary": "s"}"#, "guardrails"),
        (
            r#"{"summary": " ", "guardrails": []}"#,
            "`summary` is empty",
        ),
        (
            r#"{"summary": "s", "guardrails": [{"name": "n", "trigger": "", "instruction": "i"}]}"#,
            "a trigger",
        ),
        (r#"{"summary": "s", "actions": []}"#, "guardrails"),
    ] {
        let error = parse(reply).unwrap_err();
        assert!(error.contains(words), "{reply}: {error}");
    }
}

#[test]
fn the_newest_report_is_on_top_and_ten_are_kept() {
    let report = parse(REPLY).unwrap();
    let about = |number| DoctorReportHeader {
        number,
        iteration: number * 2,
        trigger: DoctorTrigger::Gutter,
        model: "openai/gpt-5",
    };
    let first = prepend_report(templates::DIAGNOSTICS, about(1), &report);
    let latest = &first[first.find("## Latest report").unwrap()..];
    snapbox::assert_data_eq!(
        latest,
        snapbox::str![[r"
## Latest report

### report 1 (after iteration 2, the run is circling, `openai/gpt-5`)

The same test fails.

Observed failure patterns
- npm test, iterations 3 to 6

Likely root causes
- no fixture

Suggested guardrails (signs)
- fixture: when before the tests: make the fixture

Suggested spec edits (tighten verification)
- instead of `One is there`: `One line is there` clearer

Suggested model profile change (if relevant)
- strong

"]]
    );
    assert!(first.starts_with("# Diagnostics (Doctor reports)\n\n## Report format\n"));
    assert_eq!(prepend_report(&first, about(1), &report), first);
    let all = (2..=30).fold(first, |file, number| {
        prepend_report(&file, about(number), &report)
    });
    let titles: Vec<&str> = all
        .lines()
        .filter(|line| line.starts_with("## ") || line.starts_with("### "))
        .map(|line| line.split(" (").next().unwrap())
        .collect();
    let mut expected = vec!["## Report format".to_owned(), "## Latest report".to_owned()];
    expected.push("### report 30".to_owned());
    expected.push("## Earlier reports".to_owned());
    expected.extend((21..30).rev().map(|number| format!("### report {number}")));
    assert_eq!(titles, expected);
}

const TASK: &str = "---\ntask_id: t\nmax_iterations: 5\nmax_wall_time_minutes: 5\nmax_tokens_total: 1000\n\
    test_command: make\n---\n# Task: Two\n\n- [x] M1.1 One is there\n  - verify: `grep one a`\n\
    - [ ] M1.2 Two is there\n  - verify: `grep two b`\n";

fn edit(find: &str, replace: &str) -> SpecEdit {
    SpecEdit {
        find: find.into(),
        replace: replace.into(),
        why: String::new(),
    }
}

/// Edits with their allowed extent and the expected refusal.
fn edit_cases() -> [(SpecEdit, EditFreedom, Option<&'static str>); 11] {
    [
        (
            edit("# Task: Two\n", "# Task: Two\n\nUse POSIX sh.\n"),
            EditFreedom::AddOnly,
            None,
        ),
        (
            edit("", "## Hints\n\nRead b first."),
            EditFreedom::AddOnly,
            None,
        ),
        (
            edit(
                "  - verify: `grep two b`",
                "  - verify: `grep two b`\n  - verify: `test -s b`",
            ),
            EditFreedom::AddOnly,
            None,
        ),
        (
            edit("max_iterations: 5", "max_iterations: 500"),
            EditFreedom::Body,
            Some("not in the body"),
        ),
        (
            edit("---\n", "---\nmax_iterations: 500\n"),
            EditFreedom::Body,
            Some("not in the body"),
        ),
        (
            edit("is there", "was there"),
            EditFreedom::Body,
            Some("occurs 2 times"),
        ),
        (
            edit("Two is there", "Two lines are there"),
            EditFreedom::AddOnly,
            Some("the text of box M1.2 would change"),
        ),
        (
            edit("Two is there", "Two lines are there"),
            EditFreedom::Body,
            None,
        ),
        (
            edit("`grep two b`", "`true`"),
            EditFreedom::AddOnly,
            Some("would lose a check"),
        ),
        (
            edit("- [ ] M1.2 Two is there\n  - verify: `grep two b`\n", ""),
            EditFreedom::AddOnly,
            Some("would be removed"),
        ),
        (
            edit(TASK.split_once("# Task: Two\n\n").unwrap().1, ""),
            EditFreedom::Body,
            Some("checkbox"),
        ),
    ]
}

#[test]
fn edits_stay_in_the_body() {
    for (edit, freedom, refused) in edit_cases() {
        let edited = edit_body(TASK, std::slice::from_ref(&edit), freedom).unwrap();
        let front = |text: &str| text[..text.find("# Task").unwrap()].to_owned();
        assert_eq!(front(&edited.text), front(TASK), "{edit:?}");
        match refused {
            None => assert_eq!(
                (edited.applied, edited.refused),
                (vec![0], vec![]),
                "{edit:?}"
            ),
            Some(words) => {
                assert_eq!(edited.text, TASK, "{edit:?}");
                assert!(edited.refused[0].contains(words), "{:?}", edited.refused);
            }
        }
    }
}

#[test]
fn the_prompt_size_is_bounded_for_any_input() {
    for piece in ["x", "```\n", "line\n", "é", "\u{1b}[0m"] {
        let text = piece.repeat(1_000_000 / piece.len());
        let input = DoctorPromptInput {
            task: text.clone(),
            guardrails: text.clone(),
            signals: vec![text.clone(); 3],
            metrics: vec![text.clone(); 5],
            errors_tail: text.clone(),
            output_tail: text.clone(),
            diff_stat: text.clone(),
            iteration: u32::MAX,
            profile: None,
        };
        let first = build(&input);
        let again = build_repair(&first, &text, &text);
        assert!(again.text().len() <= MAX_DOCTOR_PROMPT_BYTES, "{piece:?}");
    }
    let small = build(&DoctorPromptInput::default()).text();
    assert!(small.contains("You are the doctor of a Ralph loop"));
    assert!(small.contains("Diagnose this run"));
}

#[test]
fn the_first_configured_profile_is_selected() {
    assert_eq!(select_profile(Some("a"), Some("b"), Some("c")), Some("a"));
    assert_eq!(select_profile(None, Some("b"), Some("c")), Some("b"));
    assert_eq!(select_profile(None, None, Some("c")), Some("c"));
    assert_eq!(select_profile(None, None, None), None);
}
