//! Environment variables of commands.

use super::contract_sandbox::{ContractSandbox, shell};

/// Shorter values, such as `1` or `dumb`, can be equal by coincidence.
const MIN_DISTINCTIVE_BYTES: usize = 8;

pub(super) async fn variables_of_the_caller_are_hidden(fixture: &ContractSandbox<'_>) {
    let seen = fixture.sh("env").await;
    let seen: Vec<&str> = seen.lines().collect();
    let mut checked = 0;
    for (name, value) in std::env::vars_os() {
        let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else {
            continue;
        };
        if name == "PATH" || value.len() < MIN_DISTINCTIVE_BYTES || value.contains('\n') {
            continue;
        }
        checked += 1;
        let variable = format!("{name}={value}");
        assert!(!seen.contains(&variable.as_str()), "`{name}` is visible");
    }
    assert!(checked > 0, "this process has no distinctive variable");
}

pub(super) async fn variables_are_layered(fixture: &ContractSandbox<'_>) {
    let exec = shell(r#"echo "$LAYER_A $LAYER_B $LAYER_C""#)
        .with_env("LAYER_B", "command")
        .with_env("LAYER_C", "a  'b' $x");
    let (_, output) = fixture.exec(exec).await;
    assert_eq!(output.stdout_text(), "sandbox command a  'b' $x\n");
}

pub(super) async fn home_and_tmp_are_usable(fixture: &ContractSandbox<'_>) {
    let line = r#"echo kept > "$HOME/file"; cat "$HOME/file"; f=$(mktemp); echo temporary > "$f"; cat "$f""#;
    assert_eq!(fixture.sh(line).await, "kept\ntemporary\n");
}
