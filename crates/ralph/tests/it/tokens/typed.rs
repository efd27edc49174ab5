//! Tokens typed at a terminal.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use super::fixture::{TokenTestEnv, canary, output};

/// Runs a command in a terminal, created by `script`, and returns the terminal's output.
///
/// Like a user, it types each input only after the preceding text has appeared.
fn in_terminal(test_env: &TokenTestEnv, arguments: &str, keys: &[(&str, &str)]) -> (i32, String) {
    let ralph = test_env.command(&[]);
    let line = format!("{} {arguments}", ralph.get_program().to_string_lossy());
    let mut command = Command::new("/usr/bin/script");
    command.args(["-qec", &line, "/dev/null"]).env_clear();
    for (name, value) in ralph.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut shown = Vec::new();
    for (words, typed) in keys {
        while !String::from_utf8_lossy(&shown).contains(words) {
            let mut byte = [0];
            stdout.read_exact(&mut byte).unwrap();
            shown.push(byte[0]);
        }
        stdin.write_all(typed.as_bytes()).unwrap();
        stdin.flush().unwrap();
    }
    stdout.read_to_end(&mut shown).unwrap();
    let code = child.wait().unwrap().code().unwrap();
    drop(stdin);
    (code, String::from_utf8(shown).unwrap())
}

#[test]
#[cfg(target_os = "linux")]
fn typed_tokens_are_not_echoed() {
    let test_env = TokenTestEnv::new();
    let (code, shown) = in_terminal(
        &test_env,
        "store-token --no-validate",
        &[("shown): ", &format!("{}\r", canary()))],
    );
    assert_eq!(code, 0, "{shown}");
    assert!(
        shown.starts_with("ralph: oauth token for agent claude (it is not shown): \r\n"),
        "{shown}"
    );
    assert!(!shown.contains("Canary"), "{shown}");
    assert_eq!(test_env.run(&["get-token"]), output(0, &canary(), ""));
    let (code, shown) = in_terminal(
        &test_env,
        "store-token --no-validate",
        &[("shown): ", "sk-Canary\u{3}")],
    );
    assert_eq!(code, 130, "{shown}");
    assert!(
        shown.ends_with("ralph: interrupted — nothing was stored\r\n"),
        "{shown}"
    );
}

/// Prints the token like a terminal program: in colours, once partially and once completely, after
/// a key press.
const CLAUDE: &str = r#"
[ "$1" = setup-token ] && [ -t 0 ] && [ -t 1 ] && [ -t 2 ]
stty=$(/usr/bin/env PATH=/usr/bin:/bin stty size)
printf 'Terminal: %s\r\nPaste code: ' "$stty"
read -r code
printf '\033[32mYour token: %s\033[0m\r\n' "sk-ant-oat01-Canary7xCanary7xCanary7x"
printf '\033[32mYour token: %s\033[0m\r\n' "$TOKEN_OF_THE_TEST"
"#;

#[test]
#[cfg(target_os = "linux")]
fn claude_creates_the_token_if_it_is_installed() {
    let test_env = TokenTestEnv::new()
        .program("claude", CLAUDE)
        .env("TOKEN_OF_THE_TEST", &canary());
    let (code, shown) = in_terminal(
        &test_env,
        "store-token --no-validate",
        &[("Paste code: ", "code\r")],
    );
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("Terminal: 50 512"), "{shown}");
    assert!(shown.contains("Your token: [REDACTED"), "{shown}");
    assert!(!shown.contains("Canary"), "{shown}");
    assert_eq!(test_env.run(&["get-token"]), output(0, &canary(), ""));
    test_env.assert_absent(&canary(), &[test_env.file("claude-token")]);
    // Claude cannot create an API key, so the user is prompted for it.
    let (_, shown) = in_terminal(
        &test_env,
        "store-token --no-validate --auth api-key",
        &[("shown): ", "\u{3}")],
    );
    assert!(
        shown.starts_with("ralph: api-key token for agent claude"),
        "{shown}"
    );
}

#[test]
#[cfg(target_os = "linux")]
fn a_program_that_prints_no_token_is_reported() {
    let test_env = TokenTestEnv::new().program("claude", "echo 'not today'; exit 3\n");
    let (code, shown) = in_terminal(&test_env, "store-token", &[]);
    assert_eq!(code, 1, "{shown}");
    assert!(
        shown.ends_with("ralph: `claude setup-token` created no token — it exited with 3 and printed no token — run it yourself and pipe the token into `ralph store-token`\r\n"),
        "{shown}"
    );
}
