use ralph_core::net::{Allowlist, EgressPolicy};
use ralph_core::ports::ExecProgram;

use super::*;

fn outcome(ended: ExecStatus) -> ExecOutcome {
    ExecOutcome {
        ended,
        duration: Duration::from_millis(20),
        stdout_bytes: 0,
        stderr_bytes: 0,
        process_limit: false,
    }
}

fn deny_all_probe() -> PreflightProbe {
    PreflightProbe::for_rules(&EgressRules::new(EgressPolicy::Deny))
}

/// Returns the problems.
fn problems(probe: &PreflightProbe, text: &str, ended: ExecStatus) -> Vec<String> {
    let report = PreflightReport::parse(text, &outcome(ended));
    let problems = report.problems(probe);
    problems.into_iter().map(|problem| problem.what).collect()
}

#[test]
fn passing_probes_are_summarized() {
    let text = "ok\nname 000\nhost 403\ngate 200\ndirect blocked\n";
    assert_eq!(
        problems(&deny_all_probe(), text, ExecStatus::Exited(0)),
        [""; 0]
    );
    let report = PreflightReport::parse(text, &outcome(ExecStatus::Exited(0)));
    let good = [
        "the gate answers",
        "`https://google.com` is blocked",
        "`1.1.1.1:443` cannot be reached",
    ];
    assert_eq!(report.summary(&deny_all_probe()), good);
    assert_eq!(
        problems(&PreflightProbe::none(), "ok\n", ExecStatus::Exited(0)),
        [""; 0]
    );
}

#[test]
fn every_failed_probe_is_reported() {
    let silent = "the gate does not answer from inside the sandbox";
    let leak = "a command in the sandbox can reach `https://google.com`, which no rule allows: it answered 200";
    let past = "a command in the sandbox can reach `1.1.1.1:443` past the gate";
    for (text, ended, expected) in [
        (
            "",
            ExecStatus::Exited(127),
            &["the sandbox does not answer: the first command failed: exit 127"][..],
        ),
        (
            "",
            ExecStatus::TimedOut,
            &["the sandbox does not answer: the first command failed: timed out (124)"],
        ),
        (
            "ok\ngate 000\nhost 000\nname 000\ndirect blocked\n",
            ExecStatus::Exited(0),
            &[silent],
        ),
        (
            "ok\ngate 404\nhost 000\nname 000\ndirect blocked\n",
            ExecStatus::Exited(0),
            &[silent],
        ),
        (
            "ok\ngate 200\nhost 200\nname 000\ndirect blocked\n",
            ExecStatus::Exited(0),
            &[leak],
        ),
        (
            "ok\ngate 200\nhost 403\nname 200\ndirect blocked\n",
            ExecStatus::Exited(0),
            &[leak],
        ),
        (
            "ok\ngate 200\nhost 000\nname 000\ndirect reached\n",
            ExecStatus::Exited(0),
            &[past],
        ),
        (
            "ok\ngate 000\nhost 200\nname 000\ndirect reached\n",
            ExecStatus::Exited(0),
            &[silent, leak, past],
        ),
    ] {
        assert_eq!(problems(&deny_all_probe(), text, ended), expected, "{text}");
    }
}

#[test]
fn a_probe_without_a_result_is_a_failure() {
    let about = |what: &str, ended: &str| {
        vec![format!(
            "the probe inside the sandbox reported nothing about {what} ({ended})"
        )]
    };
    let all = "the gate at `127.0.0.1:4141`, `https://google.com`, `1.1.1.1:443`";
    for (text, ended, expected) in [
        ("ok\n", ExecStatus::Exited(0), about(all, "exit 0")),
        ("ok\n", ExecStatus::TimedOut, about(all, "timed out (124)")),
        (
            "ok\ngate x\nhost\nname \ndirect maybe\n",
            ExecStatus::Exited(1),
            about(all, "exit 1"),
        ),
        (
            "ok\ngate 200\nhost 403\nname 000\n",
            ExecStatus::Exited(0),
            about("`1.1.1.1:443`", "exit 0"),
        ),
        (
            "ok\ngate 200\nhost 403\ndirect blocked\n",
            ExecStatus::Exited(0),
            about("`https://google.com`", "exit 0"),
        ),
    ] {
        assert_eq!(problems(&deny_all_probe(), text, ended), expected, "{text}");
    }
}

#[test]
fn the_guest_probes_and_no_program_of_the_image() {
    let exec = deny_all_probe().command(Some("/guest"));
    let argv = "/guest probe-network --gate 127.0.0.1:4141 --host google.com --direct 1.1.1.1:443";
    let argv = argv.split(' ').map(str::to_owned).collect();
    assert_eq!(exec.program, ExecProgram::Argv(argv));
    let echo = ExecProgram::Shell("echo ok".to_owned());
    assert_eq!(deny_all_probe().command(None).program, echo);
    assert_eq!(PreflightProbe::none().command(Some("/guest")).program, echo);
}

#[test]
fn the_probed_host_is_not_allowed_by_the_rules() {
    let list = |lines: &[&str]| {
        let list = Allowlist::parse(lines.iter().copied()).unwrap();
        EgressPolicy::Allowlist(list)
    };
    for (policy, expected) in [
        (EgressPolicy::Deny, Some("google.com")),
        (list(&["github.com"]), Some("google.com")),
        (list(&["google.com:8443"]), Some("example.com")),
        (EgressPolicy::AllowAll, None),
    ] {
        let probe = PreflightProbe::for_rules(&EgressRules::new(policy.clone()));
        let forbidden = probe.forbidden.as_ref().map(ToString::to_string);
        assert_eq!(forbidden.as_deref(), expected, "{policy:?}");
        assert_eq!(
            (probe.gate, probe.direct),
            (Some(CREDENTIAL_ADDRESS), Some(PUBLIC_ADDRESS))
        );
    }
    let mut rules = EgressRules::new(EgressPolicy::Deny);
    rules.add(AllowlistEntry::parse("google.com").unwrap());
    let forbidden = PreflightProbe::for_rules(&rules)
        .forbidden
        .unwrap()
        .to_string();
    assert_eq!(forbidden, "example.com");
}
