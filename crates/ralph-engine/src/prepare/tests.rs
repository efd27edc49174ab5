use super::*;
use crate::run_fixture::RunFixture;

async fn prepare_again(fixture: &mut RunFixture) -> PreparedWorkspace {
    let run = &mut fixture.run;
    prepare_workspace(
        &mut run.recorder.journal,
        &run.services,
        &run.recorder.dir,
        &run.bench.repo,
        &run.recorder.files,
        &mut run.pinned,
    )
    .await
    .unwrap()
}

#[tokio::test]
async fn an_existing_sandbox_is_used_again() {
    let mut fixture = RunFixture::new("").await;
    std::fs::write(fixture.workspace().join("kept.txt"), "kept").unwrap();
    let prepared = prepare_again(&mut fixture).await;
    assert!(!prepared.is_new);
    assert_eq!(prepared.findings, []);
    assert_eq!(prepared.sandbox.id(), fixture.run.bench.sandbox.id());
    assert!(fixture.workspace().join("kept.txt").exists());
    assert_eq!(fixture.events_of(&["sandbox_created"]).len(), 1);
}

#[tokio::test]
async fn a_lost_sandbox_is_replaced_from_the_last_commit() {
    let mut fixture = RunFixture::new("").await;
    fixture.run.bench.sandbox.remove().await.unwrap();
    let prepared = prepare_again(&mut fixture).await;
    assert!(prepared.is_new);
    assert_ne!(prepared.sandbox.id(), fixture.run.bench.sandbox.id());
    let types: Vec<String> = fixture
        .events()
        .iter()
        .rev()
        .take(4)
        .map(|event| event["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        types,
        [
            "workspace_ready",
            "sandbox_created",
            "sandbox_removed",
            "notice"
        ]
    );
}

#[tokio::test]
async fn only_unrecorded_sandboxes_of_the_run_are_removed() {
    let mut fixture = RunFixture::new("").await;
    let run = fixture.run.recorder.state().plan.run.to_string();
    let sandboxes = fixture.run.services.sandboxes.clone();
    let mut created = Vec::new();
    for owner in [run.as_str(), "another-run"] {
        let spec = SandboxSpec {
            labels: labels(owner, 1, "clean_room"),
            ..SandboxSpec::default()
        };
        created.push(sandboxes.create(&spec).await.unwrap().id().clone());
    }
    let journal = &mut fixture.run.recorder.journal;
    remove_orphaned_sandboxes(journal, &*sandboxes)
        .await
        .unwrap();
    let mut left: Vec<_> = sandboxes.list().await.unwrap();
    left.retain(|info| info.id != *fixture.run.bench.sandbox.id());
    let left: Vec<_> = left.into_iter().map(|info| info.id).collect();
    assert_eq!(left, [created.remove(1)]);
    let removed = fixture.events_of(&["sandbox_removed"]);
    assert_eq!(removed.len(), 1);
    assert_eq!(removed[0]["sandbox"], created[0].0);
}
