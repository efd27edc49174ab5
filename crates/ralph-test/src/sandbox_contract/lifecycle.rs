//! Creating, finding and removing sandboxes.

use std::mem;

use ralph_core::ports::{SandboxError, SandboxId, SandboxInfo};

use super::contract_sandbox::{ContractSandbox, shell, spec};
use crate::CollectedOutput;

async fn find_listed(ground: &ContractSandbox<'_>) -> Option<SandboxInfo> {
    let infos = ground.provider.list().await.expect("sandboxes are listed");
    infos
        .into_iter()
        .find(|info| info.id == *ground.sandbox.id())
}

pub(super) async fn sandboxes_are_listed_with_labels(ground: &ContractSandbox<'_>) {
    let expected = SandboxInfo {
        id: ground.sandbox.id().clone(),
        labels: spec().labels,
    };
    assert_eq!(find_listed(ground).await, Some(expected));
}

pub(super) async fn sandboxes_are_apart(ground: &ContractSandbox<'_>) {
    let other = ContractSandbox::new(ground.provider).await;
    assert_ne!(other.sandbox.id(), ground.sandbox.id());
    ground.write("file", b"one").await;
    other.write("file", b"two").await;
    other
        .sandbox
        .remove()
        .await
        .expect("the sandbox is removed");
    assert_eq!(ground.read("file").await.expect("the file exists"), b"one");
}

pub(super) async fn attaching_ends_what_runs(ground: &ContractSandbox<'_>) {
    let line = r#"detached sh -c "$BEAT" & sleep 60"#;
    let mut output = CollectedOutput::default();
    let mut running = ground.sandbox.exec(shell(line), None, &mut output);
    tokio::select! {
        outcome = &mut running => panic!("it ended: {outcome:?}"),
        () = ground.wait_for_heartbeat() => {}
    }
    // Simulates that this process was killed: the command is not stopped.
    mem::forget(running);
    let attached = ground.provider.attach(ground.sandbox.id()).await;
    let again = ContractSandbox {
        provider: ground.provider,
        sandbox: attached
            .expect("attaching succeeds")
            .expect("the sandbox exists"),
    };
    assert_eq!(again.sandbox.id(), ground.sandbox.id());
    again.assert_no_heartbeat().await;
    assert_eq!(again.sh("echo $LAYER_A").await, "sandbox\n");
}

pub(super) async fn attaching_finds_only_what_exists(ground: &ContractSandbox<'_>) {
    let id = &ground.sandbox.id().0;
    let changed = match id.strip_suffix('0') {
        Some(start) => format!("{start}1"),
        None => format!("{}0", &id[..id.len() - 1]),
    };
    for other in [changed, String::new(), "..".into(), format!("../{id}")] {
        let attached = ground.provider.attach(&SandboxId(other.clone())).await;
        assert!(
            attached.expect("attaching succeeds").is_none(),
            "`{other}` was found"
        );
    }
}

pub(super) async fn removing_twice_is_fine(ground: &ContractSandbox<'_>) {
    let attached = ground.provider.attach(ground.sandbox.id()).await;
    let second = attached
        .expect("attaching succeeds")
        .expect("the sandbox exists");
    for _ in 0..2 {
        ground
            .sandbox
            .remove()
            .await
            .expect("the sandbox is removed");
        second.remove().await.expect("the sandbox is removed");
    }
}

pub(super) async fn a_removed_sandbox_is_gone(ground: &ContractSandbox<'_>) {
    ground.write("file", b"x").await;
    ground
        .sandbox
        .remove()
        .await
        .expect("the sandbox is removed");
    assert_eq!(find_listed(ground).await, None);
    let attached = ground.provider.attach(ground.sandbox.id()).await;
    assert!(attached.expect("attaching succeeds").is_none());
    let read = ground.read("file").await.map(drop);
    let exec = ground.exec_error(shell("true")).await;
    for result in [read, Err(exec)] {
        assert!(
            matches!(&result, Err(SandboxError::Gone(id)) if id == ground.sandbox.id()),
            "{result:?}"
        );
    }
}
