//! Keyrings, simulated by scripts that behave like the real programs.

use std::fs;

use super::fixture::{TokenTestEnv, canary, output};

/// `security` of macOS: writes through a command on standard input, exits with 44 for a missing
/// item.
const SECURITY: &str = r#"
echo "$@" >> arguments
case "$1" in
-i)
    read -r verb update s service a account x value
    [ "$verb $update $s $a $x" = "add-generic-password -U -s -a -X" ]
    printf '%s' "$value" > "kept.$service.$account"
    ;;
find-generic-password)
    [ "$2 $4 $6" = "-s -a -w" ]
    file="kept.$3.$5"
    if ! [ -e "$file" ]; then
        echo "security: SecKeychainSearchCopyNext: The specified item could not be found in the keychain." >&2
        exit 44
    fi
    read -r value < "$file" || true
    while [ -n "$value" ]; do
        rest="${value#??}"
        /usr/bin/printf "\\x${value%"$rest"}"
        value="$rest"
    done
    echo
    ;;
esac
"#;

/// `secret-tool`: the value on standard input, no output and exit code 1 for a missing item.
const SECRET_TOOL: &str = r#"
echo "$@" >> arguments
case "$1" in
store)
    [ "$3 $5" = "service account" ]
    read -r value || true
    printf '%s' "$value" > "kept.$4.$6"
    ;;
lookup)
    [ "$2 $4" = "service account" ]
    [ -e "kept.$3.$5" ] || exit 1
    read -r value < "kept.$3.$5" || true
    printf '%s' "$value"
    ;;
esac
"#;

const NO_BUS: &str =
    "echo 'secret-tool: Cannot autolaunch D-Bus without X11 $DISPLAY' >&2; exit 1\n";

#[track_caller]
fn assert_stores(test_env: &TokenTestEnv, store: &[&str]) {
    let missing = test_env.run(&[&["check-token"], store].concat());
    let told = "ralph: no token found for agent claude — run: ralph store-token\n";
    assert_eq!(missing, output(1, "", told));
    let stored = test_env.store(store, &canary());
    assert_eq!(stored.stderr, "ralph: the token was not validated\n");
    let get = test_env.run(&[&["get-token"], store].concat());
    assert_eq!(get, output(0, &canary(), ""));
    let json = format!(
        r#"{{"accessToken":"{}x","expiresAt":9000000000000}}"#,
        canary()
    );
    test_env.store(store, &json);
    let get = test_env.run(&[&["get-token"], store].concat());
    assert_eq!(get, output(0, &format!("{}x", canary()), ""));
    let arguments = fs::read_to_string(test_env.programs().join("arguments")).unwrap();
    assert!(!arguments.contains("Canary"), "{arguments}");
    test_env.assert_absent(&canary(), &[]);
    assert!(
        test_env
            .programs()
            .join("kept.claude-token.agent-loop")
            .exists()
    );
}

#[test]
fn the_macos_keychain_gets_a_token_by_pipe() {
    let test_env = TokenTestEnv::new().program("security", SECURITY);
    assert_stores(&test_env, &["--store", "keychain"]);
    let long = format!("sk-{}", "x".repeat(3000));
    let refused = test_env.run_with_input(
        &["store-token", "--no-validate", "--store", "keychain"],
        &long,
    );
    assert_eq!(
        (refused.code, refused.stderr.lines().last().unwrap()),
        (
            1,
            "ralph: cannot access the tokens of agent claude — the token requires a command of 6108 bytes, `security` reads at most 4096 — store it in a file with `--store file`"
        )
    );
}

#[test]
#[cfg(not(target_os = "macos"))]
fn the_linux_keyring_is_used_by_itself() {
    assert_stores(
        &TokenTestEnv::new().program("secret-tool", SECRET_TOOL),
        &[],
    );
    assert_stores(
        &TokenTestEnv::new().program("secret-tool", SECRET_TOOL),
        &["--store", "secret-tool"],
    );
}

#[test]
#[cfg(not(target_os = "macos"))]
fn a_file_replaces_an_unusable_keyring_with_a_notice() {
    let test_env = TokenTestEnv::new().program("secret-tool", NO_BUS);
    let program = test_env
        .programs()
        .join("secret-tool")
        .display()
        .to_string();
    let broken = format!(
        "`{program}` ended with 1: secret-tool: Cannot autolaunch D-Bus without X11 $DISPLAY"
    );
    assert_eq!(
        test_env.run(&["check-token"]),
        output(
            1,
            "",
            &format!(
                "ralph: no token found for agent claude — {broken} — run: ralph store-token\n"
            )
        )
    );
    let file = test_env.file("claude-token");
    let stored = test_env.store(&[], &canary());
    assert_eq!(
        stored.stderr.lines().last().unwrap(),
        format!(
            "ralph: the token is stored in `{}`, unencrypted and readable only by you — the keyring cannot be used: {broken}",
            file.display()
        )
    );
    assert_eq!(test_env.run(&["get-token"]), output(0, &canary(), ""));
    let refused = test_env.run_with_input(
        &["store-token", "--no-validate", "--store", "secret-tool"],
        &canary(),
    );
    assert_eq!(refused.code, 1, "{refused:?}");
    // Once the keyring works, no copy remains.
    let test_env = test_env.program("secret-tool", SECRET_TOOL);
    test_env.store(&[], &canary());
    assert!(!file.exists());
    assert_eq!(test_env.run(&["get-token"]), output(0, &canary(), ""));
}

#[test]
#[cfg(not(target_os = "macos"))]
fn a_keyring_that_loses_tokens_is_detected() {
    let test_env = TokenTestEnv::new().program("secret-tool", "[ $1 = store ] || exit 1\n");
    let stored = test_env.store(&[], &canary());
    assert!(
        stored
            .stderr
            .ends_with("the keyring cannot be used: the keyring did not return the stored token\n"),
        "{stored:?}"
    );
    assert_eq!(test_env.run(&["get-token"]), output(0, &canary(), ""));
}

#[test]
fn a_missing_keyring_is_named() {
    let test_env = TokenTestEnv::new();
    // Not from the working directory, which may be an untrusted repository.
    fs::write(test_env.home().join("security"), "#!/bin/sh\n").unwrap();
    for (store, program) in [("keychain", "security"), ("secret-tool", "secret-tool")] {
        let seen_ = test_env.run(&["check-token", "--store", store]);
        assert_eq!(
            seen_,
            output(
                1,
                "",
                &format!(
                    "ralph: there is no `{program}` on PATH — `--store` requires it — install it, or store the token in a file with `--store file`\n"
                )
            )
        );
    }
}
