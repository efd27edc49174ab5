//! `ralph export`, and commits that must not break git on the host.

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use ralph_core::parse_value;
use ralph_guest::available;

use crate::project::{Project, actions, claiming, finish, run, work};

#[test]
fn a_branch_is_exported_without_anything_that_the_agent_configured() {
    let project = Project::new();
    let trace = project.path("trace");
    let evil = format!(
        "ln -s /etc/passwd link; mkdir -p sub; printf '* filter=x\\n' > sub/.gitattributes; \
         git config filter.x.smudge 'touch {0}; cat'; git config core.fsmonitor 'touch {0}'; \
         printf '#!/bin/sh\\ntouch {0}\\n' > .git/hooks/post-checkout; chmod +x .git/hooks/post-checkout; \
         git add . && git commit --quiet --no-verify --message=Links",
        trace.display()
    );
    let project = project.script(&[
        actions(&[run(&evil)]),
        claiming(&["M1.1", "M1.2"], &work()),
        finish(),
    ]);
    project.run().expect(0);
    // The sandbox's git obeys it; the host's must not.
    fs::remove_file(&trace).unwrap();
    let target = project.path("look");
    let exported = project
        .ralph(&["export", "last", &target.display().to_string()])
        .expect(0);
    assert!(
        exported
            .stdout
            .contains("note: its files were written by a model"),
        "{}",
        exported.stdout
    );
    assert_eq!(fs::read_to_string(target.join("a.txt")).unwrap(), "one\n");
    // A symbolic link becomes a plain file that contains its target.
    let link = fs::symlink_metadata(target.join("link")).unwrap();
    assert!(link.is_file(), "{link:?}");
    assert_eq!(
        fs::read_to_string(target.join("link")).unwrap(),
        "/etc/passwd"
    );
    let status = project.git_in(&target, &["status", "--porcelain"]);
    assert_eq!(status, "");
    let config = fs::read_to_string(target.join(".git/config")).unwrap();
    assert!(
        !config.contains("filter") && !config.contains("remote"),
        "{config}"
    );
    assert!(!target.join(".git/hooks").exists());
    assert!(!trace.exists());
    let again = project
        .ralph(&["export", "last", &target.display().to_string()])
        .expect(2);
    assert!(again.stderr.contains("it is not empty"), "{}", again.stderr);
}

#[test]
fn the_changes_are_exported_as_a_patch() {
    let project = Project::new().script(&[claiming(&["M1.1", "M1.2"], &work()), finish()]);
    project.run().expect(0);
    let target = project.path("patches");
    project
        .ralph(&["export", "last", &target.display().to_string(), "--patch"])
        .expect(0);
    let patch = fs::read_to_string(target.join("task.patch")).unwrap();
    assert!(patch.contains("+++ b/a.txt\n"), "{patch}");
    project.git(&[
        "apply",
        "--check",
        &target.join("task.patch").display().to_string(),
    ]);
}

/// Records the peak memory of any git process of this project's ralph, in KiB.
fn watch(stop: &AtomicBool, highest: &AtomicU64, marker: &str) {
    while !stop.load(Ordering::Relaxed) {
        for entry in fs::read_dir("/proc").unwrap().filter_map(available) {
            let file =
                |name: &str| available(fs::read(entry.path().join(name))).unwrap_or_default();
            let environment = String::from_utf8_lossy(&file("environ")).into_owned();
            // Git on the host; the sandbox's has a different HOME.
            let is_host =
                environment.contains("GIT_CONFIG_GLOBAL=") && environment.contains(marker);
            if !is_host || !file("comm").starts_with(b"git") {
                continue;
            }
            let status = String::from_utf8_lossy(&file("status")).into_owned();
            let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let peak = peak.and_then(|text| parse_value(text.trim().trim_end_matches(" kB")));
            highest.fetch_max(peak.unwrap_or(0), Ordering::Relaxed);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_commit_with_a_huge_file_is_refused_and_host_git_stays_small() {
    let huge = "truncate -s 3G huge.bin && git -c core.compression=1 -c core.bigFileThreshold=1m add huge.bin && \
        git commit --quiet --no-verify --message=Huge && rm huge.bin";
    let project = Project::new().script(&[
        actions(&[run(huge)]),
        claiming(&["M1.1", "M1.2"], &work()),
        finish(),
    ]);
    let (stop, highest) = (AtomicBool::new(false), AtomicU64::new(0));
    let marker = project.home().display().to_string();
    std::thread::scope(|scope| {
        scope.spawn(|| watch(&stop, &highest, &marker));
        project.run().expect(0);
        stop.store(true, Ordering::Relaxed);
    });
    let refused = project.event_values("import_refused", "why");
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(
        refused[0],
        "`huge.bin` has 3072 MiB; a file in a commit may have at most 64 MiB; leave it out of the commits, \
         and out of their history"
    );
    assert!(project.prompt(2).contains("`huge.bin` has 3072 MiB"));
    let highest = highest.load(Ordering::Relaxed);
    println!("host git needed at most {} MiB", highest >> 10);
    assert!(highest > 0, "no git process of the host was seen");
    assert!(highest < 200 << 10, "host git needed {} MiB", highest >> 10);
    let size = Command::new("du")
        .arg("-sk")
        .arg(project.run_dir().join("repo.git"))
        .output()
        .unwrap();
    let size = String::from_utf8(size.stdout).unwrap();
    let kib: u64 = size.split_whitespace().next().unwrap().parse().unwrap();
    assert!(kib < 3 << 10, "the objects were kept: {kib} KiB");
}
