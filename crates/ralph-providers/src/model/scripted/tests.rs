use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use super::*;

struct Fixture {
    _directory: tempfile::TempDir,
    path: PathBuf,
}

fn script(lines: &[&str]) -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.jsonl");
    std::fs::write(&path, lines.join("\n")).unwrap();
    Fixture {
        _directory: directory,
        path,
    }
}

impl Fixture {
    fn model(&self, used: &[&str]) -> ScriptedModel {
        let used: Vec<String> = used.iter().map(|&source| source.to_owned()).collect();
        ScriptedModel::load(&self.path, &used).unwrap()
    }

    /// Returns an error's text with the script's path replaced by `S`.
    fn redact_path(&self, error: &impl ToString) -> String {
        let path = self.path.display().to_string();
        error.to_string().replace(&path, "S")
    }
}

fn request(user: &str) -> ModelRequest {
    ModelRequest {
        system: "rules".into(),
        user: user.into(),
        schema: None,
        max_output_tokens: None,
    }
}

/// Sends each prompt and returns the sources of the replies, or the errors.
async fn ask_for_sources(
    fixture: &Fixture,
    model: &ScriptedModel,
    prompts: &[&str],
) -> Vec<String> {
    let mut sources = Vec::new();
    for prompt in prompts {
        sources.push(match model.ask_once(&request(prompt)).await {
            Ok(reply) => reply.source.unwrap(),
            Err(error) => fixture.redact_path(&error),
        });
    }
    sources
}

#[tokio::test]
async fn a_reply_carries_text_usage_and_source() {
    let fixture = script(&[
        "# the first reply is on line 2",
        r#"{"reply": {"actions": []}, "usage": {"input_tokens": 100, "output_tokens": 20}}"#,
        r#"{"reply": "äöüßé"}"#,
        r#"{"reply": "", "usage": {"input_tokens": 1, "cache_read_tokens": 1}}"#,
    ]);
    let model = fixture.model(&[]);
    assert_eq!(model.name(), format!("scripted:{}", fixture.path.display()));
    let mut seen = Vec::new();
    for _ in 0..3 {
        let reply = model.ask_once(&request("go on")).await.unwrap();
        assert_eq!(reply.finish, FinishReason::Complete);
        seen.push((reply.text, reply.usage, reply.source.unwrap()));
    }
    let usage = |input_tokens, output_tokens, cache_read_tokens| TokenUsage {
        input_tokens,
        output_tokens,
        cache_read_tokens,
        ..TokenUsage::default()
    };
    // The prompt is `rules\n\ngo on`: 12 characters.
    let expected = [
        (
            r#"{"actions":[]}"#.to_owned(),
            usage(100, 20, 0),
            "line 2".to_owned(),
        ),
        ("äöüßé".to_owned(), usage(3, 2, 0), "line 3".to_owned()),
        (String::new(), usage(1, 0, 1), "line 4".to_owned()),
    ];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn lines_are_used_in_order_and_the_last_repeats() {
    let fixture = script(&[r#"{"reply": "a"}"#, "", r#"{"reply": "b"}"#]);
    let seen = ask_for_sources(&fixture, &fixture.model(&[]), &["p"; 4]).await;
    assert_eq!(seen, ["line 1", "line 3", "line 3", "line 3"]);
}

#[tokio::test]
async fn the_first_unused_line_that_matches_is_used() {
    let fixture = script(&[
        r#"{"reply": "doctor", "when": "diagnose"}"#,
        r#"{"reply": "a"}"#,
        r#"{"reply": "doctor again", "when": "(?i)DIAGNOSE"}"#,
        r#"{"reply": "from the system part", "when": "^rules\n\nspecial$"}"#,
        r#"{"reply": "b"}"#,
    ]);
    let prompts = [
        "x",
        "please diagnose",
        "diagnose",
        "special",
        "x",
        "diagnose",
    ];
    let seen = ask_for_sources(&fixture, &fixture.model(&[]), &prompts).await;
    assert_eq!(
        seen,
        ["line 2", "line 1", "line 3", "line 4", "line 5", "line 5"]
    );
}

#[tokio::test]
async fn a_prompt_that_no_line_matches_is_an_error() {
    let fixture = script(&[
        r#"{"reply": "a", "when": "one"}"#,
        r#"{"reply": "b", "when": "two"}"#,
    ]);
    let nothing = "model `scripted:S` cannot answer: no line of the script matches this prompt";
    let seen = ask_for_sources(
        &fixture,
        &fixture.model(&[]),
        &["three", "one", "one", "two", "two"],
    )
    .await;
    assert_eq!(seen, [nothing, "line 1", nothing, "line 2", "line 2"]);
}

#[tokio::test]
async fn a_restart_does_not_use_a_line_twice() {
    let fixture = script(&[
        r#"{"reply": "a"}"#,
        r#"{"error": {"status": 500}}"#,
        r#"{"reply": "b", "when": "x"}"#,
        r#"{"reply": "c"}"#,
    ]);
    let failed = "model `scripted:S` is not available at the moment: status 500, simulated by line 2 of the script";
    let before = ask_for_sources(&fixture, &fixture.model(&[]), &["x"; 4]).await;
    assert_eq!(before, ["line 1", failed, "line 3", "line 4"]);
    // Failures are not recorded, so they occur once per process.
    let after = ask_for_sources(&fixture, &fixture.model(&["line 3", "line 1"]), &["x"; 3]).await;
    assert_eq!(after, [failed, "line 4", "line 4"]);
    let at_the_end = fixture.model(&["line 1", "line 3", "line 4", "line 4"]);
    let after = ask_for_sources(&fixture, &at_the_end, &["x"; 2]).await;
    assert_eq!(after, [failed, "line 4"]);
}

#[test]
fn a_used_line_that_is_gone_is_an_error() {
    let fixture = script(&[r#"{"reply": "a"}"#, r#"{"error": {"status": 500}}"#]);
    for used in ["line 3", "line 2", "line 01", "reply 1", ""] {
        let error = ScriptedModel::load(&fixture.path, &[used.to_owned()]).unwrap_err();
        let expected = format!(
            "script `S` no longer has the reply at `{used}` that the run has used: the file has changed"
        );
        assert_eq!(fixture.redact_path(&error), expected);
    }
}

#[tokio::test]
async fn a_status_becomes_the_error_that_a_provider_would_cause() {
    let cases = [
        ("401", "Unauthorized 401"),
        ("403", "Unauthorized 403"),
        (
            "400",
            "Broken status 400, simulated by line 1 of the script",
        ),
        (
            "404",
            "Broken status 404, simulated by line 1 of the script",
        ),
        (
            "429, \"retry_after\": 1",
            "Transient 429 Some(1s) simulated by line 1 of the script",
        ),
        (
            "429, \"retry_after\": 1, \"quota\": true",
            "QuotaUsedUp Some(1s) simulated by line 1 of the script",
        ),
        (
            "529",
            "Transient 529 None simulated by line 1 of the script",
        ),
        ("0", "Transient 0 None simulated by line 1 of the script"),
    ];
    for (status, expected) in cases {
        let fixture = script(&[&format!(r#"{{"error": {{"status": {status}}}}}"#)]);
        let error = fixture
            .model(&[])
            .ask_once(&request("p"))
            .await
            .unwrap_err();
        let seen = match error {
            ModelError::Transient {
                status,
                retry_after,
                message,
                ..
            } => format!("Transient {status} {retry_after:?} {message}"),
            ModelError::Unauthorized { status, .. } => format!("Unauthorized {status}"),
            ModelError::Broken { message, .. } => format!("Broken {message}"),
            ModelError::QuotaUsedUp {
                resets_in, message, ..
            } => format!("QuotaUsedUp {resets_in:?} {message}"),
            ModelError::CutOff { message, .. } => format!("CutOff {message}"),
        };
        assert_eq!(seen, expected);
    }
}

#[tokio::test]
async fn a_delay_postpones_the_reply() {
    let fixture = script(&[
        r#"{"reply": "a", "delay_ms": 60}"#,
        r#"{"error": {"status": 500}, "delay_ms": 60}"#,
    ]);
    let model = fixture.model(&[]);
    for succeeds in [true, false] {
        let start = Instant::now();
        assert_eq!(model.ask_once(&request("p")).await.is_ok(), succeeds);
        assert!(start.elapsed() >= Duration::from_millis(60));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_at_the_same_time_never_share_a_line() {
    let lines: Vec<String> = (0..40).map(|n| format!(r#"{{"reply": "{n}"}}"#)).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let model = Arc::new(script(&lines).model(&[]));
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..40 {
        let model = Arc::clone(&model);
        calls.spawn(async move { model.ask_once(&request("p")).await.unwrap().text });
    }
    let mut seen: Vec<u32> = Vec::new();
    while let Some(text) = calls.join_next().await {
        seen.push(text.unwrap().parse().unwrap());
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..40).collect::<Vec<u32>>());
}
