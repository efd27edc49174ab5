//! All messages of the commands, and the file used without a keyring.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::fixture::{TokenTestEnv, canary, in_days, mode, output};

#[test]
fn a_token_is_stored_checked_and_given_back() {
    let test_env = TokenTestEnv::new();
    let token = canary();
    let file = test_env.file("claude-token");
    let (milliseconds, date) = in_days(40);
    let unknown = format!("from `{}`, no expiry known", file.display());
    for (input, stored_until, valid_until, names) in [
        (
            format!("{token}\n"),
            "no expiry known".to_owned(),
            unknown.clone(),
            &["accessToken"][..],
        ),
        (
            format!(r#"{{"accessToken":"{token}"}}"#),
            "no expiry known".to_owned(),
            unknown,
            &["accessToken"],
        ),
        (
            format!(r#"{{"accessToken":"{token}","expiresAt":{milliseconds}}}"#),
            format!("expires {date}"),
            format!("expires {date}, 40 days remaining"),
            &["accessToken", "expiresAt"],
        ),
    ] {
        let stored = test_env.store(&[], &input);
        assert_eq!(
            stored,
            output(
                0,
                &format!("ralph: token stored for agent claude ({stored_until})\n"),
                &format!(
                    "ralph: the token was not validated\nralph: the token is stored in `{}`, unencrypted and readable only by you\n",
                    file.display()
                ),
            )
        );
        assert_eq!(
            test_env.run(&["check-token"]),
            output(
                0,
                &format!("ralph: token valid for agent claude ({valid_until})\n"),
                ""
            )
        );
        assert_eq!(test_env.run(&["get-token"]), output(0, &token, ""));
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
        let kept: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let kept_names: Vec<&String> = kept.as_object().unwrap().keys().collect();
        assert_eq!(kept_names, names);
        test_env.assert_absent(&token, std::slice::from_ref(&file));
    }
}

#[test]
fn missing_and_expired_tokens_keep_their_script_messages() {
    let test_env = TokenTestEnv::new();
    let past = r#"{"accessToken":"sk-ant-oat01-12345678","expiresAt":1000000000000}"#;
    let over = "token expired for agent claude (expired 2001-09-09)";
    for (args, input, stderr) in [
        (&["store-token"][..], "", "no token provided on stdin"),
        (&["store-token"], " \n", "no token provided on stdin"),
        (
            &["check-token"],
            "",
            "no token found for agent claude — run: ralph store-token",
        ),
        (
            &["get-token"],
            "",
            "no token found for agent claude — run: ralph store-token",
        ),
        (
            &["--agent", "codex", "check-token"],
            "",
            "no token found for agent codex — run: ralph store-token --agent codex",
        ),
        (
            &["--auth=gateway", "check-token", "--agent=claude"],
            "",
            "no token found for agent claude — run: ralph store-token --auth gateway",
        ),
        (&["store-token", "--no-validate"], past, over),
    ] {
        let stderr = format!("ralph: {stderr}\n");
        assert_eq!(
            test_env.run_with_input(args, input),
            output(1, "", &stderr),
            "{args:?}"
        );
    }
    assert!(!test_env.file("claude-token").exists());
    test_env.store(&[], &canary());
    fs::write(test_env.file("claude-token"), past).unwrap();
    assert_eq!(
        test_env.run(&["check-token"]),
        output(1, "", &format!("ralph: {over}\n"))
    );
    assert_eq!(
        test_env.run(&["get-token"]),
        output(1, "", &format!("ralph: {over} — run: ralph store-token\n"))
    );
}

#[test]
fn an_invalid_token_is_rejected_and_not_echoed() {
    let test_env = TokenTestEnv::new();
    let why = "a token is 8 to 16384 printable characters without spaces";
    let fix = "pipe in the bare token, or JSON with `accessToken`";
    for (input, why) in [
        ("canary canary", why),
        ("canary", why),
        (
            r#"{"accessToken":"canary-canary","baseUrl":"http://gw.example"}"#,
            "`baseUrl` cannot be used: `http` would send the token unencrypted, which is only allowed to this machine",
        ),
    ] {
        let stderr = format!("ralph: cannot read the token from stdin — {why} — {fix}\n");
        assert_eq!(
            test_env.run_with_input(&["store-token"], input),
            output(1, "", &stderr)
        );
    }
    let odd = test_env.store(&[], r#"{"token":"canary-canary"}"#);
    assert!(
        odd.stderr
            .starts_with("ralph: the input is JSON without `accessToken`, used as a bare token\n"),
        "{odd:?}"
    );
}

#[test]
fn an_api_key_is_stored_separately_and_without_an_assumed_expiry() {
    let test_env = TokenTestEnv::new();
    let key = format!("sk-ant-{}-{}", "api03", "Canary8y".repeat(6));
    test_env.store(&[], &canary());
    // Its prefix identifies it as a key.
    let stored = test_env.store(&[], &key);
    assert_eq!(
        stored.stdout,
        "ralph: token stored for agent claude (no expiry known)\n"
    );
    assert_eq!(test_env.run(&["get-token"]).stdout, canary());
    assert_eq!(
        test_env.run(&["get-token", "--auth", "api-key"]).stdout,
        key
    );
    test_env.assert_absent(&key, &[test_env.file("claude-token.api-key")]);
    test_env.describe_mine();
    let other = test_env.store(&["--agent", "mine"], &key);
    assert!(other.stdout.contains("for agent mine"), "{other:?}");
    test_env.assert_absent(
        &key,
        &[
            test_env.file("claude-token.api-key"),
            test_env.file("mine-token.api-key"),
        ],
    );
}

#[test]
fn a_file_that_others_can_get_at_is_refused() {
    let test_env = TokenTestEnv::new();
    test_env.store(&[], &canary());
    let file = test_env.file("claude-token");
    let directory = file.parent().unwrap().to_owned();
    let chmod = |path: &std::path::Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    for (path, wide, narrow) in [(&file, 0o644, 0o600), (&directory, 0o750, 0o700)] {
        chmod(path, wide);
        let name = path.display();
        let stderr = format!(
            "ralph: cannot access the tokens of agent claude — `{name}` has the mode {wide:04o}, at most {narrow:04o} is allowed — run: chmod {narrow:o} {name}\n"
        );
        for args in [&["check-token"][..], &["get-token"]] {
            assert_eq!(test_env.run(args), output(1, "", &stderr));
        }
        assert_eq!(mode(path), wide);
        chmod(path, narrow);
    }
    assert_eq!(test_env.run(&["get-token"]).stdout, canary());
    chmod(&directory, 0o755);
    let refused = test_env.run_with_input(&["store-token", "--no-validate"], &canary());
    assert_eq!((refused.code, refused.stdout.as_str()), (1, ""));
    chmod(&directory, 0o700);
    let elsewhere = test_env.programs().join("elsewhere");
    fs::rename(&file, &elsewhere).unwrap();
    symlink(&elsewhere, &file).unwrap();
    assert_eq!(
        test_env.run(&["get-token"]),
        output(
            1,
            "",
            &format!(
                "ralph: cannot access the tokens of agent claude — `{0}` is not a file owned by this user — move `{0}` away\n",
                file.display()
            )
        )
    );
    fs::remove_file(&file).unwrap();
    fs::write(&file, "canary").unwrap();
    chmod(&file, 0o600);
    assert_eq!(
        test_env.run(&["get-token"]),
        output(
            1,
            "",
            &format!(
                "ralph: the token of agent claude in `{}` cannot be used — it is not a JSON object — run: ralph store-token\n",
                file.display()
            )
        )
    );
}

#[test]
fn the_environment_is_read_last() {
    let test_env = TokenTestEnv::new()
        .env("ANTHROPIC_API_KEY", "key-of-the-shell")
        .env("ANTHROPIC_AUTH_TOKEN", "gateway-of-the-shell")
        .env("OPENAI_API_KEY", "openai-of-the-shell");
    let get = |args: &[&str]| test_env.run(&[&["get-token"], args].concat());
    assert_eq!(get(&[]), output(0, "key-of-the-shell", ""));
    assert_eq!(
        get(&["--agent", "codex"]),
        output(0, "openai-of-the-shell", "")
    );
    assert_eq!(
        test_env.run(&["check-token"]),
        output(
            0,
            "ralph: token valid for agent claude (from ANTHROPIC_API_KEY, no expiry known)\n",
            ""
        )
    );
    // A gateway's key without its address would be sent to the wrong host.
    assert_eq!(get(&["--auth", "gateway"]).code, 1);
    assert_eq!(get(&["--store", "file"]).code, 1);
    test_env.store(&[], &canary());
    assert_eq!(get(&[]), output(0, &canary(), ""));
    assert_eq!(
        get(&["--auth", "api-key"]),
        output(0, "key-of-the-shell", "")
    );
    let test_env = test_env.env("ANTHROPIC_BASE_URL", "https://gw.example");
    let gateway = test_env.run(&["get-token", "--auth", "gateway"]);
    assert_eq!(gateway, output(0, "gateway-of-the-shell", ""));
}
