//! Agents that are scripts of the project, in the local sandbox.

use super::house::with_script;

/// Does the first open box, commits it and ticks it.
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
fn one_that_does_nothing_is_noticed_after_three_iterations() {
    let project = with_script("cat >/dev/null; echo I have looked around");
    let paused = project.ralph(&["run", "--agent", "command"]).expect(11);
    let shown = project.show();
    assert_eq!(shown["iteration"], 3);
    let reason = "`command` changed nothing in 3 iterations";
    assert!(paused.both().contains(reason), "{}", paused.both());
}
