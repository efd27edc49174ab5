//! Whom commands run as, whatever the image says.

use ralph_core::path::SandboxPath;
use ralph_core::ports::{Exec, Sandbox, SandboxError};
use ralph_test::left_out_without_docker;

use super::image::Image;
use super::place::{AMPLE, Place, sh, try_run};

async fn in_image(tag: &str) -> (Place, Box<dyn Sandbox>) {
    let place = Place::with(|settings| settings.image = tag.to_owned());
    let sandbox = place.sandbox().await;
    (place, sandbox)
}

/// Who somebody is, and whether files that are given to him are his.
const WHO: &str = r#"echo "$(id -u):$(id -g):$(id -G) $HOME $USER $(stat -c %u . "$HOME" | xargs)";
    touch "$HOME/x" ./x && (touch /x; touch /root/x) 2>/dev/null || echo bounded"#;

#[tokio::test]
async fn no_image_makes_a_command_root() {
    if left_out_without_docker() {
        return;
    }
    for (lines, expected) in [
        // Ends as root, and says so in every way that there is.
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
        let image = Image::built(lines);
        let (place, sandbox) = in_image(&image.tag).await;
        assert_eq!(sh(&*sandbox, WHO).await, expected, "{lines}");
        place.end().await;
    }
}

#[tokio::test]
async fn what_an_image_brings_along_is_not_run_and_not_in_the_way() {
    if left_out_without_docker() {
        return;
    }
    let image = Image::built(
        "RUN mkdir -p /workspace/repo /data && echo old > /workspace/repo/file && chmod 777 /workspace /data\n\
        VOLUME /data\nWORKDIR /workspace/repo\nENTRYPOINT [\"false\"]\nCMD [\"false\"]\n\
        HEALTHCHECK --interval=1s CMD touch /workspace/repo/health\n\
        ENV LD_PRELOAD=/nowhere.so GREETING=hello",
    );
    let (place, sandbox) = in_image(&image.tag).await;
    assert_eq!(
        sh(&*sandbox, "sleep 2; ls -A; echo $GREETING").await,
        "hello\n"
    );
    let top = sh(&*sandbox, "stat -c '%a %u' /workspace; ls -A /workspace").await;
    assert_eq!(top, "755 0\nhome\nrepo\nscratch\ntmp\n");
    let list = sandbox.list(&SandboxPath::repo()).await.unwrap();
    assert_eq!(list, []);
    place.end().await;
}

#[tokio::test]
async fn an_image_without_anything_says_so() {
    if left_out_without_docker() {
        return;
    }
    let image = Image::bare("amd64");
    let (place, sandbox) = in_image(&image.tag).await;
    for (exec, missing) in [
        (Exec::shell("true", AMPLE), "sh"),
        (Exec::argv(["/bin/true"], AMPLE), "/bin/true"),
    ] {
        let (outcome, _) = try_run(&*sandbox, exec).await;
        assert!(
            matches!(&outcome, Err(SandboxError::Spawn { program, .. }) if program == missing),
            "{outcome:?}"
        );
    }
    place.end().await;
}
