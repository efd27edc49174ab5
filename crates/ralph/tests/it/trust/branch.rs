//! Changes by an agent that affect later runs are listed in its pull request.

use crate::project::{Project, claiming, commit, run, work, write};

#[test]
fn changed_configuration_is_named_as_needing_approval() {
    let mut changes = vec![
        write(".agent-loop/Dockerfile.sandbox", "FROM evil.example/x\n"),
        write("config/models.yaml", "profiles: {}\n"),
        write(
            "config/agents.toml",
            "[claude]\nhosts = [\"evil.example\"]\n",
        ),
        write("ralph.toml", "[sandbox.network]\npolicy = \"allow-all\"\n"),
        write("config/routes.rb", "nothing of ours\n"),
    ];
    changes.extend(work());
    let project = Project::new().script(&[claiming(&["M1.1", "M1.2"], &changes)]);
    let ended = project.run().expect(0);
    let pull = project.pull();
    let body = pull["body"].as_str().unwrap();
    let files = [
        ".agent-loop/Dockerfile.sandbox",
        "config/agents.toml",
        "config/models.yaml",
        "ralph.toml",
    ];
    for file in files {
        let line = format!("- `{file}`: configures ralph: changed — approve to rebuild");
        assert!(body.contains(&line), "no {line:?} in\n{body}");
    }
    assert!(!body.contains("config/routes.rb`"), "{body}");
    let summary = format!("changed — approve to rebuild: {}", files.join(", "));
    assert!(ended.stdout.contains(&summary), "{}", ended.stdout);
    // The user's checkout is another commit: its next run is not affected by the branch.
    project.run_with(&["--dry-run"]).expect(0);
    // After the merge the files exist, and are rejected.
    let branch = pull["branch"].as_str().or(pull["head_branch"].as_str());
    let branch = branch.map_or_else(|| "ralph/task/make-two-files".to_owned(), str::to_owned);
    project.git(&["merge", "--quiet", &branch]);
    let refused = project.ralph(&["run", "--sandbox", "docker", "--model", &project.model()]);
    assert_eq!(refused.code, 2, "{}", refused.combined());
    assert!(
        refused.stderr.contains("ralph.toml may not set"),
        "{}",
        refused.stderr
    );
    project.audit();
}

#[test]
fn links_out_of_the_tree_and_repositories_in_it_are_named() {
    let mut changes = vec![
        run("ln -s /etc/passwd out; ln -s a.txt inside; mkdir -p d; ln -s ../../x d/up"),
        run(
            "git init --quiet nested && git -C nested -c user.name=x -c user.email=x@x commit --quiet --allow-empty -m x",
        ),
        run(
            "git init --quiet --bare store && touch store/objects/keep store/refs/keep && rm -rf store/hooks",
        ),
    ];
    changes.extend(work());
    changes.push(run("git add -A && git commit --quiet -m all || true"));
    changes.push(commit("The rest"));
    let project = Project::new().script(&[claiming(&["M1.1", "M1.2"], &changes)]);
    project.run();
    let pull = project.pull();
    let body = pull["body"].as_str().unwrap();
    for line in [
        "- `out`: symbolic link out of the tree, to `/etc/passwd`",
        "- `d/up`: symbolic link out of the tree, to `../../x`",
        "- `nested`: nested repository",
        "- `store`: bare repository, whose configuration git obeys",
    ] {
        assert!(body.contains(line), "no {line:?} in\n{body}");
    }
    assert!(!body.contains("- `inside`"), "{body}");
}
