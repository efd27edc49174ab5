//! Notifications reach a command and a server, and never affect a run.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ralph_core::parse_value;
use serde_json::Value;

use crate::project::{Project, actions, control, finish};

/// Writes a program and the setting that starts it; returns the path of the file that it writes.
fn with_command(project: &Project, script: &str) -> std::path::PathBuf {
    let program = project.path("tell");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let output = project.path("told");
    let text = format!(
        "[notify]\ncommand = [{:?}, {:?}]\n",
        program.display().to_string(),
        output.display().to_string()
    );
    project.configure("config.toml", &text);
    output
}

const RECORD: &str =
    "cat > \"$1\"; echo \"$RALPH_NOTIFY|$RALPH_STATUS|$RALPH_TITLE|$RALPH_REASON\" >> \"$1\"";

#[test]
fn a_command_gets_the_result() {
    let project = Project::new().script(&[actions(&[control("pause", "which one?")]), finish()]);
    let told = with_command(&project, RECORD);
    project.run().expect(11);
    let text = fs::read_to_string(&told).unwrap();
    let (json, variables) = text.split_once('\n').unwrap();
    let json: Value = serde_json::from_str(json).unwrap();
    assert_eq!(json["version"], 1);
    assert_eq!(json["event"], "needs-you");
    assert_eq!(json["status"], "paused");
    assert_eq!(json["title"], "Make two files");
    assert_eq!(json["id"], project.show()["id"]);
    assert!(
        variables.starts_with("needs-you|paused|Make two files|"),
        "{variables}"
    );
    assert!(variables.contains("which one?"), "{variables}");
    project.ralph(&["resume", "last"]).expect(0);
    let text = fs::read_to_string(&told).unwrap();
    assert!(text.contains("\"event\":\"finished\""), "{text}");
    assert!(
        text.contains("finished|succeeded|Make two files|"),
        "{text}"
    );
}

#[test]
fn only_the_chosen_events_are_notified() {
    let project = Project::new().script(&[finish()]);
    let told = with_command(&project, RECORD);
    let settings = fs::read_to_string(project.user_config_path("config.toml")).unwrap();
    project.configure("config.toml", &format!("{settings}on = [\"failed\"]\n"));
    project.run().expect(0);
    assert!(!told.exists());
}

#[test]
fn a_failing_or_hanging_command_does_not_fail_the_run() {
    for (script, words) in [
        ("echo no such room >&2; exit 3", "no such room"),
        ("sleep 100 & sleep 100", "no end after 10 seconds"),
    ] {
        let project = Project::new().script(&[finish()]);
        with_command(&project, script);
        let started = Instant::now();
        project.run().expect(0);
        assert!(started.elapsed() < Duration::from_secs(40), "{script}");
        let log = fs::read_to_string(project.home().join("log/ralph.log")).unwrap();
        assert!(log.contains("a notification failed"), "{log}");
        assert!(log.contains(words), "{log}");
    }
    let project = Project::new().script(&[finish()]);
    project.configure(
        "config.toml",
        "[notify]\ncommand = [\"/no/such/program\"]\n",
    );
    project.run().expect(0);
    let log = fs::read_to_string(project.home().join("log/ralph.log")).unwrap();
    assert!(log.contains("cannot start `/no/such/program`"), "{log}");
}

/// Answers one request and returns its head and body.
fn server(status: &'static str) -> (String, JoinHandle<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/hook?token=t", listener.local_addr().unwrap());
    let thread = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut head = String::new();
        while reader.read_line(&mut head).unwrap() > 2 {}
        let length = head
            .lines()
            .find_map(|line| parse_value(line.to_lowercase().strip_prefix("content-length: ")?))
            .unwrap();
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let response = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(response.as_bytes()).unwrap();
        (head, String::from_utf8(body).unwrap())
    });
    (address, thread)
}

#[test]
fn a_webhook_gets_the_result() {
    for (status, words) in [
        ("204 No Content", "a notification was sent"),
        ("500 Broken", "the server responded with 500"),
    ] {
        let (address, thread) = server(status);
        let project = Project::new().script(&[finish()]);
        project.configure(
            "config.toml",
            &format!("[notify]\nwebhook = \"{address}\"\n"),
        );
        project.run().expect(0);
        let (head, body) = thread.join().unwrap();
        assert!(head.starts_with("POST /hook?token=t HTTP/1.1"), "{head}");
        let json: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(json["event"], "finished");
        assert_eq!(json["status"], "succeeded");
        let log = fs::read_to_string(project.home().join("log/ralph.log")).unwrap();
        assert!(log.contains(words), "{log}");
    }
}

#[test]
fn a_repository_cannot_notify() {
    let project = Project::new().script(&[finish()]);
    fs::write(
        project.repo().join("ralph.toml"),
        "[notify]\ncommand = [\"touch\", \"owned\"]\n",
    )
    .unwrap();
    let ended = project.run().expect(2);
    assert!(
        ended
            .stderr
            .contains("ralph.toml may not set `notify.command`"),
        "{}",
        ended.stderr
    );
    assert!(!project.repo().join("owned").exists());
}

/// Writes a program that records its arguments, one per line, and returns a `PATH` with it.
fn with_desktop_program(project: &Project, name: &str) -> String {
    let directory = project.path("bin");
    fs::create_dir(&directory).unwrap();
    let program = directory.join(name);
    let arguments = project.path("arguments");
    let script = format!(
        "#!/bin/sh\nfor word; do printf '%s\\n' \"$word\"; done >'{}'\n",
        arguments.display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    project.configure("config.toml", "[notify]\ndesktop = true\n");
    let path = std::env::var_os("PATH").unwrap();
    format!("{}:{}", directory.display(), path.display())
}

fn has_desktop_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path).any(|directory| directory.join(name).exists())
}

#[test]
fn the_desktop_gets_the_result() {
    let question = actions(&[control("pause", "is a <b> & c right?")]);
    let project = Project::new().script(&[question]);
    let path = with_desktop_program(&project, "notify-send");
    let project = project.env("PATH", path);
    project.run().expect(11);
    let arguments = fs::read_to_string(project.path("arguments")).unwrap();
    let start = "--app-name=ralph\n--\nralph\nMake two files needs you: ";
    assert!(arguments.starts_with(start), "{arguments}");
    let escaped = "is a &lt;b&gt; &amp; c right?";
    assert!(arguments.contains(escaped), "{arguments}");
}

#[test]
fn without_notify_send_the_desktop_of_macos_gets_the_result() {
    if has_desktop_program("notify-send") {
        println!("skipped: `notify-send` is on PATH");
        return;
    }
    let project = Project::new().script(&[finish()]);
    let path = with_desktop_program(&project, "osascript");
    let project = project.env("PATH", path);
    project.run().expect(0);
    let arguments = fs::read_to_string(project.path("arguments")).unwrap();
    assert!(
        arguments.starts_with("-e\non run argv\ndisplay notification "),
        "{arguments}"
    );
    assert!(
        arguments.ends_with("\n--\nMake two files finished\n"),
        "{arguments}"
    );
}

#[test]
fn a_missing_desktop_program_is_logged() {
    if has_desktop_program("notify-send") || has_desktop_program("osascript") {
        println!("skipped: a program for the desktop is on PATH");
        return;
    }
    let project = Project::new().script(&[finish()]);
    project.configure("config.toml", "[notify]\ndesktop = true\n");
    project.run().expect(0);
    let log = fs::read_to_string(project.home().join("log/ralph.log")).unwrap();
    let why = "neither `notify-send` nor `osascript` is on PATH";
    assert!(log.contains(why), "{log}");
}

#[test]
fn a_terminal_rings_its_bell_if_the_user_wants_it() {
    for (settings, rings) in [
        ("[notify]\nbell = true\n", true),
        ("[notify]\nbell = true\non = [\"failed\"]\n", false),
        ("[notify]\nbell = false\n", false),
    ] {
        let project = Project::new().script(&[finish()]);
        project.configure("config.toml", settings);
        let model = project.model();
        let Some(shown) = project.on_terminal(&["run", "--model", &model], ("", "")) else {
            println!("skipped: there is no program `script`");
            return;
        };
        let shown = shown.expect(0);
        assert_eq!(
            shown.stdout.contains('\u{7}'),
            rings,
            "{settings} {shown:?}"
        );
    }
    let project = Project::new().script(&[finish()]);
    project.configure("config.toml", "[notify]\nbell = true\n");
    let piped = project.run().expect(0).combined();
    assert!(!piped.contains('\u{7}'), "{piped:?}");
}
