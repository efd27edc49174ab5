//! Realistic model replies: which of several answers counts, which box a claim names, which mode a
//! patch sets.

use std::fs;

use serde_json::{Value, json};

use crate::project::{Project, actions, claiming, commit, finish, patch, run, write};

/// Returns a line of a script with a reply as text.
fn text(reply: &str) -> Value {
    json!({"reply": reply, "usage": {"input_tokens": 10, "output_tokens": 10}})
}

#[test]
fn two_different_answers_are_asked_again_and_none_is_performed() {
    let draft = actions(&[run("touch draft")])["reply"].to_string();
    let other = actions(&[run("touch other")])["reply"].to_string();
    let reply = format!("Draft:\n{draft}\n\nCorrected version:\n{other}\n");
    let project = Project::new().script(&[
        text(&reply),
        actions(&[run("test ! -e draft && test ! -e other")]),
        finish(),
    ]);
    project.run().expect(0);
    let rejected = project.event_values("reply_rejected", "errors");
    assert_eq!(rejected.len(), 1, "{rejected:?}");
    let errors = rejected[0].as_str().unwrap();
    assert!(errors.contains("several different answers"), "{errors}");
    assert_eq!(project.results(1), ["ran 0"]);
    project.audit();
}

#[test]
fn an_example_in_front_of_the_answer_is_not_performed() {
    let example = r#"{"summary": "...", "actions": [{"type": "run", "command": "..."}]}"#;
    let answer = actions(&[run("echo \"it's real\"")])["reply"].to_string();
    let project = Project::new().script(&[
        text(&format!("Format: {example}\n\n```json\n{answer}\n```")),
        finish(),
    ]);
    project.run().expect(0);
    assert_eq!(project.events("reply_rejected").len(), 0);
    assert_eq!(project.results(1), ["ran 0"]);
    project.audit();
}

/// A task whose boxes have no ids.
const NAMELESS: &str = "# Task: Two files\n\n- [ ] The file `a.txt` says **one**\n  - verify: `grep -q one a.txt`\n\
                        - [ ] The file b.txt is there\n  - verify: `test -s b.txt`\n";

#[test]
fn boxes_without_ids_are_claimed_by_id_text_or_number() {
    let solution = [
        write("a.txt", "one\n"),
        write("b.txt", "two\n"),
        commit("Two"),
    ];
    for claims in [
        ["the-file-a-txt-says-one", "the-file-b-txt-is-there"],
        ["The file a.txt says one", "- [x] The file b.txt is there."],
        ["1", "box #2"],
    ] {
        let project = Project::new()
            .body(NAMELESS)
            .script(&[claiming(&claims, &solution)]);
        project.run().expect(0);
        let prompt = project.prompt(1);
        for line in [
            "1. the-file-a-txt-says-one: The file `a.txt` says **one**",
            "2. the-file-b-txt-is-there: The file b.txt is there",
        ] {
            assert!(prompt.contains(line), "{prompt}");
        }
        assert_eq!(
            project.event_values("claim_checked", "checkbox"),
            ["the-file-a-txt-says-one", "the-file-b-txt-is-there"]
        );
        let body = project.pull()["body"].as_str().unwrap().to_owned();
        assert!(body.contains("- [x] The file b.txt is there\n"), "{body}");
        project.audit();
    }
}

#[test]
fn an_unclear_claim_ticks_nothing_and_is_answered_with_the_open_boxes() {
    let solution = [
        write("a.txt", "one\n"),
        write("b.txt", "two\n"),
        commit("Two"),
    ];
    let project = Project::new().body(NAMELESS).script(&[
        claiming(&["1", "the file", "99"], &solution),
        claiming(&["the-file-b-txt-is-there"], &[]),
    ]);
    project.run().expect(0);
    let checked = project.events("claim_checked");
    let refused: Vec<&str> = checked
        .iter()
        .filter(|event| event["verified"] == false)
        .map(|event| event["why"].as_str().unwrap())
        .collect();
    assert_eq!(
        refused,
        [
            "the task has no checkbox `the file`",
            "the task has no checkbox `99`"
        ]
    );
    let prompt = project.prompt(2);
    let answer = "claim checkboxes by their id; open checkboxes: 2. the-file-b-txt-is-there: The file b.txt is there";
    assert!(prompt.contains(answer), "{prompt}");
    project.audit();
}

#[test]
fn a_tick_survives_a_box_that_is_inserted_above() {
    let more = NAMELESS.replacen(
        "- [ ]",
        "- [ ] A license is there\n  - verify: `test -e LICENSE`\n- [ ]",
        1,
    );
    let wait = run("while ! test -e go; do sleep 0.1; done; rm go");
    let rest = [
        write("a.txt", "one\n"),
        write("LICENSE", "mine\n"),
        commit("All"),
    ];
    let project = Project::new().body(NAMELESS).script(&[
        claiming(&["2"], &[write("b.txt", "two\n")]),
        actions(&[wait]),
        claiming(&["a-license-is-there", "the-file-a-txt-says-one"], &rest),
    ]);
    let live = project.start();
    live.wait_for_event("action_started", 2);
    let text = project.task_text().replace(NAMELESS, &more);
    fs::write(project.task(), text).unwrap();
    project.ralph(&["task", "last"]).expect(0);
    fs::write(project.sandbox().join("go"), "").unwrap();
    live.wait().expect(0);
    let ticked = project.event_values("boxes_ticked", "ticked");
    assert_eq!(ticked[0], json!(["the-file-b-txt-is-there"]));
    let last = ticked.last().unwrap().as_array().unwrap();
    assert_eq!(last.len(), 3, "{ticked:?}");
    let claimed = project.event_values("claim_checked", "checkbox");
    let second = claimed
        .iter()
        .filter(|id| **id == "the-file-b-txt-is-there");
    assert_eq!(second.count(), 1, "{claimed:?}");
    project.audit();
}

#[test]
fn a_patch_makes_a_file_executable_or_is_refused() {
    let new = |mode: &str, name: &str, line: &str| {
        format!(
            "diff --git a/{name} b/{name}\nnew file mode {mode}\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+{line}\n"
        )
    };
    let plain = "diff --git a/tool b/tool\nold mode 100755\nnew mode 100644\n";
    let project = Project::new().set("on_action_error", "continue").script(&[
        actions(&[
            patch("-tool", &new("100755", "-tool", "echo tool")),
            patch("tool", &new("100755", "tool", "echo tool")),
            run("./-tool && ./tool"),
            patch("tool", plain),
            run("test ! -x tool"),
            patch("link", &new("120000", "link", "/etc/passwd")),
            run("test ! -e link && test ! -L link"),
            commit("Add tools"),
        ]),
        finish(),
    ]);
    project.run().expect(0);
    assert_eq!(
        project.results(1),
        [
            "done", "done", "ran 0", "done", "ran 0", "failed", "ran 0", "done"
        ]
    );
    let branch = project.show()["branch"].as_str().unwrap().to_owned();
    let listed = project.git(&["ls-tree", &branch, "--", "-tool", "tool"]);
    assert!(
        listed.starts_with("100755 ") && listed.contains("\n100644 "),
        "{listed}"
    );
    project.audit();
}
