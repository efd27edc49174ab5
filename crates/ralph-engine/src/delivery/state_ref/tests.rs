use ralph_core::plan::PinnedSettings;
use serde_json::Value;

use super::*;
use crate::run_fixture::{RunFixture, commit_action, git, write_action};

async fn save_once(fixture: &mut RunFixture) {
    let run = &mut fixture.run;
    save_state(
        &mut run.recorder,
        &run.bench,
        &run.services,
        &RunStatus::Running,
    )
    .await
    .unwrap();
}

#[tokio::test]
async fn a_save_is_repeated_only_after_another_record() {
    let mut fixture = RunFixture::new("").await;
    save_once(&mut fixture).await;
    save_once(&mut fixture).await;
    assert_eq!(fixture.events_of(&["state_saved"]).len(), 1);
    let message = "something happened".to_owned();
    let notice = RunEvent::Notice { message };
    fixture.run.recorder.append(notice).unwrap();
    save_once(&mut fixture).await;
    assert_eq!(fixture.events_of(&["state_saved"]).len(), 2);
}

#[tokio::test]
async fn a_snapshot_names_the_end_of_its_journal() {
    let mut fixture = RunFixture::new("").await;
    save_once(&mut fixture).await;
    let repo = fixture.user_repo();
    let saved = git(&repo, &["show", "refs/ralph/task:journal.jsonl"]);
    let manifest = git(&repo, &["show", "refs/ralph/task:snapshot.json"]);
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let last = saved.lines().last().unwrap();
    let digest = ralph_core::id::Digest::compute(last.as_bytes());
    assert_eq!(manifest["seq"], saved.lines().count());
    assert_eq!(manifest["sha256"], digest.as_str());
    assert_eq!(manifest["left_out_count"], 0);
}

#[tokio::test]
async fn the_settings_can_forbid_it() {
    let fixture = RunFixture::new("").await;
    let mut state = fixture.run.recorder.state().clone();
    for (setting, expected) in [(None, true), (Some(true), true), (Some(false), false)] {
        state.plan.settings = Some(PinnedSettings {
            state_ref: setting,
            ..PinnedSettings::default()
        });
        assert_eq!(is_due(&state), expected, "{setting:?}");
    }
}

/// The files are saved with each push of the branch, not only at the end of the run.
#[tokio::test]
async fn every_push_saves_the_files() {
    let mut fixture = RunFixture::new("").await;
    fixture.begin();
    let actions = vec![write_action("a.txt", "one\n"), commit_action("Add a file")];
    assert_eq!(fixture.perform(actions).await.succeeded, 2);
    fixture.settle().await;
    let delivering = crate::delivery::deliver_remaining(&mut fixture.run);
    Box::pin(delivering).await.unwrap();
    let events = fixture.events_of(&["pushed", "state_saved", "pull_request_updated"]);
    let kinds: Vec<&Value> = events.iter().map(|event| &event["type"]).collect();
    assert_eq!(kinds[..2], ["pushed", "state_saved"]);
}

/// A refusal is not repeated: neither in the same save nor by later ones of the process.
#[tokio::test]
async fn a_refused_ref_is_tried_and_reported_once() {
    let mut fixture = RunFixture::new("").await;
    let repo = fixture.user_repo();
    git(&repo, &["config", "receive.hideRefs", "refs/ralph"]);
    save_once(&mut fixture).await;
    let local = fixture.run.recorder.dir.repo();
    let saved = git(&local, &["rev-list", "--count", "refs/ralph/task"]);
    assert_eq!(saved.trim(), "1");
    save_once(&mut fixture).await;
    let saved = git(&local, &["rev-list", "--count", "refs/ralph/task"]);
    assert_eq!(saved.trim(), "1");
    let notices = fixture.events_of(&["notice"]);
    assert_eq!(notices.len(), 1, "{notices:?}");
    let message = notices[0]["message"].as_str().unwrap();
    assert!(message.contains("does not try again"), "{message}");
}

/// Another run of the task saves under the same ref, so the save is repeated on top of it.
#[tokio::test]
async fn a_ref_that_another_run_moved_is_not_a_refusal() {
    let mut fixture = RunFixture::new("").await;
    save_once(&mut fixture).await;
    let repo = fixture.user_repo();
    let other = "git commit-tree -m other -p refs/ralph/task 'refs/ralph/task^{tree}'";
    let script = format!("git update-ref refs/ralph/task $({other})");
    let moved = std::process::Command::new("sh")
        .args(["-c", &script])
        .envs(["AUTHOR", "COMMITTER"].map(|role| (format!("GIT_{role}_NAME"), "other")))
        .envs(["AUTHOR", "COMMITTER"].map(|role| (format!("GIT_{role}_EMAIL"), "o@example.com")))
        .current_dir(&repo)
        .status();
    assert!(moved.unwrap().success());
    let message = "something happened".to_owned();
    let notice = RunEvent::Notice { message };
    fixture.run.recorder.append(notice).unwrap();
    save_once(&mut fixture).await;
    assert_eq!(fixture.events_of(&["state_saved"]).len(), 2);
    let subjects = git(&repo, &["log", "--format=%s", "refs/ralph/task"]);
    assert_eq!(subjects.lines().nth(1), Some("other"), "{subjects}");
}
