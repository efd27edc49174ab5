use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use ralph_core::net::{Allowlist, Policy};

use super::*;

fn outcome(ended: Ended) -> ExecOutcome {
    ExecOutcome {
        ended,
        duration: Duration::from_millis(20),
        stdout_bytes: 0,
        stderr_bytes: 0,
        process_limit: false,
    }
}

fn denying() -> Look {
    Look::walls(&Rules::new(Policy::Deny))
}

/// Returns what is wrong, what was seen, and what was left out.
fn judged(look: &Look, text: &str, ended: Ended) -> (Vec<String>, Vec<String>, Option<String>) {
    let seen = Seen::read(text, &outcome(ended));
    let problems = seen.problems(look);
    let whats = problems.into_iter().map(|problem| problem.what).collect();
    (whats, seen.words(look), seen.left_out(look))
}

#[test]
fn walls_that_stand_are_told() {
    let good = [
        "the gate answers",
        "`https://google.com` is blocked",
        "`1.1.1.1:443` cannot be reached",
    ];
    for (text, ended) in [
        (
            "ok\ntool curl\ngate 200\nhost 000\ndirect blocked\n",
            Ended::Exited(0),
        ),
        (
            "ok\ntool wget\nhost 403\ngate 404\ndirect blocked\n",
            Ended::Exited(0),
        ),
        (
            "ok\ntool bash\nhost 000\ngate 200\ndirect blocked\n",
            Ended::Exited(0),
        ),
        // Who waits in vain is blocked too.
        ("ok\ntool python3\ngate 200\n", Ended::TimedOut),
    ] {
        let expected = (Vec::new(), good.map(str::to_owned).to_vec(), None);
        assert_eq!(judged(&denying(), text, ended), expected, "{text}");
    }
}

#[test]
fn whatever_is_wrong_is_told() {
    let silent = "the gate does not answer from inside of the sandbox";
    let leak = "a command in the sandbox can reach `https://google.com`, which no rule allows: it answered 301";
    let past = "a command in the sandbox can reach `1.1.1.1:443` past the gate";
    for (text, ended, expected) in [
        (
            "",
            Ended::Exited(127),
            &["the sandbox does not answer: `echo ok` exit 127"][..],
        ),
        (
            "",
            Ended::TimedOut,
            &["the sandbox does not answer: `echo ok` timed out (124)"],
        ),
        (
            "ok\ntool curl\ngate 000\nhost 000\ndirect blocked\n",
            Ended::Exited(0),
            &[silent],
        ),
        (
            "ok\ntool curl\nhost 000\ndirect blocked\n",
            Ended::TimedOut,
            &[silent],
        ),
        (
            "ok\ntool curl\ngate 200\nhost 301\ndirect blocked\n",
            Ended::Exited(0),
            &[leak],
        ),
        (
            "ok\ntool curl\ngate 200\nhost 000\ndirect reached\n",
            Ended::Exited(0),
            &[past],
        ),
        (
            "ok\ntool curl\ngate 000\nhost 301\ndirect reached\n",
            Ended::Exited(0),
            &[silent, leak, past],
        ),
    ] {
        assert_eq!(judged(&denying(), text, ended).0, expected, "{text}");
    }
}

#[test]
fn what_could_not_be_tried_is_told() {
    let none = judged(&denying(), "ok\ntool none\n", Ended::Exited(0));
    let why = "the image has neither curl, wget, python3 nor bash, so nobody tried what can be reached from inside of the sandbox";
    assert_eq!(none, (vec![], vec![], Some(why.to_owned())));
    let half = judged(&denying(), "ok\ntool curl\ngate 200\n", Ended::Exited(1));
    let why = "`curl` of the image broke down (exit 1), so not everything was tried that could be reached from inside of the sandbox";
    let seen = vec!["the gate answers".to_owned()];
    assert_eq!(half, (vec![], seen, Some(why.to_owned())));
    let torn = judged(
        &denying(),
        "ok\ntool curl\ngate \nhost \ndirect\n",
        Ended::Exited(0),
    );
    let why = "`curl` of the image broke down (exit 0), so not everything was tried that could be reached from inside of the sandbox";
    assert_eq!(torn, (vec![], vec![], Some(why.to_owned())));
    let nothing = judged(&Look::nothing(), "ok\n", Ended::Exited(0));
    assert_eq!(nothing, (vec![], vec![], None));
}

#[test]
fn a_name_is_tried_that_the_rules_do_not_allow() {
    let list = |lines: &[&str]| {
        let list = Allowlist::parse(lines.iter().copied()).unwrap();
        Policy::Allowlist(list)
    };
    for (policy, expected) in [
        (Policy::Deny, Some("google.com")),
        (list(&["github.com"]), Some("google.com")),
        (list(&["google.com:8443"]), Some("example.com")),
        (Policy::AllowAll, None),
    ] {
        let look = Look::walls(&Rules::new(policy.clone()));
        let forbidden = look.forbidden.as_ref().map(ToString::to_string);
        assert_eq!(forbidden.as_deref(), expected, "{policy:?}");
        assert_eq!((look.gate, look.direct), (Some(CREDENTIALS), Some(PUBLIC)));
    }
    let mut rules = Rules::new(Policy::Deny);
    rules.add(Entry::parse("google.com").unwrap());
    let forbidden = Look::walls(&rules).forbidden.unwrap().to_string();
    assert_eq!(forbidden, "example.com");
}

/// Answers every connection with a status.
fn serve(status: u16) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            let mut lines = BufReader::new(&stream).lines();
            while lines
                .next()
                .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
            {}
            let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n");
            (&stream).write_all(answer.as_bytes()).ok();
        }
    });
    address
}

/// Returns a directory that has this program besides what the script always needs.
fn only(tool: &str, place: &Path) -> Option<PathBuf> {
    let directory = place.join(tool);
    std::fs::create_dir(&directory).unwrap();
    for name in ["sed", "head", tool] {
        let places = ["/usr/local/bin", "/usr/bin", "/bin"];
        let mut places = places.iter().map(|place| Path::new(place).join(name));
        let program = places.find(|file| file.exists())?;
        symlink(program, directory.join(name)).unwrap();
    }
    Some(directory)
}

fn run(look: &Look, path: &Path, proxy: SocketAddr) -> Seen {
    let Exec { env, .. } = look.exec();
    let proxy = format!("http://{proxy}");
    let ran = Command::new("/bin/sh")
        .args(["-c", SCRIPT])
        .env_clear()
        .envs(env)
        .env("PATH", path)
        .envs(["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"].map(|key| (key, &proxy)))
        .output()
        .unwrap();
    let code = ran.status.code().unwrap();
    let text = String::from_utf8(ran.stdout).unwrap();
    Seen::read(&text, &outcome(Ended::Exited(code)))
}

#[test]
fn every_tool_sees_the_same() {
    let place = tempfile::tempdir().unwrap();
    let (healthy, refusing) = (serve(200), serve(403));
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let look = |gate, direct| Look {
        gate: Some(gate),
        direct: Some(direct),
        ..denying()
    };
    let mut tried = 0;
    for tool in ["curl", "wget", "python3", "bash"] {
        let Some(path) = only(tool, place.path()) else {
            continue;
        };
        tried += 1;
        let seen = run(&look(healthy, closed), &path, refusing);
        assert_eq!(
            seen,
            Seen {
                answers: true,
                ended: Ended::Exited(0),
                tool: Some(tool.to_owned()),
                gate: Answer::Status(200),
                forbidden: if tool == "bash" {
                    Answer::Status(403)
                } else {
                    Answer::Nothing
                },
                direct: Answer::Nothing,
            }
        );
        let seen = run(&look(closed, healthy), &path, refusing);
        assert_eq!(
            (seen.gate, seen.direct),
            (Answer::Nothing, Answer::Status(0)),
            "{tool}"
        );
    }
    assert!(tried > 0, "this machine has none of the tools");
    let empty = place.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let seen = run(&look(healthy, closed), &empty, refusing);
    assert_eq!((seen.answers, seen.tool), (true, None));
}
