//! Circling runs: the loop score of each pattern, the order of the countermeasures, and the way
//! out.

use serde_json::{Value, json};

use crate::project::{Project, actions, claiming, commit, finish, run, work, write};

/// A command that always fails in the same way.
const FAILING: &str = "echo 'cannot find the fixture' >&2; exit 3";

/// Returns several lines, different for every number.
fn lines(number: usize) -> String {
    let lines: Vec<String> = (0..6).map(|line| format!("{number}.{line}\n")).collect();
    lines.concat()
}

/// An iteration that fails like the others and changes nothing.
fn stuck() -> Value {
    actions(&[run(FAILING)])
}

/// A report that only matches the doctor's prompt.
fn report() -> Value {
    json!({
        "when": "You are the doctor of a Ralph loop",
        "reply": {
            "summary": "The fixture is missing.",
            "patterns": ["the same command fails in every iteration"],
            "root_causes": ["nobody makes the fixture"],
            "guardrails": [{
                "name": "make the fixture",
                "trigger": "before the failing command",
                "instruction": "write the fixture first",
                "evidence": "exit 3",
            }],
            "spec_edits": [{"find": "", "replace": "## Hints\n\nThe fixture comes first.", "why": "it was not said"}],
            "model_profile": null,
        },
        "usage": {"input_tokens": 1000, "output_tokens": 100},
    })
}

/// Returns the loop scores of all iterations.
fn scores(project: &Project) -> Vec<f64> {
    project
        .event_values("iteration_finished", "metrics")
        .iter()
        .map(|metrics| metrics["loop_score"].as_f64().unwrap())
        .collect()
}

/// Returns the countermeasure for each circling detection.
fn steps(project: &Project) -> Vec<String> {
    let events = project.events("gutter");
    events
        .iter()
        .map(|event| {
            let step = event["mitigation"]["step"].as_str().unwrap_or("nothing");
            format!("{} {step}", event["iteration"])
        })
        .collect()
}

/// A pattern: its name, the reply of each iteration, and the expected scores.
type CirclingCase<'a> = (&'a str, &'a dyn Fn(usize) -> Value, &'a [f64]);

#[test]
fn each_pattern_scores_exactly() {
    let failing = |n: usize| actions(&[write("n.txt", &lines(n)), run(FAILING)]);
    let flipping = |n: usize| actions(&[write("ab.txt", &lines(n % 2))]);
    let committed = |n: usize| {
        let path = if n.is_multiple_of(2) { "a" } else { "b" };
        let other = if n.is_multiple_of(2) { "b" } else { "a" };
        let rename = format!("rm -f {other}; seq 9 > {path}");
        actions(&[run(&rename), commit("Move it")])
    };
    let three = |n: usize| actions(&[write("abc.txt", &lines(n % 3)), commit("Change it")]);
    let both = |n: usize| actions(&[write("ab.txt", &lines(n % 2)), run(FAILING)]);
    let looking = |_: usize| actions(&[run("true")]);
    let idle = |_: usize| actions(&[]);
    let cases: [CirclingCase<'_>; 7] = [
        ("repeated failure", &failing, &[0.0, 0.0, 0.5, 0.5]),
        ("standing still", &looking, &[0.0, 0.0, 0.3, 0.3]),
        ("there and back", &flipping, &[0.0, 0.0, 0.0, 0.2]),
        ("renamed and back", &committed, &[0.0, 0.0, 0.0, 0.2]),
        ("three contents", &three, &[0.0, 0.0, 0.0, 0.0, 0.0, 0.7]),
        ("failure and back", &both, &[0.0, 0.0, 0.5, 0.7]),
        ("nothing at all", &idle, &[0.0, 0.0, 0.3, 0.3, 0.7]),
    ];
    for (name, make, expected) in cases {
        let script: Vec<Value> = (1..=expected.len()).map(make).collect();
        let project = Project::new()
            .set("max_iterations", &expected.len().to_string())
            .script(&script);
        project.run().expect(10);
        assert_eq!(scores(&project), expected, "{name}");
        let gutters = expected.iter().filter(|score| **score >= 0.7).count();
        assert_eq!(project.events("gutter").len(), gutters, "{name}");
        project.audit();
    }
}

#[test]
fn the_run_switches_to_the_fallback_profile_of_the_environment() {
    let script: Vec<Value> = std::iter::once(report())
        .chain((0..5).map(|_| stuck()))
        .chain([finish()])
        .collect();
    let project = Project::new()
        .set("max_iterations", "9")
        .env("RALPH_FALLBACK_MODEL_PROFILE", "strong")
        .script(&script);
    let strong = format!(
        "profiles:\n  strong:\n    litellm_model: {:?}\n    max_output_tokens: 16384\n",
        project.model()
    );
    project.configure("models.yaml", &strong);
    project.run().expect(0);
    assert_eq!(steps(&project), ["3 rotate", "4 fallback", "5 doctor"]);
    let log = project.file("activity.log");
    assert!(log.contains("now using profile `strong`"), "{log}");
    assert_eq!(project.show()["profile"], "strong");
}

#[test]
fn the_ladder_is_climbed_and_the_run_recovers() {
    let script: Vec<Value> = std::iter::once(report())
        .chain((0..5).map(|_| stuck()))
        .chain([finish()])
        .collect();
    let project = Project::new()
        .set("max_iterations", "9")
        .set("model_profile_default", "cheap")
        .set("model_profile_fallback", "strong")
        .script(&script);
    project.run().expect(0);
    assert_eq!(scores(&project), [0.0, 0.0, 0.8, 0.8, 0.8, 0.8]);
    assert_eq!(steps(&project), ["3 rotate", "4 fallback", "5 doctor"]);
    // The next prompt mentions it, and one command shows the doctor's report.
    assert!(project.prompt(4).contains("## The run is going in circles"));
    assert!(project.prompt(4).contains("failed 3 times in the same way"));
    assert!(!project.prompt(3).contains("## The run is going in circles"));
    assert_eq!(project.events("doctor_asked").len(), 1);
    assert!(
        project
            .file("diagnostics.md")
            .contains("The fixture is missing.")
    );
    let log = project.file("activity.log");
    for line in [
        "signal repeated_failure +0.5: ",
        "signal stagnation +0.3: ",
        "GUTTER 0.8, 1 in a row; mitigation: rotate",
        "mitigation: switch to the fallback profile `strong`",
        "now using profile `strong`",
        "mitigation: ask the doctor",
        "report 1 of the doctor: The fixture is missing.",
    ] {
        assert!(log.contains(line), "{line}\n{log}");
    }
    let metrics: Value = serde_json::from_str(&project.artifact(4, "metrics.json")).unwrap();
    assert_eq!(metrics["loop_score"], 0.8);
    assert_eq!(
        metrics["gutter"]["step"],
        json!({"step": "fallback", "profile": "strong"})
    );
    assert_eq!(
        metrics["gutter"]["ladder"],
        json!({"consecutive": 2, "rung": "fallback"})
    );
    assert_eq!(
        metrics["gutter"]["signals"][0]["iterations"],
        json!([1, 2, 3, 4])
    );
    // The doctor's tokens are charged like all others.
    assert_eq!(
        project.show()["tokens"],
        json!({"input": 1060, "output": 160})
    );
    assert_eq!(project.show()["loop_score"], 0.8);
    project.audit();
    for verb in ["replay", "logs"] {
        let stdout = project.ralph(&[verb, "last"]).expect(0).stdout;
        assert!(stdout.contains("doctor"), "{stdout}");
    }
}

#[test]
fn a_missing_rung_is_skipped_and_the_user_is_asked_before_failure() {
    let script: Vec<Value> = std::iter::once(report()).chain([stuck()]).collect();
    let project = Project::new()
        .set("max_iterations", "20")
        .set("model_profile_default", "cheap")
        .set("model_profile_fallback", "cheap")
        .script(&script);
    let ended = project.run().expect(11);
    assert_eq!(steps(&project), ["3 rotate", "4 doctor", "5 pause"]);
    assert!(ended.stdout.contains("circling for"), "{}", ended.stdout);
    assert!(
        project
            .file("activity.log")
            .contains("mitigation: skipped fallback profile: profile `cheap` is already in use")
    );
    let reason = project.show()["reason"].as_str().unwrap().to_owned();
    assert!(
        reason.starts_with("circling for 3 consecutive iterations: `echo"),
        "{reason}"
    );
    // The user resumed it and nothing has changed, so the run fails.
    let ended = project.ralph(&["resume", "last"]).expect(10);
    assert!(
        ended
            .stdout
            .contains("circling for 4 consecutive iterations, but `max_consecutive_gutter` is 3"),
        "{}",
        ended.stdout
    );
    assert_eq!(steps(&project)[3..], ["6 fail"]);
    project.audit();
}

#[test]
fn a_verified_box_resets_the_ladder() {
    let mut better = vec![write("a.txt", "one\n"), commit("One")];
    better.push(run(FAILING));
    let script = [
        stuck(),
        stuck(),
        stuck(),
        claiming(&["M1.1"], &better),
        stuck(),
        stuck(),
        stuck(),
        claiming(&["M1.2"], &work()),
    ];
    let project = Project::new().set("max_iterations", "9").script(&script);
    project.run().expect(0);
    // A ticked box suppresses detection for two iterations; then the countermeasures start from the
    // first one.
    assert_eq!(steps(&project), ["3 rotate", "7 rotate"]);
    project.audit();
}

#[test]
fn fewer_failing_tests_are_no_circle() {
    let tests = "n=$(cat left 2>/dev/null || echo 5); echo \"$((5 - n)) passed, $n failed\"; \
                 echo 'npm ERR! Test failed' >&2; test $n = 0";
    let script: Vec<Value> = (0..5)
        .rev()
        .map(|left| actions(&[write("left", &format!("{left}\n")), run("sh test.sh")]))
        .collect();
    let project = Project::new()
        .set("test_command", "\"sh test.sh\"")
        .set("max_iterations", "5");
    project.commit("test.sh", tests);
    let project = project.script(&script);
    project.run().expect(10);
    assert_eq!(scores(&project), [0.0, 0.0, 0.3, 0.3, 0.3]);
    project.audit();
}

/// Returns a text without line breaks, which depend on the terminal width.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<&str>>().join(" ")
}

/// A failing check whose output differs each time: another line number, another value.
fn same_problem(n: usize) -> Value {
    let output = format!("src/parse.py:{n}7: error: name is not defined, got {n}{n}");
    run(&format!("echo '{output}'; exit 1"))
}

#[test]
fn the_same_error_in_changing_code_is_detected() {
    let attempt = |n: usize| {
        let code = format!("a{n} = 1\nb{n} = 2\nc{n} = a{n}\nd{n} = b{n}\n");
        actions(&[
            write("parse.py", &code),
            commit("Try again"),
            same_problem(n),
        ])
    };
    let script: Vec<Value> = (1..=5).map(attempt).chain([finish()]).collect();
    let project = Project::new().set("max_iterations", "9").script(&script);
    let text = words(&project.run().expect(0).stdout);
    assert_eq!(scores(&project)[..5], [0.0, 0.0, 0.0, 0.4, 0.7]);
    assert_eq!(steps(&project), ["5 rotate"]);
    for evidence in [
        "going in circles (loop score 0.7): rotate",
        "the same problem 5 times: `src/parse.py error: name is not defined, got #`",
        "replaced the lines that the previous iteration had written",
    ] {
        assert!(text.contains(evidence), "{evidence}\n{text}");
    }
    assert!(project.prompt(6).contains("the same problem 5 times"));
    project.audit();
}

#[test]
fn a_cycle_of_three_states_is_detected() {
    let turn = |n: usize| actions(&[write("abc.txt", &lines(n % 3)), commit("Change it")]);
    let script: Vec<Value> = (1..=6).map(turn).chain([finish()]).collect();
    let project = Project::new().set("max_iterations", "9").script(&script);
    let text = words(&project.run().expect(0).stdout);
    assert_eq!(steps(&project), ["6 rotate"]);
    let evidence = "cycling through 3 states: the repository (iterations 1, 2, 3, 4, 5, 6)";
    assert!(text.contains(evidence), "{text}");
    assert!(project.prompt(7).contains(evidence));
    project.audit();
}

#[test]
fn endless_reading_is_detected() {
    let look = |n: usize| actions(&[run(&format!("ls; echo {n}")), run("git log --oneline")]);
    let script: Vec<Value> = (1..=5).map(look).chain([finish()]).collect();
    let project = Project::new().set("max_iterations", "9").script(&script);
    let text = words(&project.run().expect(0).stdout);
    assert_eq!(scores(&project)[..5], [0.0, 0.0, 0.3, 0.3, 0.7]);
    assert_eq!(steps(&project), ["5 rotate"]);
    let evidence = "commands ran but no file changed in iterations 1, 2, 3, 4, 5";
    assert!(text.contains(evidence), "{text}");
    assert!(project.prompt(6).contains(evidence));
    project.audit();
}

#[test]
fn one_line_fixes_under_one_generic_message_are_no_circle() {
    let build = "n=$(ls f*.ts | wc -l); echo \"src/f$n.ts($n,7): error TS2304: no name helper$n\"; \
                 echo 'Error: build failed' >&2; exit 1";
    let fix = |n: usize| {
        let path = format!("f{n}.ts");
        actions(&[
            write(&path, "export const f = 1\n"),
            commit("Fix one more"),
            run("sh build.sh"),
        ])
    };
    let script: Vec<Value> = (1..=7).map(fix).chain([finish()]).collect();
    let project = Project::new().set("max_iterations", "9");
    project.commit("build.sh", build);
    let project = project.script(&script);
    project.run().expect(0);
    assert_eq!(scores(&project)[..7], [0.0, 0.0, 0.3, 0.3, 0.3, 0.3, 0.3]);
    assert_eq!(steps(&project), Vec::<String>::new());
    let log = project.file("activity.log");
    let line = "signal moved_on -0.5: the failure looks the same in iterations 1, 2, 3";
    assert!(log.contains(line), "{log}");
    project.audit();
}

#[test]
fn the_counters_survive_a_kill() {
    let mut slow = stuck();
    slow["delay_ms"] = 60_000.into();
    let script: Vec<Value> = [report(), stuck(), stuck(), stuck(), slow].into();
    let project = Project::new()
        .set("max_iterations", "9")
        .set("model_profile_fallback", "strong")
        .script(&script);
    let live = project.start();
    live.wait_for_event("model_asked", 4);
    live.signal(rustix::process::Signal::KILL);
    live.wait();
    project.write_script(&[
        report(),
        stuck(),
        stuck(),
        stuck(),
        stuck(),
        stuck(),
        finish(),
    ]);
    project.ralph(&["resume", "last"]).expect(0);
    assert_eq!(scores(&project), [0.0, 0.0, 0.8, 0.8, 0.8, 0.8]);
    assert_eq!(steps(&project), ["3 rotate", "4 fallback", "5 doctor"]);
    project.audit();
}

#[test]
fn nothing_in_the_prompt_grows_with_the_run() {
    // Every iteration fails noisily, changes a file, commits and adds a guardrail: everything that
    // can grow does.
    let sign = "\n### sign: again\n- trigger: always\n- instruction: again\n";
    let script: Vec<Value> = (0..200)
        .map(|n| {
            let append = json!({"type": "write", "path": ".ralph/guardrails.md", "content": sign, "append": true});
            // A different failure each time: the run must not be paused for circling.
            let noisy = format!("seq {n}000 {n}999 >&2; exit 1");
            actions(&[append, write("n.txt", &lines(n)), commit("Again"), run(&noisy)])
        })
        .collect();
    let project = Project::new()
        .set("max_iterations", "200")
        .set("max_wall_time_minutes", "60")
        .set("max_tokens_total", "100000000")
        .set("max_consecutive_gutter", "1000")
        .script(&script);
    project.run().expect(10);
    let bytes: Vec<u64> = project
        .event_values("model_asked", "prompt_bytes")
        .iter()
        .map(|bytes| bytes.as_u64().unwrap())
        .collect();
    assert_eq!(bytes.len(), 200);
    for iteration in [1, 10, 50, 100, 150, 200] {
        println!(
            "prompt of iteration {iteration}: {} bytes",
            bytes[iteration - 1]
        );
    }
    let largest_early = bytes[..150].iter().max().unwrap();
    let largest_late = bytes[150..].iter().max().unwrap();
    assert!(
        *largest_late <= largest_early + 512,
        "{largest_early} {largest_late}"
    );
    assert!(*largest_late < 100_000, "{largest_late}");
}
