//! Truncated, oversized and damaged replies: parsing never panics, and a truncated reply executes
//! nothing.

use super::*;

/// Replies with text that could be mistaken for the end of an object.
const REPLIES: [&str; 4] = [
    r#"{"summary":"a } b { \"actions\":[] \\","note":{"actions":[]},"actions":[{"type":"write","path":"a.json","content":"{\"actions\":[]} {'actions':[]} é \ud83d\ude00"},{"type":"run","command":"echo '}' ]} \\\"","timeout_s":5},{"type":"stop_success","reason":"done"}],"claims":{"checkboxes_checked":["M1.1"],"milestones_completed":[]}}"#,
    r#"{'summary': 'it\'s {"actions":[]}', /* {"actions":[]} */ 'actions': [{'type': 'run', 'command': 'grep "\d" {a,b}',},], }"#,
    "I'll do {x} <think>{\"actions\":[]}</think>\n```json\n{summary: \"<think>\", # {\"actions\":[]}\n\"actions\": [{\"type\": \"pause\", \"reason\": \"a\nb\"}]}",
    "{ // {'actions': []}\n \"actions\": [{\"type\": \"commit\", \"message\": \"m\", \"paths\": [\".\"]}]}",
];

#[test]
fn complete_replies_are_accepted() {
    let counts = REPLIES.map(|reply| parse(reply).unwrap().actions.len());
    assert_eq!(counts, [3, 1, 1, 1]);
}

#[test]
fn every_proper_prefix_of_a_reply_is_rejected() {
    for reply in REPLIES {
        for (end, _) in reply.char_indices() {
            let result = parse(&reply[..end]);
            assert!(
                matches!(result, Err(ReplyError::Truncated | ReplyError::NoObject)),
                "{:?} gave {result:?}",
                &reply[..end]
            );
        }
    }
}

#[test]
fn a_truncated_second_object_rejects_the_reply() {
    let reply = r#"For example {"actions":[]} but now {"actions":[{"type":"run","#;
    assert_eq!(parse(reply), Err(ReplyError::Truncated));
    let thought = r#"{"actions":[]} <think> or rather"#;
    assert_eq!(parse(thought), Err(ReplyError::Truncated));
}

#[test]
fn damaged_replies_never_panic_and_stay_within_the_limits() {
    for reply in REPLIES {
        for position in 0..reply.len() {
            let mut damaged = reply.as_bytes().to_vec();
            for byte in *b"\"\\}[:<\xff" {
                damaged[position] = byte;
                check_limits(&String::from_utf8_lossy(&damaged));
            }
            damaged.remove(position);
            check_limits(&String::from_utf8_lossy(&damaged));
        }
    }
}

fn check_limits(reply: &str) {
    match parse(reply) {
        Ok(response) => assert!(response.executable().len() <= 3, "{reply}"),
        Err(error) => assert!(error.to_string().len() < 4096, "{reply}"),
    }
}

#[test]
fn size_and_depth_are_checked_before_anything_is_parsed() {
    let nested = |depth: usize| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        format!(r#"{{"summary":"s","extra":{open}{close},"actions":[]}}"#)
    };
    assert_eq!(parse(&nested(limits::MAX_DEPTH - 1)), Ok(response(vec![])));
    assert_eq!(parse(&nested(limits::MAX_DEPTH)), Err(ReplyError::TooDeep));
    assert_eq!(parse(&"{\"a\":".repeat(300_000)), Err(ReplyError::TooDeep));
    assert_eq!(parse(&"[".repeat(1_000_000)), Err(ReplyError::NoObject));

    let padded = |length: usize| {
        let object = r#"{"summary":"s","actions":[]}"#;
        format!("{object}{}", " ".repeat(length - object.len()))
    };
    assert_eq!(
        parse(&padded(limits::MAX_REPLY_BYTES)),
        Ok(response(vec![]))
    );
    assert_eq!(
        parse(&padded(limits::MAX_REPLY_BYTES + 1))
            .unwrap_err()
            .to_string(),
        "the reply has 2097153 bytes, at most 2097152 are allowed"
    );
}

#[test]
fn a_reply_with_many_small_objects_is_parsed_in_linear_time() {
    let fill = |piece: &str| piece.repeat(limits::MAX_REPLY_BYTES / piece.len());
    let same = response(vec![]);
    for piece in [r#"{"actions":[]}"#, "{\"actions\":[]}\n"] {
        let expected = Response {
            summary: String::new(),
            repaired: true,
            ..same.clone()
        };
        assert_eq!(parse(&fill(piece)), Ok(expected), "{piece}");
    }
    for (piece, error) in [
        ("> {\"actions\":[]}\n", ReplyError::OnlyExample),
        (
            r#"{"actions":[...]} "#,
            ReplyError::Malformed(String::new()),
        ),
        (
            r#"{"actions":[]}{"actions":[1]}"#,
            ReplyError::SeveralAnswers,
        ),
        ("<think>{</think>", ReplyError::NoObject),
        ("</think>{\"actions\":[]}</think>", ReplyError::NoObject),
        (
            r#"{"answer":{}}"#,
            ReplyError::Schema(ReplyProblems::default()),
        ),
        (r"\'", ReplyError::NoObject),
        ("< { > ", ReplyError::NoObject),
    ] {
        let found = parse(&fill(piece)).unwrap_err();
        let kinds = [&found, &error].map(std::mem::discriminant);
        assert_eq!(kinds[0], kinds[1], "{piece}: {found:?}");
    }
}
