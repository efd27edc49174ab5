//! Agents that are scripts of the project, in the local sandbox.

use super::fixture::with_script;

/// Completes, commits and ticks the first open box.
const DILIGENT: &str = r#"
cat >prompt.seen
if ! test -e a.txt; then echo one >a.txt; box=M1.1
elif ! test -e b.txt; then echo two >b.txt; box=M1.2
else exit 0; fi
rm prompt.seen
git add a.txt b.txt 2>/dev/null || git add a.txt
git -c user.name=a -c user.email=a@localhost commit --quiet --message "Do $box"
sed -i "s/- \[ \] $box/- [x] $box/" ralph_task.md
echo "$box is done"
"#;

#[test]
fn a_script_does_a_box_in_each_iteration() {
    let project = with_script(DILIGENT);
    project.ralph(&["run", "--agent", "command"]).expect(0);
    let shown = project.show();
    assert_eq!(shown["status"], "succeeded");
    assert_eq!(shown["engine"], "agent");
    assert_eq!(shown["iteration"], 2);
    assert_eq!(project.delivered(), ["a.txt", "b.txt"]);
    assert!(project.prompt(2).contains("- [ ] M1.2 Two is there"));
    project.audit();
}

#[test]
fn the_output_of_an_agent_is_stored_and_printed() {
    let project = with_script(DILIGENT);
    project.ralph(&["run", "--agent", "command"]).expect(0);
    assert_eq!(project.artifact(1, "transcript.txt"), "M1.1 is done\n");
    let logs = |args: &[&str]| project.ralph(&[&["logs", "last", "--transcript"], args].concat());
    assert_eq!(logs(&[]).expect(0).stdout, "M1.2 is done\n");
    assert_eq!(
        logs(&["--iteration", "1", "--json"]).expect(0).stdout,
        "{\"text\":\"M1.1 is done\"}\n"
    );
    let missing = logs(&["--iteration", "3"]).expect(2).stderr;
    assert!(missing.contains("has no iteration 3"), "{missing}");
    let shown = project
        .ralph(&["show", "last", "--iteration", "2"])
        .expect(0);
    let path = project.run_dir().join("iterations/2/transcript.txt");
    let named = format!("── transcript of the agent · 13 B\n{}\n", path.display());
    assert!(shown.stdout.ends_with(&named), "{}", shown.stdout);
    let shown = project.ralph(&["show", "last", "--iteration", "2", "--json"]);
    let shown: serde_json::Value = serde_json::from_str(&shown.expect(0).stdout).unwrap();
    assert_eq!(shown["transcript"]["bytes"], 13);
    project.audit();
    std::fs::write(path, "another").unwrap();
    let audit = project.ralph(&["audit", "last"]).expect(1);
    let changed = "iterations/2/transcript.txt was changed";
    assert!(audit.stdout.contains(changed), "{}", audit.stdout);
}

#[test]
fn an_idle_script_is_detected_after_three_iterations() {
    let project = with_script("cat >/dev/null; echo I have looked around");
    let paused = project.ralph(&["run", "--agent", "command"]).expect(11);
    let shown = project.show();
    assert_eq!(shown["iteration"], 3);
    let reason = "`command` changed nothing in 3 iterations";
    assert!(paused.combined().contains(reason), "{}", paused.combined());
}

#[test]
fn a_blocked_script_reports_why_and_the_run_waits() {
    let script =
        "cat >/dev/null; echo '- M1.1: [blocked: there is no database]' >>.ralph/progress.md";
    let project = with_script(script);
    let paused = project.ralph(&["run", "--agent", "command"]).expect(11);
    assert!(
        paused.combined().contains("there is no database"),
        "{}",
        paused.combined()
    );
    assert_eq!(project.show()["iteration"], 1);
    project.audit();
}

#[test]
fn invalid_agent_flags_are_rejected() {
    let project = with_script("true");
    for (flags, why) in [
        (
            &["--agent", "cluade"][..],
            "ralph: there is no agent `cluade` — known agents: `claude`, `codex`, `command`, `opencode` — \
             use one of these, or define it in your own agents.toml\n",
        ),
        (
            &["--agent", "command", "--engine", "actions"],
            "ralph: `--agent` cannot be used with `--engine actions` — with the engine `actions`, ralph \
             calls the model itself — omit one of the two\n",
        ),
        (
            &["--agent", "command", "--profile", "dev"],
            "ralph: `--profile` cannot be used with an agent — a profile configures ralph's model calls, and an \
             agent calls its model itself — choose the model with `--model`, by the name that the agent uses\n",
        ),
        (
            &["--agent", "opencode"],
            "ralph: `opencode`, the program of agent `opencode`, is not on PATH — install it, or run the agent \
             in a container with `--sandbox docker`\n\
             ralph: no token found for agent opencode — run: ralph store-token --agent opencode\n\
             ralph: agent `opencode` has no model — it does not choose one itself — choose one with `--model`\n",
        ),
    ] {
        let refused = project.ralph(&[&["run"], flags].concat()).expect(2);
        assert_eq!(refused.stderr, why);
    }
    let missing = project.ralph(&["run", "--agent", "claude"]).expect(1);
    assert_eq!(
        missing.stderr,
        "ralph: `claude`, the program of agent `claude`, is not on PATH — install it, or run the agent in a \
         container with `--sandbox docker`\n\
         ralph: no token found for agent claude — run: ralph store-token\n"
    );
}

#[test]
fn only_a_credential_that_the_agent_can_use_is_used() {
    let project = with_script("true");
    let agents = "[keys]\nlike = \"claude\"\ncommand = [\"sh\"]\ncredentials = [{ kind = \"anthropic-api-key\", \
                  environment = { ANTHROPIC_API_KEY = \"{token}\" } }]\n";
    project.configure("agents.toml", agents);
    let login = format!("sk-ant-{}-{}", "oat01", "Canary7x".repeat(6));
    let project = project.env("CLAUDE_CODE_OAUTH_TOKEN", login);
    let missing = project.ralph(&["run", "--agent", "keys"]).expect(1);
    assert_eq!(
        missing.stderr,
        "ralph: no token found for agent keys — run: ralph store-token --agent keys\n"
    );
    let key = format!("sk-ant-{}-{}", "api03", "Canary7x".repeat(6));
    let project = project.env("ANTHROPIC_API_KEY", key);
    let plan = project
        .ralph(&["run", "--agent", "keys", "--dry-run"])
        .expect(0);
    let agent = "agent    keys · its own model · api-key";
    assert!(plan.stdout.contains(agent), "{}", plan.stdout);
}

#[test]
fn task_edits_by_the_user_reach_the_next_session() {
    let slow = format!("test -e a.txt || sleep 2\n{DILIGENT}");
    let project = with_script(&slow);
    let live = project.spawn(&["run", "--agent", "command"]);
    live.wait_for_event("agent_started", 1);
    let text = std::fs::read_to_string(project.task()).unwrap();
    std::fs::write(project.task(), text.replace("Two is there", "Two is here")).unwrap();
    project.ralph(&["task", "last"]).expect(0);
    live.wait().expect(0);
    assert_eq!(project.events("tamper"), Vec::<serde_json::Value>::new());
    assert_eq!(project.show()["iteration"], 2);
    assert!(project.prompt(2).contains("M1.2 Two is here"));
    project.audit();
}

#[test]
fn a_failing_script_is_in_the_error_log() {
    let project = with_script("cat >/dev/null; echo no database >&2; exit 3");
    let project = project.set("max_iterations", "1");
    project.ralph(&["run", "--agent", "command"]).expect(10);
    let errors = project.file("errors.log");
    assert!(errors.contains("command: crashed: exit 3"), "{errors}");
}

/// Leaves files in its home, cache and temporary directories, and reports what it finds there.
const REMEMBERING: &str = r#"
for directory in "$HOME" "$TMPDIR" "$npm_config_cache"; do
  test ! -e "$directory/memory" || echo "$(basename "$directory") remembers" >>seen.txt
done
echo "$(ls -A "$HOME" | wc -l) in home" >>seen.txt
mkdir -p "$HOME/.claude" "$npm_config_cache"
touch "$HOME/memory" "$HOME/.claude/CLAUDE.md" "$TMPDIR/memory" "$npm_config_cache/memory"
chmod 500 "$HOME/.claude"
"#;

#[test]
fn each_session_has_an_empty_home_and_the_same_package_caches() {
    let script = format!(
        "{REMEMBERING}{}",
        DILIGENT.replace("git add", "git add seen.txt")
    );
    let project = with_script(&script);
    project.ralph(&["run", "--agent", "command"]).expect(0);
    assert_eq!(project.show()["iteration"], 2);
    let branch = project.show()["branch"].as_str().unwrap().to_owned();
    let seen = project.git(&["show", &format!("{branch}:seen.txt")]);
    assert_eq!(seen.trim(), "0 in home\nnpm remembers\n0 in home");
    project.audit();
}

#[test]
fn the_home_of_a_session_is_removed_after_it() {
    let script = "cat >/dev/null; touch \"$HOME/memory\"; \
        echo '- M1.1: [blocked: no database]' >>.ralph/progress.md";
    let project = with_script(script);
    project.ralph(&["run", "--agent", "command"]).expect(11);
    let sandboxes = std::fs::read_dir(project.home().join("sandboxes")).unwrap();
    let directories: Vec<_> = sandboxes
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("repo").is_dir())
        .collect();
    assert_eq!(directories.len(), 1, "{directories:?}");
    assert!(directories[0].join("home").is_dir());
    assert!(!directories[0].join("scratch/session").exists());
}
