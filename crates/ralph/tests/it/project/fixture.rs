//! The project fixture and the program under test.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use ralph_guest::available;
use serde_json::Value;
use tempfile::TempDir;

use super::LiveRun;

/// The front matter that most tests need.
const FRONT: [(&str, &str); 7] = [
    ("task_id", "task"),
    ("base_branch", "main"),
    ("max_iterations", "5"),
    ("max_wall_time_minutes", "5"),
    ("max_tokens_total", "1000000"),
    ("test_command", "test -s base.txt"),
    // The tests of the baseline enable it.
    ("verification", "{baseline: false}"),
];

/// Two boxes, each verified by a file that the base does not have.
const BODY: &str = "\
# Task: Make two files

## Success criteria

### Milestone M1 — Files
- [ ] M1.1 One is there
  - verify: `grep -q one a.txt`
- [ ] M1.2 Two is there
  - verify: `grep -q two b.txt`
";

pub(crate) struct Project {
    temporary: TempDir,
    front: Vec<(String, String)>,
    body: String,
    environment: Vec<(String, String)>,
    removed: Vec<String>,
}

/// The result of the program.
#[derive(Debug)]
pub(crate) struct ProjectOutput {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl ProjectOutput {
    pub(crate) fn from_output(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Asserts the exit code; prints all output on a mismatch.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}\n{}", self.stdout, self.stderr);
        assert!(!self.stderr.contains("panicked at"), "{}", self.stderr);
        self
    }

    /// Returns the output of both streams.
    pub(crate) fn combined(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

/// Creates a directory, in memory if possible: every record is synced, but the files need not
/// survive.
fn temporary_directory() -> TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

impl Project {
    /// Creates a repository with one commit on `main`, and a new task.
    pub(crate) fn new() -> Self {
        let project = Self {
            temporary: temporary_directory(),
            front: FRONT.map(|(key, value)| (key.into(), value.into())).into(),
            body: BODY.into(),
            environment: Vec::new(),
            removed: Vec::new(),
        };
        fs::create_dir(project.repo()).unwrap();
        fs::create_dir(project.path("user")).unwrap();
        project.git(&["init", "--quiet", "--initial-branch=main"]);
        project.commit("base.txt", "base\n");
        project.write_task();
        project
    }

    /// Sets a key of the front matter.
    pub(crate) fn set(mut self, key: &str, value: &str) -> Self {
        self.front.retain(|(known, _)| known != key);
        self.front.push((key.into(), value.into()));
        self.write_task();
        self
    }

    /// Removes a key of the front matter.
    pub(crate) fn without(mut self, key: &str) -> Self {
        self.front.retain(|(known, _)| known != key);
        self.write_task();
        self
    }

    /// Replaces the text below the front matter.
    pub(crate) fn body(mut self, body: &str) -> Self {
        self.body = body.into();
        self.write_task();
        self
    }

    /// Sets a variable of the program's environment.
    pub(crate) fn env(mut self, name: &str, value: impl AsRef<str>) -> Self {
        self.environment.push((name.into(), value.as_ref().into()));
        self
    }

    /// Removes a variable from the program's environment.
    pub(crate) fn without_env(mut self, name: &str) -> Self {
        self.removed.push(name.into());
        self
    }

    /// Writes the model's script; lines without a token usage get a small one.
    pub(crate) fn script(self, lines: &[Value]) -> Self {
        self.write_script(lines);
        self
    }

    /// Writes the model's script.
    pub(crate) fn write_script(&self, lines: &[Value]) {
        let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
        fs::write(self.path("replies.jsonl"), lines.join("\n")).unwrap();
    }

    /// Returns the text of the task file.
    pub(crate) fn task_text(&self) -> String {
        let front: Vec<String> = self
            .front
            .iter()
            .map(|(key, value)| format!("{key}: {value}"))
            .collect();
        format!("---\n{}\n---\n\n{}", front.join("\n"), self.body)
    }

    pub(crate) fn write_task(&self) {
        fs::write(self.task(), self.task_text()).unwrap();
    }

    /// Returns a path in the temporary directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.temporary.path().join(name)
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.path("repo")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path("home")
    }

    /// Returns a file of the user configuration.
    pub(crate) fn user_config_path(&self, name: &str) -> PathBuf {
        self.path("user/.config/ralph").join(name)
    }

    /// Writes a file of the user configuration.
    pub(crate) fn configure(&self, name: &str, text: &str) {
        let path = self.user_config_path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn task(&self) -> PathBuf {
        self.repo().join("ralph_task.md")
    }

    /// Commits a file in the user's repository.
    pub(crate) fn commit(&self, name: &str, text: &str) {
        let path = self.repo().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self.git(&["add", "--force", "--", name]);
        self.git(&["commit", "--quiet", "--message", name]);
    }

    /// Runs git in the user's repository and returns its output.
    #[track_caller]
    pub(crate) fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.repo(), args)
    }

    #[track_caller]
    pub(crate) fn git_in(&self, dir: &Path, args: &[&str]) -> String {
        let output = self
            .user_command("git")
            .args(args)
            .current_dir(dir)
            .output()
            .unwrap();
        assert!(output.status.success(), "git {args:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).trim_end().into()
    }

    /// Returns a command in an isolated user environment.
    fn user_command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("user"))
            .env("GIT_CONFIG_NOSYSTEM", "1");
        for role in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{role}_NAME"), "user")
                .env(format!("GIT_{role}_EMAIL"), "user@localhost")
                // Equal projects get equal commits.
                .env(format!("GIT_{role}_DATE"), "2026-01-01T00:00:00Z");
        }
        command
    }

    /// Returns the program with these arguments, in the user's repository.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.user_command(env!("CARGO_BIN_EXE_ralph"));
        command
            .env("RALPH_HOME", self.home())
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(self.repo())
            .stdin(Stdio::null())
            .args(args);
        for name in &self.removed {
            command.env_remove(name);
        }
        command
    }

    /// Runs the program to completion.
    pub(crate) fn ralph(&self, args: &[&str]) -> ProjectOutput {
        ProjectOutput::from_output(&self.command(args).output().unwrap())
    }

    /// Runs the program to completion on a terminal of its own, and types `keys` after `question`
    /// was shown. Returns all that the terminal showed; `None` if `script` is missing.
    pub(crate) fn on_terminal(
        &self,
        args: &[&str],
        (question, keys): (&str, &str),
    ) -> Option<ProjectOutput> {
        let ralph = self.command(args);
        let mut line = vec![ralph.get_program().to_string_lossy().into_owned()];
        line.extend(
            ralph
                .get_args()
                .map(|arg| arg.to_string_lossy().into_owned()),
        );
        let mut script = Command::new("script");
        script
            .args(["--quiet", "--return", "--command"])
            .args([&line.join(" "), "/dev/null"])
            .env_clear()
            .envs(
                ralph
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .env("TERM", "xterm")
            .current_dir(self.repo())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = available(script.spawn())?;
        // The end of the input would end the terminal, so it stays open until the program ends.
        let mut input = child.stdin.take().unwrap();
        let mut shown = String::new();
        let mut terminal = child.stdout.take().unwrap();
        let mut bytes = [0; 4096];
        let mut keys = Some(keys);
        loop {
            let count = terminal.read(&mut bytes).unwrap();
            if count == 0 {
                break;
            }
            shown += &String::from_utf8_lossy(&bytes[..count]);
            if shown.contains(question)
                && let Some(keys) = keys.take()
            {
                input.write_all(keys.as_bytes()).unwrap();
            }
        }
        Some(ProjectOutput {
            code: child.wait().unwrap().code().unwrap_or(-1),
            stdout: shown,
            stderr: String::new(),
        })
    }

    /// Returns the name of the scripted model.
    pub(crate) fn model(&self) -> String {
        format!("scripted:{}", self.path("replies.jsonl").display())
    }

    /// Runs the task to completion.
    pub(crate) fn run(&self) -> ProjectOutput {
        self.run_with(&[])
    }

    pub(crate) fn run_with(&self, more: &[&str]) -> ProjectOutput {
        let model = self.model();
        self.ralph(&[&["run", "--model", &model], more].concat())
    }

    /// Starts the task and returns while it is running.
    pub(crate) fn start(&self) -> LiveRun<'_> {
        let model = self.model();
        self.spawn(&["run", "--model", &model])
    }

    /// Resumes the newest run and returns while it is running.
    pub(crate) fn resume(&self) -> LiveRun<'_> {
        self.spawn(&["resume", "last"])
    }

    /// Starts the program and returns while it is running.
    pub(crate) fn spawn(&self, args: &[&str]) -> LiveRun<'_> {
        let child = self
            .command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        LiveRun {
            project: self,
            child,
        }
    }

    /// Returns the directory of the newest run.
    pub(crate) fn run_dir(&self) -> PathBuf {
        self.find_run().expect("there is a run")
    }

    /// Returns the directory of the newest run, if it exists.
    pub(super) fn find_run(&self) -> Option<PathBuf> {
        let runs = available(fs::read_dir(self.home().join("runs")))?;
        runs.map(|entry| entry.unwrap().path())
            .filter(|path| path.join("journal.jsonl").exists())
            .max()
    }

    /// Returns the events of the newest run, complete records only.
    pub(crate) fn journal(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.run_dir().join("journal.jsonl")).unwrap();
        text.split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].take())
            .collect()
    }

    /// Returns the events of one type.
    pub(crate) fn events(&self, kind: &str) -> Vec<Value> {
        let all = self.journal().into_iter();
        all.filter(|event| event["type"] == kind).collect()
    }

    /// Returns one field of all events of a type.
    pub(crate) fn event_values(&self, kind: &str, field: &str) -> Vec<Value> {
        let events = self.events(kind).into_iter();
        events.map(|mut event| event[field].take()).collect()
    }

    /// Returns the results of an iteration's actions: `done`, `ran 1`, `refused`…
    pub(crate) fn results(&self, iteration: u64) -> Vec<String> {
        self.events("action_finished")
            .iter()
            .filter(|event| event["iteration"] == iteration)
            .map(|event| {
                let result = event["result"].as_str().unwrap();
                match event["ended"]["exited"].as_i64() {
                    Some(code) => format!("{result} {code}"),
                    None => result.to_owned(),
                }
            })
            .collect()
    }

    /// Returns the output of `ralph show` for the newest run.
    pub(crate) fn show(&self) -> Value {
        let ended = self.ralph(&["show", "last", "--json"]).expect(0);
        serde_json::from_str(&ended.stdout).unwrap()
    }

    /// Returns an artifact of an iteration of the newest run.
    pub(crate) fn artifact(&self, iteration: u32, name: &str) -> String {
        let path = self
            .run_dir()
            .join(format!("iterations/{iteration}/{name}"));
        String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned()
    }

    pub(crate) fn prompt(&self, iteration: u32) -> String {
        self.artifact(iteration, "prompt.md")
    }

    /// Returns the host's copy of a `.ralph/` file of the newest run.
    pub(crate) fn file(&self, name: &str) -> String {
        fs::read_to_string(self.run_dir().join("files").join(name)).unwrap()
    }

    /// Returns the repository in the sandbox of the newest run.
    pub(crate) fn sandbox(&self) -> PathBuf {
        let created = self.events("sandbox_created");
        let work = created.iter().rfind(|event| event["purpose"] == "work");
        let id = work.expect("there is a sandbox")["sandbox"]
            .as_str()
            .unwrap();
        self.home().join("sandboxes").join(id).join("repo")
    }

    /// Returns the body of the only pull request.
    pub(crate) fn pull(&self) -> Value {
        let url = self.show()["pr"]["url"].as_str().unwrap().to_owned();
        let text = fs::read(url.trim_start_matches("file://")).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    /// Returns the files that the run's branch changes in the user's repository.
    pub(crate) fn delivered(&self) -> Vec<String> {
        let branch = self.show()["branch"].as_str().unwrap().to_owned();
        let text = self.git(&["diff", "--name-only", &format!("main..{branch}")]);
        text.lines().map(str::to_owned).collect()
    }

    /// Asserts that the independent audit finds nothing.
    #[track_caller]
    pub(crate) fn audit(&self) {
        let ended = self.ralph(&["audit", "last"]);
        assert_eq!(ended.code, 0, "{}", ended.combined());
    }
}
