//! Creating, finding and removing sandboxes.

use std::mem;

use ralph_core::ports::{SandboxError, SandboxId, SandboxInfo};

use super::contract_sandbox::{ContractSandbox, shell, spec};
use crate::CollectedOutput;

async fn find_listed(fixture: &ContractSandbox<'_>) -> Option<SandboxInfo> {
    let infos = fixture.provider.list().await.expect("sandboxes are listed");
    infos
        .into_iter()
        .find(|info| info.id == *fixture.sandbox.id())
}

pub(super) async fn sandboxes_are_listed_with_labels(fixture: &ContractSandbox<'_>) {
    let expected = SandboxInfo {
        id: fixture.sandbox.id().clone(),
        labels: spec().labels,
    };
    assert_eq!(find_listed(fixture).await, Some(expected));
}

pub(super) async fn sandboxes_are_isolated(fixture: &ContractSandbox<'_>) {
    let other = ContractSandbox::new(fixture.provider).await;
    assert_ne!(other.sandbox.id(), fixture.sandbox.id());
    fixture.write("file", b"one").await;
    other.write("file", b"two").await;
    other
        .sandbox
        .remove()
        .await
        .expect("the sandbox is removed");
    assert_eq!(fixture.read("file").await.expect("the file exists"), b"one");
}

pub(super) async fn attaching_ends_running_commands(fixture: &ContractSandbox<'_>) {
    let line = r#"detached sh -c "$BEAT" & sleep 60"#;
    let mut output = CollectedOutput::default();
    let mut running = fixture.sandbox.exec(shell(line), None, &mut output);
    tokio::select! {
        outcome = &mut running => panic!("it ended: {outcome:?}"),
        () = fixture.wait_for_heartbeat() => {}
    }
    // Simulates that this process was killed: the command is not stopped.
    mem::forget(running);
    let attached = fixture.provider.attach(fixture.sandbox.id()).await;
    let again = ContractSandbox {
        provider: fixture.provider,
        sandbox: attached
            .expect("attaching succeeds")
            .expect("the sandbox exists"),
    };
    assert_eq!(again.sandbox.id(), fixture.sandbox.id());
    again.assert_no_heartbeat().await;
    assert_eq!(again.sh("echo $LAYER_A").await, "sandbox\n");
}

pub(super) async fn attaching_finds_only_existing_sandboxes(fixture: &ContractSandbox<'_>) {
    let id = &fixture.sandbox.id().0;
    let changed = match id.strip_suffix('0') {
        Some(start) => format!("{start}1"),
        None => format!("{}0", &id[..id.len() - 1]),
    };
    for other in [changed, String::new(), "..".into(), format!("../{id}")] {
        let attached = fixture.provider.attach(&SandboxId(other.clone())).await;
        assert!(
            attached.expect("attaching succeeds").is_none(),
            "`{other}` was found"
        );
    }
}

pub(super) async fn removing_twice_is_fine(fixture: &ContractSandbox<'_>) {
    let attached = fixture.provider.attach(fixture.sandbox.id()).await;
    let second = attached
        .expect("attaching succeeds")
        .expect("the sandbox exists");
    for _ in 0..2 {
        fixture
            .sandbox
            .remove()
            .await
            .expect("the sandbox is removed");
        second.remove().await.expect("the sandbox is removed");
    }
}

pub(super) async fn a_removed_sandbox_is_gone(fixture: &ContractSandbox<'_>) {
    fixture.write("file", b"x").await;
    fixture
        .sandbox
        .remove()
        .await
        .expect("the sandbox is removed");
    assert_eq!(find_listed(fixture).await, None);
    let attached = fixture.provider.attach(fixture.sandbox.id()).await;
    assert!(attached.expect("attaching succeeds").is_none());
    let read = fixture.read("file").await.map(drop);
    let exec = fixture.exec_error(shell("true")).await;
    for result in [read, Err(exec)] {
        assert!(
            matches!(&result, Err(SandboxError::Gone(id)) if id == fixture.sandbox.id()),
            "{result:?}"
        );
    }
}
