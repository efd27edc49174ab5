//! Files on disk.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use ralph_core::ports::{
    Labels, SandboxError, SandboxId, SandboxInfo, SandboxProvider as _, SandboxSpec, WriteMode,
};

use super::fixture::{LocalTestEnv, provider_at, repo, sh};

#[tokio::test]
async fn a_sandbox_is_private_and_its_record_is_next_to_it() {
    let env = LocalTestEnv::new();
    let spec = SandboxSpec {
        labels: Labels::from([("run".into(), "r1".into())]),
        env: [("A".into(), "1".into())].into(),
    };
    let sandbox = env.provider.create(&spec).await.unwrap();
    let directory = env.root().join(&sandbox.id().0);
    let mode = fs::metadata(&directory).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let record = fs::read_to_string(env.root().join(format!("{}.json", sandbox.id())));
    assert_eq!(
        record.unwrap(),
        r#"{"labels":{"run":"r1"},"env":{"A":"1"}}"#
    );
    let mut names: Vec<_> = fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["cache", "home", "repo", "scratch", "tmp"]);
}

#[tokio::test]
async fn leftovers_of_a_crash_are_listed_and_removed() {
    let env = LocalTestEnv::new();
    let (no_record, no_directory) = ("local-00000000000a", "local-00000000000b");
    fs::create_dir_all(env.root().join(no_record)).unwrap();
    fs::write(env.root().join(format!("{no_directory}.json")), "{").unwrap();
    fs::write(env.root().join("other.json"), "{}").unwrap();
    let info = |id: &str| SandboxInfo {
        id: SandboxId(id.into()),
        labels: Labels::new(),
    };
    assert_eq!(
        env.provider.list().await.unwrap(),
        [info(no_record), info(no_directory)]
    );
    let found = env.provider.attach(&SandboxId(no_record.into())).await;
    found.unwrap().unwrap().remove().await.unwrap();
    let found = env.provider.attach(&SandboxId(no_directory.into())).await;
    assert!(found.unwrap().is_none());
    assert_eq!(env.provider.list().await.unwrap(), []);
}

#[tokio::test]
async fn any_tree_can_be_removed() {
    let env = LocalTestEnv::new();
    let sandbox = env.sandbox().await;
    let repo = env.root().join(&sandbox.id().0).join("repo");
    let mut deep = Dir::open_ambient_dir(repo, ambient_authority()).unwrap();
    for _ in 0..5000 {
        deep.create_dir("deep").unwrap();
        deep = deep.open_dir("deep").unwrap();
    }
    let line = "mkdir -p a/b/c .erase-0/x
        touch a/b/c/file .erase-1; ln -s / a/b/root; mkfifo a/b/pipe
        umask 777; mkdir sealed; touch sealed-file
        chmod 000 a/b/c; chmod 100 a/b; chmod 500 a; chmod 000 .";
    sh(&*sandbox, line).await;
    sandbox.remove().await.unwrap();
    assert_eq!(fs::read_dir(env.root()).unwrap().count(), 0);
}

#[tokio::test]
async fn changes_to_the_environment_end_with_the_command() {
    let env = LocalTestEnv::new();
    let sandbox = env.sandbox().await;
    sh(
        &*sandbox,
        "umask 777; ulimit -f 0; ulimit -n 10; rm -rf \"$HOME\" \"$TMPDIR\"; true",
    )
    .await;
    let written = sandbox
        .write(&repo("file"), &vec![b'x'; 100_000], WriteMode::Replace)
        .await;
    written.unwrap();
    let line = "cp file copy; wc -c < copy; ls -l file | cut -c 1-10; mktemp >/dev/null && cd && echo home";
    assert_eq!(sh(&*sandbox, line).await, "100000\n-rw-r--r--\nhome\n");
}

#[tokio::test]
async fn an_exchanged_directory_is_not_followed() {
    let env = LocalTestEnv::new();
    let sandbox = env.sandbox().await;
    sandbox
        .write(&repo("file"), b"own", WriteMode::Replace)
        .await
        .unwrap();
    let outside = env.outside("elsewhere");
    fs::create_dir_all(outside.join("repo")).unwrap();
    fs::write(outside.join("repo/file"), "strange").unwrap();
    let directory = env.root().join(&sandbox.id().0);
    fs::rename(&directory, env.outside("aside")).unwrap();
    symlink(&outside, &directory).unwrap();

    assert_eq!(sandbox.read(&repo("file"), 10).await.unwrap(), b"own");
    let attached = env.provider.attach(sandbox.id()).await.map(drop);
    assert!(
        matches!(attached, Err(SandboxError::Io { .. })),
        "{attached:?}"
    );
    sandbox.remove().await.unwrap();
    assert_eq!(fs::read(outside.join("repo/file")).unwrap(), b"strange");
    assert_eq!(env.provider.list().await.unwrap(), []);
}

#[tokio::test]
async fn preflight_reports_problems() {
    let env = LocalTestEnv::new();
    let file = env.outside("file");
    fs::write(&file, "").unwrap();
    let provider = ralph_providers::sandbox::LocalProvider::new(file.join("below"), "/nowhere");
    let problems = provider.preflight().await;
    let what: Vec<&str> = problems.iter().map(|problem| &*problem.what).collect();
    assert_eq!(
        what,
        [
            format!("cannot write to `{}`", file.display()).as_str(),
            "no directory in `PATH` contains `sh`",
        ]
    );
    assert!(provider.create(&SandboxSpec::default()).await.is_err());
    assert!(!env.root().exists());
    let not_yet_created = provider_at(env.outside("a/b/c"));
    assert_eq!(not_yet_created.preflight().await, []);
    assert!(!env.outside("a").exists());
}
