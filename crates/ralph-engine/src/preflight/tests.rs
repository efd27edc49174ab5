use ralph_core::net::{Allowlist, Policy};
use ralph_core::ports::Program;

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

/// Returns what is wrong.
fn problems(look: &Look, text: &str, ended: Ended) -> Vec<String> {
    let seen = Seen::read(text, &outcome(ended));
    let problems = seen.problems(look);
    problems.into_iter().map(|problem| problem.what).collect()
}

#[test]
fn walls_that_stand_are_told() {
    let text = "ok\nname 000\nhost 403\ngate 200\ndirect blocked\n";
    assert_eq!(problems(&denying(), text, Ended::Exited(0)), [""; 0]);
    let seen = Seen::read(text, &outcome(Ended::Exited(0)));
    let good = [
        "the gate answers",
        "`https://google.com` is blocked",
        "`1.1.1.1:443` cannot be reached",
    ];
    assert_eq!(seen.words(&denying()), good);
    assert_eq!(
        problems(&Look::nothing(), "ok\n", Ended::Exited(0)),
        [""; 0]
    );
}

#[test]
fn whatever_is_wrong_is_told() {
    let silent = "the gate does not answer from inside of the sandbox";
    let leak = "a command in the sandbox can reach `https://google.com`, which no rule allows: it answered 200";
    let past = "a command in the sandbox can reach `1.1.1.1:443` past the gate";
    for (text, ended, expected) in [
        (
            "",
            Ended::Exited(127),
            &["the sandbox does not answer: the first command exit 127"][..],
        ),
        (
            "",
            Ended::TimedOut,
            &["the sandbox does not answer: the first command timed out (124)"],
        ),
        (
            "ok\ngate 000\nhost 000\nname 000\ndirect blocked\n",
            Ended::Exited(0),
            &[silent],
        ),
        (
            "ok\ngate 404\nhost 000\nname 000\ndirect blocked\n",
            Ended::Exited(0),
            &[silent],
        ),
        (
            "ok\ngate 200\nhost 200\nname 000\ndirect blocked\n",
            Ended::Exited(0),
            &[leak],
        ),
        (
            "ok\ngate 200\nhost 403\nname 200\ndirect blocked\n",
            Ended::Exited(0),
            &[leak],
        ),
        (
            "ok\ngate 200\nhost 000\nname 000\ndirect reached\n",
            Ended::Exited(0),
            &[past],
        ),
        (
            "ok\ngate 000\nhost 200\nname 000\ndirect reached\n",
            Ended::Exited(0),
            &[silent, leak, past],
        ),
    ] {
        assert_eq!(problems(&denying(), text, ended), expected, "{text}");
    }
}

#[test]
fn a_probe_without_a_result_is_a_failure() {
    let about = |what: &str, ended: &str| {
        vec![format!(
            "the probe inside of the sandbox reported nothing about {what} ({ended})"
        )]
    };
    let all = "the gate at `127.0.0.1:4141`, `https://google.com`, `1.1.1.1:443`";
    for (text, ended, expected) in [
        ("ok\n", Ended::Exited(0), about(all, "exit 0")),
        ("ok\n", Ended::TimedOut, about(all, "timed out (124)")),
        (
            "ok\ngate x\nhost\nname \ndirect maybe\n",
            Ended::Exited(1),
            about(all, "exit 1"),
        ),
        (
            "ok\ngate 200\nhost 403\nname 000\n",
            Ended::Exited(0),
            about("`1.1.1.1:443`", "exit 0"),
        ),
        (
            "ok\ngate 200\nhost 403\ndirect blocked\n",
            Ended::Exited(0),
            about("`https://google.com`", "exit 0"),
        ),
    ] {
        assert_eq!(problems(&denying(), text, ended), expected, "{text}");
    }
}

#[test]
fn the_guest_probes_and_no_program_of_the_image() {
    let exec = denying().exec(Some("/guest"));
    let argv = "/guest probe-network --gate 127.0.0.1:4141 --host google.com --direct 1.1.1.1:443";
    let argv = argv.split(' ').map(str::to_owned).collect();
    assert_eq!(exec.program, Program::Argv(argv));
    let echo = Program::Shell("echo ok".to_owned());
    assert_eq!(denying().exec(None).program, echo);
    assert_eq!(Look::nothing().exec(Some("/guest")).program, echo);
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
