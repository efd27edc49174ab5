//! The user of commands, regardless of the image's settings.

use ralph_core::path::SandboxPath;
use ralph_core::ports::{Exec, Sandbox, SandboxError};
use ralph_test::skip_without_docker;

use super::fixture::{DockerTestEnv, TEST_TIMEOUT, sh, try_run};
use super::image::TemporaryImage;

async fn in_image(tag: &str) -> (DockerTestEnv, Box<dyn Sandbox>) {
    let env = DockerTestEnv::with_settings(|settings| settings.image = tag.to_owned());
    let sandbox = env.sandbox().await;
    (env, sandbox)
}

/// Prints the user and whether files given to it belong to it.
const WHO: &str = r#"echo "$(id -u):$(id -g):$(id -G) $HOME $USER $(stat -c %u . "$HOME" | xargs)";
    touch "$HOME/x" ./x && (touch /x; touch /root/x) 2>/dev/null || echo bounded"#;

#[tokio::test]
async fn no_image_makes_a_command_root() {
    if skip_without_docker() {
        return;
    }
    for (lines, expected) in [
        // Runs as root by default, and sets that in every possible way.
        (
            "RUN useradd -u 1500 agent\nENV HOME=/root USER=root LOGNAME=root\nUSER root",
            "1500:1500:1500 /workspace/home agent 1500 1500\nbounded\n",
        ),
        (
            "RUN useradd -u 1000 -G sudo,adm node\nUSER node",
            "1000:1000:1000 /workspace/home agent 1000 1000\nbounded\n",
        ),
        (
            "USER 33:33",
            "10001:10001:10001 /workspace/home agent 10001 10001\nbounded\n",
        ),
        (
            "RUN useradd -o -u 0 agent",
            "10001:10001:10001 /workspace/home agent 10001 10001\nbounded\n",
        ),
    ] {
        let image = TemporaryImage::build(lines);
        let (env, sandbox) = in_image(&image.tag).await;
        assert_eq!(sh(&*sandbox, WHO).await, expected, "{lines}");
        env.finish().await;
    }
}

#[tokio::test]
async fn image_entrypoint_healthcheck_and_files_are_ignored() {
    if skip_without_docker() {
        return;
    }
    let image = TemporaryImage::build(
        "RUN mkdir -p /workspace/repo /data && echo old > /workspace/repo/file && chmod 777 /workspace /data\n\
        VOLUME /data\nWORKDIR /workspace/repo\nENTRYPOINT [\"false\"]\nCMD [\"false\"]\n\
        HEALTHCHECK --interval=1s CMD touch /workspace/repo/health\n\
        ENV LD_PRELOAD=/nowhere.so GREETING=hello",
    );
    let (env, sandbox) = in_image(&image.tag).await;
    assert_eq!(
        sh(&*sandbox, "sleep 2; ls -A; echo $GREETING").await,
        "hello\n"
    );
    let top = sh(&*sandbox, "stat -c '%a %u' /workspace; ls -A /workspace").await;
    assert_eq!(top, "755 0\ncache\nhome\nrepo\nscratch\ntmp\n");
    let list = sandbox.list(&SandboxPath::repo()).await.unwrap();
    assert_eq!(list, []);
    env.finish().await;
}

#[tokio::test]
async fn commands_missing_from_an_empty_image_are_reported() {
    if skip_without_docker() {
        return;
    }
    let image = TemporaryImage::bare("amd64");
    let (env, sandbox) = in_image(&image.tag).await;
    for (exec, missing) in [
        (Exec::shell("true", TEST_TIMEOUT), "sh"),
        (Exec::argv(["/bin/true"], TEST_TIMEOUT), "/bin/true"),
    ] {
        let (outcome, _) = try_run(&*sandbox, exec).await;
        assert!(
            matches!(&outcome, Err(SandboxError::Spawn { program, .. }) if program == missing),
            "{outcome:?}"
        );
    }
    env.finish().await;
}
