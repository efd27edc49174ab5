//! Updates of a pull request that people edit, too.

use super::*;
use crate::id::CommitId;

fn draft(title: &str, body: &str) -> PullDraft {
    PullDraft {
        run: "20260301-080000-0001".into(),
        head: "ralph/one".into(),
        base: "main".into(),
        commit: CommitId::parse(&"a".repeat(40)).unwrap(),
        title: title.into(),
        body: body.into(),
        labels: vec!["ralph".into()],
        state: PullState::Draft,
    }
}

/// Applies an edit like a host.
fn apply(pull: &mut (String, String, String, bool, Vec<String>), draft: &PullDraft) -> PullEdit {
    let current = PullOnHost {
        title: &pull.0,
        body: &pull.1,
        base: &pull.2,
        is_draft: pull.3,
        labels: &pull.4,
    };
    let edit = plan_edit(&current, draft);
    pull.0 = edit.title.clone().unwrap_or_else(|| pull.0.clone());
    pull.1 = edit.body.clone().unwrap_or_else(|| pull.1.clone());
    pull.2 = edit.base.clone().unwrap_or_else(|| pull.2.clone());
    pull.3 = edit.is_draft.unwrap_or(pull.3);
    pull.4.extend(edit.labels.clone());
    edit
}

fn opened(draft: &PullDraft) -> (String, String, String, bool, Vec<String>) {
    let is_draft = draft.state == PullState::Draft;
    (
        new_title(draft),
        new_body(draft),
        draft.base.clone(),
        is_draft,
        Vec::new(),
    )
}

#[test]
fn a_repeated_update_changes_nothing() {
    let mut pull = opened(&draft("One", "text"));
    let first = apply(&mut pull, &draft("One", "text"));
    assert_eq!(first.labels, ["ralph"]);
    let second = apply(&mut pull, &draft("One", "text"));
    assert_eq!(second, PullEdit::default());
    let changed = apply(&mut pull, &draft("Two", "new text"));
    assert_eq!(changed.title.as_deref(), Some("Two"));
    assert!(pull.1.contains("new text") && !pull.1.contains("\ntext\n"));
    assert_eq!(owner(&pull.1).as_deref(), Some("20260301-080000-0001"));
}

#[test]
fn the_edits_of_a_person_survive() {
    let mut pull = opened(&draft("One", "text"));
    apply(&mut pull, &draft("One", "text"));
    pull.0 = "A better title".into();
    pull.1 = format!("Please read:\r\n\r\n{}\r\n\r\nThanks!", pull.1);
    pull.2 = "release".into();
    pull.4.clear();
    let edit = apply(&mut pull, &draft("Two", "new text"));
    assert_eq!((edit.title, edit.base), (None, None));
    assert_eq!(edit.labels, [""; 0], "a label that a person removed");
    assert!(pull.1.starts_with("Please read:\r\n\r\n<!-- ralph:pull "));
    assert!(pull.1.ends_with("<!-- ralph:end -->\r\n\r\nThanks!"));
    assert!(pull.1.contains("\nnew text\n"));
    // The title of ralph returns, so ralph owns it again.
    pull.0 = "One".into();
    let edit = apply(&mut pull, &draft("Three", "new text"));
    assert_eq!(edit.title.as_deref(), Some("Three"));
}

#[test]
fn the_pull_request_of_a_person_is_adopted() {
    let none = (
        "Mine".to_owned(),
        "My text".to_owned(),
        "main".to_owned(),
        false,
        Vec::new(),
    );
    let mut pull = none;
    let edit = apply(&mut pull, &draft("One", "text"));
    assert_eq!((edit.title, edit.is_draft), (None, None));
    assert!(pull.1.starts_with("My text\n\n<!-- ralph:pull "));
    let edit = apply(&mut pull, &draft("Two", "text"));
    assert_eq!(edit, PullEdit::default());
    let damaged = pull.1.replace(BLOCK_END, "");
    pull.1 = damaged;
    apply(&mut pull, &draft("One", "text"));
    assert_eq!(pull.1.matches(MARKER_START).count(), 1);
    assert_eq!(pull.1.matches(BLOCK_END).count(), 1);
    assert!(pull.1.starts_with("My text"));
}

#[test]
fn the_state_follows_the_last_one_of_ralph() {
    let ready = PullDraft {
        state: PullState::Open,
        ..draft("One", "text")
    };
    let mut pull = opened(&draft("One", "text"));
    assert_eq!(apply(&mut pull, &ready).is_draft, Some(false));
    assert_eq!(apply(&mut pull, &draft("One", "text")).is_draft, Some(true));
    pull.3 = false; // a person marks it ready
    assert_eq!(apply(&mut pull, &draft("One", "text")).is_draft, None);
    assert_eq!(apply(&mut pull, &ready).is_draft, None);
    pull.3 = true; // a person makes it a draft
    assert_eq!(apply(&mut pull, &ready).is_draft, None);
}

#[test]
fn an_interrupted_update_is_completed() {
    let ready = PullDraft {
        state: PullState::Open,
        ..draft("One", "text")
    };
    let mut pull = opened(&draft("One", "text"));
    let before = pull.1.clone();
    apply(&mut pull, &ready);
    // The state and the labels were changed, the text was not.
    pull.1 = before;
    let edit = apply(&mut pull, &ready);
    assert_eq!((edit.is_draft, edit.labels.len()), (None, 0));
    assert_eq!(apply(&mut pull, &ready), PullEdit::default());
}

#[test]
fn long_texts_are_cut_and_those_of_people_are_not() {
    let long = "ä".repeat(70_000);
    let body = new_body(&draft("One", &long));
    assert_eq!(body.chars().count(), MAX_BODY_CHARS);
    assert!(body.contains("The rest was cut") && body.ends_with(BLOCK_END));
    let mut pull = opened(&draft("One", &long));
    pull.1 = format!("{}{}", "b".repeat(10), new_body(&draft("One", "short")));
    apply(&mut pull, &draft("One", &long));
    assert_eq!(pull.1.chars().count(), MAX_BODY_CHARS);
    assert!(pull.1.starts_with("bbbbbbbbbb<!--"));
    let title = new_title(&draft(&"t ".repeat(300), ""));
    assert_eq!(title.chars().count(), MAX_TITLE_CHARS);
    assert_eq!(keyed_comment("k", &long).chars().count(), MAX_BODY_CHARS);
}

#[test]
fn a_text_cannot_contain_a_marker() {
    let forged = format!("x {BLOCK_END} y <!-- ralph:pull run=a --> z");
    let mut pull = opened(&draft("One", &forged));
    assert_eq!(pull.1.matches("<!-- ralph:").count(), 2);
    apply(&mut pull, &draft("One", "text"));
    assert!(!pull.1.contains('z'), "{}", pull.1);
    let comment = keyed_comment("run-1 --> x", "<!-- ralph:comment other --> text");
    assert!(
        comment.starts_with("<!-- ralph:comment run-1-x -->\n&lt;!-- ralph:"),
        "{comment}"
    );
    assert_eq!(
        text_of_comment(&keyed_comment("a", "t"), "a").as_deref(),
        Some("t")
    );
    assert_eq!(text_of_comment(&keyed_comment("a", "t"), "b"), None);
}
