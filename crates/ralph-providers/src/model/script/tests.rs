use super::*;

fn read_text(text: impl AsRef<[u8]>) -> Result<Vec<ScriptLine>, String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.jsonl");
    std::fs::write(&path, text).unwrap();
    let shown = path.display().to_string();
    read_script(&path).map_err(|error| error.to_string().replace(&shown, "s.jsonl"))
}

const EVERY_KEY: &str = concat!(
    "\u{feff}# a comment\r\n",
    "\r\n",
    "  // another one\n",
    r#"{"reply": "hello", "when": "^sys", "delay_ms": 20}"#,
    "\r\n",
    r#"{"reply": {"z": [1, 2.5], "a": "ü"}, "usage": {"input_tokens": 7, "output_tokens": 8}}"#,
    "\n",
    r#"  {"reply": "x", "usage": {"input_tokens": 7, "cache_read_tokens": 3, "cache_write_tokens": 1}}"#,
    "\n\n",
    r#"{"error": {"status": 429, "retry_after": 0.5}, "delay_ms": 99999999999}"#,
    "\n",
    r#"{"error": {"status": 0}, "reply": null}"#,
);

fn reply(text: &str, tokens: [Option<u64>; 2], cached: [u64; 2]) -> ScriptAnswer {
    ScriptAnswer::Reply {
        text: text.into(),
        usage: ScriptUsage {
            input: tokens[0],
            output: tokens[1],
            cache_read: cached[0],
            cache_write: cached[1],
        },
    }
}

#[test]
fn every_key_is_understood_and_comments_are_skipped() {
    let lines = read_text(EVERY_KEY).unwrap();
    let seen: Vec<_> = lines
        .iter()
        .map(|line| {
            let when = line.when.as_ref().map(Regex::as_str);
            (line.number, when, line.delay.as_millis(), &line.answer)
        })
        .collect();
    let limited = ScriptAnswer::Failure(ScriptFailure {
        status: 429,
        retry_after: Some(Duration::from_millis(500)),
        is_quota: false,
    });
    let silent = ScriptAnswer::Failure(ScriptFailure {
        status: 0,
        retry_after: None,
        is_quota: false,
    });
    let object = r#"{"z":[1,2.5],"a":"ü"}"#;
    let expected = [
        (4, Some("^sys"), 20, &reply("hello", [None; 2], [0; 2])),
        (5, None, 0, &reply(object, [Some(7), Some(8)], [0; 2])),
        (6, None, 0, &reply("x", [Some(7), None], [3, 1])),
        // The longest delay is an hour.
        (8, None, 3_600_000, &limited),
        (9, None, 0, &silent),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn an_invalid_line_is_reported_with_its_cause() {
    let cases = [
        (
            r#"{"delay_ms": 1}"#,
            "has neither `reply` nor `error`, but needs one of them",
        ),
        (
            r"{}",
            "has neither `reply` nor `error`, but needs one of them",
        ),
        (
            r#"{"reply": "a", "error": {"status": 500}}"#,
            "has both `reply` and `error`, but only one of them is allowed",
        ),
        (
            r#"{"error": {"status": 500}, "usage": {"input_tokens": 1}}"#,
            "has `usage` next to `error`: only a `reply` uses tokens",
        ),
        (
            r#"{"reply": ["a"]}"#,
            "`reply` must be a string or an object",
        ),
        (r#"{"reply": 7}"#, "`reply` must be a string or an object"),
        (r#"["a", null, null, null, null]"#, "is not a JSON object"),
        (r#""a""#, "is not a JSON object"),
        (
            r#"{"reply": "a", "dely_ms": 1}"#,
            "column 24: unknown field `dely_ms`, expected one of `reply`, `usage`, `delay_ms`, `error`, `when`",
        ),
        (
            r#"{"reply": "a", "reply": "b"}"#,
            "column 22: duplicate field `reply`",
        ),
        (
            r#"{"reply": "a", "usage": {"tokens": 1}}"#,
            "column 33: unknown field `tokens`, expected one of `input_tokens`, `output_tokens`, `cache_read_tokens`, `cache_write_tokens`",
        ),
        (
            r#"{"reply": "a", "usage": {"input_tokens": -1}}"#,
            "column 43: invalid value: integer `-1`, expected u64",
        ),
        (
            r#"{"error": {"retry_after": 1}}"#,
            "column 28: missing field `status`",
        ),
        (
            r#"{"error": {"status": 200}}"#,
            "`error.status` is 200, but must be 400 to 599, or 0 for no response",
        ),
        (
            r#"{"error": {"status": 429, "retry_after": -1}}"#,
            "`error.retry_after` is not a time in seconds: cannot convert float seconds to Duration: value is negative",
        ),
        (r#"{"reply": "a""#, "column 13: EOF while parsing an object"),
        (r#"{"reply": "a"} {}"#, "column 16: trailing characters"),
    ];
    for (line, why) in cases {
        let error = read_text(format!("\n{{\"reply\": \"fine\"}}\n{line}\n")).unwrap_err();
        assert_eq!(error, format!("script `s.jsonl`, line 3: {why}"), "{line}");
    }
}

#[test]
fn a_quota_needs_its_status() {
    let error = read_text(r#"{"error": {"status": 503, "quota": true}}"#).unwrap_err();
    let expected =
        "script `s.jsonl`, line 1: `error.quota` requires status 429, but `error.status` is 503";
    assert_eq!(error, expected);
}

#[test]
fn an_invalid_pattern_is_reported_with_its_location() {
    let error = read_text(r#"{"reply": "a", "when": "a("}"#).unwrap_err();
    let start = "script `s.jsonl`, line 1: `when` is not a regular expression: ";
    assert!(error.starts_with(start), "{error}");
    assert!(error.ends_with("unclosed group"), "{error}");
}

#[test]
fn a_file_that_is_not_a_script_is_rejected() {
    let empty = "script `s.jsonl` is empty: it needs at least one line with `reply` or `error`";
    for text in ["", "\n\n", "# only\n// comments\n"] {
        assert_eq!(read_text(text).unwrap_err(), empty);
    }
    assert_eq!(
        read_text(b"{\"reply\": \"a\"}\n# \xff\n").unwrap_err(),
        "script `s.jsonl`, line 2: is not UTF-8"
    );
    let missing = read_script(Path::new("no/such.jsonl"))
        .unwrap_err()
        .to_string();
    assert_eq!(
        missing,
        "cannot read script `no/such.jsonl`: No such file or directory (os error 2)"
    );
}

#[test]
fn a_file_over_the_limit_is_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.jsonl");
    // A sparse file, which uses no disk space.
    let file = File::create(&path).unwrap();
    file.set_len(MAX_SCRIPT_BYTES + 1).unwrap();
    let error = read_script(&path).unwrap_err().to_string();
    assert_eq!(
        error,
        format!("script `{}` exceeds the limit of 64 MiB", path.display())
    );
}
