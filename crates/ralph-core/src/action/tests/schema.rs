//! Tests for strict JSON that follows or violates the schema.

use super::*;
use crate::ports::WriteMode;

/// Returns the problems of a reply with these actions, one per line.
fn action_problems(actions: &str) -> Vec<String> {
    problems(&format!(r#"{{"actions":[{actions}]}}"#))
}

fn problems(reply: &str) -> Vec<String> {
    match parse(reply) {
        Err(ReplyError::Schema(problems)) => {
            problems.listed().iter().map(ToString::to_string).collect()
        }
        other => panic!("{reply} gave {other:?}"),
    }
}

#[test]
fn the_example_of_the_contract_is_valid() {
    let example: String = SCHEMA_TEXT
        .lines()
        .skip_while(|line| *line != "{")
        .take_while(|line| !line.is_empty())
        .collect();
    // The unchanged example is rejected as an answer, so one value differs.
    let example = example.replace("answer = 42", "answer = 43");
    let expected = Response {
        summary: "short summary for humans".into(),
        actions: vec![
            Action::Run {
                command: "npm test".into(),
                cwd: None,
                timeout: Duration::from_mins(15),
            },
            Action::Patch {
                path: path("src/foo.ts"),
                patch: "--- a/src/foo.ts\n+++ b/src/foo.ts\n@@ -1,2 +1,2 @@\n-old\n+new\n same\n"
                    .into(),
            },
            Action::Write {
                path: path("src/new.ts"),
                content: "export const answer = 43;\n".into(),
                mode: WriteMode::Replace,
            },
            Action::Write {
                path: path(".ralph/guardrails.md"),
                content: "- run the linter before the tests\n".into(),
                mode: WriteMode::Append,
            },
            Action::Commit {
                message: "Fix health endpoint".into(),
                paths: vec![path("src/foo.ts"), path("src/new.ts")],
            },
            Action::Rotate {
                reason: "need a fresh pass".into(),
            },
        ],
        claims: Claims {
            checkboxes_checked: vec!["M1.1".into()],
            milestones_completed: vec![],
        },
        repaired: false,
    };
    assert_eq!(parse(&example), Ok(expected));
}

#[test]
fn the_contract_names_the_limits_and_stays_short() {
    assert!(SCHEMA_TEXT.lines().count() <= 60);
    let mebibyte = 1024 * 1024;
    for named in [
        format!("{} actions;", limits::MAX_ACTIONS),
        format!(
            "{} MiB per content or patch;",
            limits::MAX_CONTENT_BYTES / mebibyte
        ),
        format!(
            "{} KiB per command or message;",
            limits::MAX_COMMAND_BYTES / 1024
        ),
        format!(
            "{} MiB for the whole reply.",
            limits::MAX_REPLY_BYTES / mebibyte
        ),
        format!(
            "1 to {}, default {})",
            limits::MAX_TIMEOUT.as_secs(),
            limits::DEFAULT_TIMEOUT.as_secs()
        ),
    ] {
        assert!(
            SCHEMA_TEXT.contains(&named),
            "{named:?} is not in the contract"
        );
    }
    assert_eq!(limits::MAX_CONTENT_BYTES, limits::MAX_PATCH_BYTES);
    assert_eq!(limits::MAX_COMMAND_BYTES, limits::MAX_MESSAGE_BYTES);
}

#[test]
fn optional_fields_may_be_omitted() {
    let empty = Response {
        summary: String::new(),
        ..response(vec![])
    };
    for reply in [
        r#"{"actions":[]}"#,
        r#"{"summary":null,"actions":[],"claims":null}"#,
        r#"{"actions":[],"claims":{},"thoughts":{"type":1},"model":"x"}"#,
        r#"{"actions":[],"claims":{"checkboxes_checked":null,"other":1}}"#,
    ] {
        assert_eq!(parse(reply), Ok(empty.clone()), "{reply}");
    }
    for (action, expected) in [
        (
            r#"{"type":"run","command":"a","cwd":null,"timeout_s":null}"#,
            run("a"),
        ),
        (r#"{"type":"run","command":"a","cwd":"./"}"#, run("a")),
        (
            r#"{"type":"run","command":"a","cwd":"web/","timeout_s":1}"#,
            Action::Run {
                command: "a".into(),
                cwd: Some(path("web")),
                timeout: Duration::from_secs(1),
            },
        ),
        (
            r#"{"type":"commit","message":"m"}"#,
            Action::Commit {
                message: "m".into(),
                paths: vec![],
            },
        ),
        (
            r#"{"type":"commit","message":"","paths":["a","."]}"#,
            Action::Commit {
                message: String::new(),
                paths: vec![],
            },
        ),
        (
            r#"{"type":"write","path":"a","content":"","append":null}"#,
            Action::Write {
                path: path("a"),
                content: String::new(),
                mode: WriteMode::Replace,
            },
        ),
        (
            r#"{"type":"stop_failure","reason":""}"#,
            Action::StopFailure {
                reason: String::new(),
            },
        ),
    ] {
        let reply = format!(r#"{{"summary":"s","actions":[{action}]}}"#);
        assert_eq!(parse(&reply), Ok(response(vec![expected])), "{action}");
    }
}

/// Replies with their problems.
const WRONG_REPLIES: &[(&str, &str)] = &[
    (r#"{"summary":"s"}"#, "actions: is missing"),
    (
        r#"{"actions":null}"#,
        "actions: expected an array, found null",
    ),
    (
        r#"{"actions":{}}"#,
        "actions: expected an array, found an object",
    ),
    (
        r#"{"summary":[],"actions":[]}"#,
        "summary: expected a string, found an array",
    ),
    (
        r#"{"actions":[],"claims":[]}"#,
        "claims: expected an object, found an array",
    ),
    (
        r#"{"actions":[],"claims":{"checkboxes_checked":"M1"}}"#,
        r#"claims.checkboxes_checked: expected an array, found "M1""#,
    ),
    (
        r#"{"actions":[],"claims":{"milestones_completed":["M1",true]}}"#,
        "claims.milestones_completed[1]: expected a string, found true",
    ),
    (
        r#"{"actions":["run"]}"#,
        r#"actions[0]: expected an object, found "run""#,
    ),
];

/// Actions with their problems, without the prefix `actions[0].`.
const WRONG_ACTIONS: &[(&str, &str)] = &[
    ("{}", "type: is missing"),
    (r#"{"type":true}"#, "type: expected a string, found true"),
    (
        r#"{"type":"Run","command":"a"}"#,
        r#"type: unknown action "Run"; valid actions are run, patch, write, commit, rotate, pause, stop_success, stop_failure"#,
    ),
    (
        r#"{"type":"request_pr_update"}"#,
        r#"type: unknown action "request_pr_update"; valid actions are run, patch, write, commit, rotate, pause, stop_success, stop_failure"#,
    ),
    (r#"{"type":"run"}"#, "command: is missing"),
    (r#"{"type":"run","command":"  \n"}"#, "command: is empty"),
    (
        r#"{"type":"run","command":"a\u0000b"}"#,
        "command: contains a NUL character",
    ),
    (
        r#"{"type":"run","command":["a"]}"#,
        "command: expected a string, found an array",
    ),
    (
        r#"{"type":"run","command":"a","timeout":5}"#,
        "timeout: unknown field; this action accepts command, cwd, timeout_s",
    ),
    (
        r#"{"type":"run","command":"a","cwd":1}"#,
        "cwd: expected a string, found 1",
    ),
    (
        r#"{"type":"run","command":"a","cwd":"../.."}"#,
        "cwd: path `../..` contains `..`; paths must stay inside the repository",
    ),
    (
        r#"{"type":"patch","path":"a","content":"b","patch":"c"}"#,
        "content: unknown field; this action accepts path, patch",
    ),
    (r#"{"type":"patch","path":"a"}"#, "patch: is missing"),
    (r#"{"type":"write","path":"a"}"#, "content: is missing"),
    (
        r#"{"type":"write","path":"a","content":null}"#,
        "content: expected a string, found null",
    ),
    (
        r#"{"type":"write","path":"a","content":"b","append":"yes"}"#,
        r#"append: expected true or false, found "yes""#,
    ),
    (r#"{"type":"commit","paths":["a"]}"#, "message: is missing"),
    (
        r#"{"type":"commit","message":"m","paths":"a"}"#,
        r#"paths: expected an array, found "a""#,
    ),
    (
        r#"{"type":"commit","message":"m","paths":["a","../x"]}"#,
        "paths[1]: path `../x` contains `..`; paths must stay inside the repository",
    ),
    (r#"{"type":"rotate"}"#, "reason: is missing"),
    (
        r#"{"type":"pause","reason":3}"#,
        "reason: expected a string, found 3",
    ),
    (
        r#"{"type":"stop_success","reason":"r","sure":true}"#,
        "sure: unknown field; this action accepts reason",
    ),
    (
        r#"{"type":"stop_failure","reason":"r","a\u001b\nb":1}"#,
        "a�…: unknown field; this action accepts reason",
    ),
];

#[test]
fn each_problem_names_its_location() {
    for (reply, problem) in WRONG_REPLIES {
        assert_eq!(problems(reply), [*problem], "{reply}");
    }
    for (action, problem) in WRONG_ACTIONS {
        assert_eq!(
            action_problems(action),
            [format!("actions[0].{problem}")],
            "{action}"
        );
    }
}

#[test]
fn a_timeout_is_a_whole_number_of_seconds_of_at_most_a_day() {
    for (source, seconds) in [
        ("1", 1),
        ("900", 900),
        ("900.0", 900),
        ("86400", 86400),
        ("6e2", 600),
    ] {
        let reply = format!(
            r#"{{"summary":"s","actions":[{{"type":"run","command":"a","timeout_s":{source}}}]}}"#
        );
        let expected = Action::Run {
            command: "a".into(),
            cwd: None,
            timeout: Duration::from_secs(seconds),
        };
        assert_eq!(parse(&reply), Ok(response(vec![expected])), "{source}");
    }
    let whole = "a whole number of seconds";
    let range = "1 to 86400 seconds";
    for (source, expected, found) in [
        ("0", range, "0"),
        ("-1", range, "-1"),
        ("86401", range, "86401"),
        ("1e12", range, "1000000000000.0"),
        ("18446744073709551615", range, "18446744073709551615"),
        ("1.5", whole, "1.5"),
        ("\"5\"", whole, "\"5\""),
        ("1_000", whole, "\"1_000\""),
        ("007", whole, "\"007\""),
        ("true", whole, "true"),
        ("[5]", whole, "an array"),
    ] {
        assert_eq!(
            action_problems(&format!(
                r#"{{"type":"run","command":"a","timeout_s":{source}}}"#
            )),
            [format!(
                "actions[0].timeout_s: expected {expected}, found {found}"
            )]
        );
    }
}

#[test]
fn a_path_outside_the_workspace_rejects_the_whole_reply() {
    let long = "x".repeat(5000);
    for bad in [
        "../x",
        "/etc/x",
        "a/../../x",
        r"C:\\x",
        "C:/x",
        "",
        ".",
        "./",
        &long,
        r"a\u0000b",
        r"a\nb",
        r"a\\b",
    ] {
        for kind in ["\"patch\",\"patch\"", "\"write\",\"content\""] {
            let found = action_problems(&format!(
                r#"{{"type":"rotate","reason":"r"}},{{"type":{kind}:"x","path":"{bad}"}}"#
            ));
            assert_eq!(found.len(), 1, "{bad:?}");
            assert!(found[0].starts_with("actions[1].path: "), "{}", found[0]);
            assert!(found[0].chars().count() < 200, "{}", found[0]);
        }
    }
}

#[test]
fn lengths_are_limited() {
    let reply = |kind: &str, field: &str, length: usize| {
        let text = "x".repeat(length);
        let path = if field == "command" || field == "message" {
            ""
        } else {
            r#""path":"a","#
        };
        format!(r#"{{"actions":[{{"type":"{kind}",{path}"{field}":"{text}"}}]}}"#)
    };
    for (kind, field, bytes) in [
        ("run", "command", limits::MAX_COMMAND_BYTES),
        ("patch", "patch", limits::MAX_PATCH_BYTES),
        ("write", "content", limits::MAX_CONTENT_BYTES),
        ("commit", "message", limits::MAX_MESSAGE_BYTES),
    ] {
        assert_eq!(parse(&reply(kind, field, bytes)).unwrap().actions.len(), 1);
        assert_eq!(
            problems(&reply(kind, field, bytes + 1)),
            [format!(
                "actions[0].{field}: has {} bytes, at most {bytes} are allowed",
                bytes + 1
            )]
        );
    }
    let rotate = r#"{"type":"rotate","reason":"r"}"#;
    let many = |count: usize| vec![rotate; count].join(",");
    let fifty = parse(&format!(r#"{{"actions":[{}]}}"#, many(50))).unwrap();
    assert_eq!((fifty.actions.len(), fifty.executable().len()), (50, 1));
    assert_eq!(
        action_problems(&many(51)),
        ["actions: has 51 entries, at most 50 are allowed"]
    );
    assert_eq!(
        action_problems(&format!(
            r#"{{"type":"commit","message":"m","paths":[{}]}}"#,
            vec!["\"a\""; 501].join(",")
        )),
        [
            "actions[0].paths: has 501 entries, at most 500 are allowed; leave it out to commit all changes"
        ]
    );
    assert_eq!(
        problems(&format!(
            r#"{{"actions":[],"claims":{{"checkboxes_checked":[{}]}}}}"#,
            vec!["\"a\""; 1001].join(",")
        )),
        ["claims.checkboxes_checked: has 1001 entries, at most 1000 are allowed"]
    );
}

#[test]
fn prose_is_truncated_and_claims_are_normalised() {
    let long = "é".repeat(limits::MAX_PROSE_BYTES);
    let cut = "é".repeat(limits::MAX_PROSE_BYTES / 2);
    let reply = format!(
        r#"{{"summary":"{long}","actions":[{{"type":"pause","reason":"{long}"}}],"claims":{{"checkboxes_checked":[" M1.1 ","M1.1","","M2.3"],"milestones_completed":["M1"]}}}}"#
    );
    let expected = Response {
        summary: cut.clone(),
        actions: vec![Action::Pause { reason: cut }],
        claims: Claims {
            checkboxes_checked: vec!["M1.1".into(), "M2.3".into()],
            milestones_completed: vec!["M1".into()],
        },
        repaired: false,
    };
    assert_eq!(parse(&reply), Ok(expected));
}

#[test]
fn one_invalid_action_rejects_all_and_every_problem_is_listed() {
    let good = r#"{"type":"run","command":"a"}"#;
    let reply = format!(
        r#"{{"actions":[{good},{good},{{"type":"run","command":"a","timeout_s":"5","shell":"sh"}},{good},{{"type":"write","path":"/x"}}]}}"#
    );
    snapbox::assert_data_eq!(
        parse(&reply).unwrap_err().to_string(),
        snapbox::str![[r#"
the reply does not follow the schema, so nothing was executed:
- actions[2].shell: unknown field; this action accepts command, cwd, timeout_s
- actions[2].timeout_s: expected a whole number of seconds, found "5"
- actions[4].path: path `/x` is absolute; paths are relative to the repository
- actions[4].content: is missing
"#]]
    );
    let many = vec![r#"{"type":"fly"}"#; 13].join(",");
    let Err(ReplyError::Schema(found)) = parse(&format!(r#"{{"actions":[{many}]}}"#)) else {
        panic!("an unknown action was accepted");
    };
    assert_eq!(
        (found.listed().len(), found.unlisted()),
        (limits::MAX_PROBLEMS, 3)
    );
    assert!(found.to_string().ends_with("\n- and 3 more"));
}
