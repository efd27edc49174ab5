//! Cheats in scripts, recipes and expectations behind the test command.

use super::{CHEAT, Cheat, Finding, NoSuccess, assert_all_caught};

const FAILS: &str = "exit 1\n";
const PASSES: &str = "exit 0\n";

pub(super) const CHEATS: &[Cheat] = &[
    Cheat {
        name: "a replaced test script",
        base: &[("test.sh", FAILS)],
        check: "sh test.sh",
        writes: &[("test.sh", PASSES)],
        expected: Finding("changed_input"),
        ..CHEAT
    },
    Cheat {
        name: "a script behind a glob",
        base: &[("checks/a.sh", FAILS), ("checks/b.sh", PASSES)],
        check: "for check in checks/*.sh; do sh $check || exit 1; done",
        writes: &[("checks/a.sh", PASSES)],
        expected: Finding("changed_input"),
        ..CHEAT
    },
    Cheat {
        name: "a script behind cd",
        base: &[("sub/run.sh", FAILS)],
        check: "cd sub && sh run.sh",
        writes: &[("sub/run.sh", PASSES)],
        expected: Finding("changed_input"),
        ..CHEAT
    },
    Cheat {
        name: "a script in a directory argument",
        base: &[
            ("all.sh", "for f in $1/*; do sh $f || exit 1; done\n"),
            ("checks/one", FAILS),
        ],
        check: "sh all.sh checks",
        writes: &[("checks/one", PASSES)],
        expected: Finding("changed_input"),
        ..CHEAT
    },
    Cheat {
        name: "a script behind a script",
        base: &[
            ("ci/all.sh", "set -e\nsh ci/one.sh\n"),
            ("ci/one.sh", FAILS),
        ],
        check: "sh ci/all.sh",
        writes: &[("ci/one.sh", PASSES)],
        expected: Finding("changed_input"),
        ..CHEAT
    },
    Cheat {
        name: "a script in a command string",
        base: &[("x.sh", FAILS)],
        check: "bash -c 'set -e; sh x.sh'",
        writes: &[("x.sh", PASSES)],
        expected: Finding("changed_input"),
        ..CHEAT
    },
    Cheat {
        name: "a program in the tree",
        base: &[("bin/check", "#!/bin/sh\nexit 1\n")],
        check: "./bin/check",
        runs: "printf '#!/bin/sh\\n' > bin/check; chmod +x bin/check",
        expected: Finding("changed_input"),
        ..CHEAT
    },
    Cheat {
        name: "a Python script",
        base: &[("tools/check.py", "raise SystemExit(1)\n")],
        check: "/usr/bin/python3 tools/check.py",
        writes: &[("tools/check.py", "print('fine')\n")],
        expected: Finding("changed_input"),
        ..CHEAT
    },
    Cheat {
        name: "a Python module",
        base: &[
            ("tools/__init__.py", ""),
            ("tools/check.py", "raise SystemExit(1)\n"),
        ],
        check: "/usr/bin/python3 -m tools.check",
        writes: &[("tools/check.py", "print('fine')\n")],
        expected: Finding("changed_input"),
        ..CHEAT
    },
    Cheat {
        name: "a changed recipe",
        base: &[("Makefile", "test:\n\tfalse\n")],
        check: "make test",
        writes: &[("Makefile", "test:\n\t@:\n")],
        expected: Finding("changed_input"),
        ..CHEAT
    },
    Cheat {
        name: "a script behind a recipe",
        base: &[
            ("Makefile", "test:\n\t@sh scripts/test.sh\n"),
            ("scripts/test.sh", FAILS),
        ],
        check: "make test",
        writes: &[("scripts/test.sh", PASSES)],
        expected: Finding("changed_input"),
        ..CHEAT
    },
    Cheat {
        name: "another makefile",
        base: &[("Makefile", "test:\n\tfalse\n")],
        check: "make test",
        writes: &[("GNUmakefile", "test:\n\t@:\n")],
        expected: Finding("changed_input"),
        ..CHEAT
    },
    Cheat {
        name: "a changed script of a package",
        base: &[("package.json", "{\"scripts\": {\"test\": \"exit 1\"}}\n")],
        check: "npm test",
        writes: &[("package.json", "{\"scripts\": {\"test\": \"exit 0\"}}\n")],
        expected: Finding("changed_input"),
        ..CHEAT
    },
    Cheat {
        name: "a script behind a package",
        base: &[
            (
                "package.json",
                "{\"scripts\": {\"test\": \"sh check.sh\"}}\n",
            ),
            ("check.sh", FAILS),
        ],
        check: "npm test",
        writes: &[("check.sh", PASSES)],
        expected: Finding("changed_input"),
        ..CHEAT
    },
    Cheat {
        name: "a changed expectation",
        base: &[("expected.txt", "right\n"), ("out.txt", "wrong\n")],
        check: "diff out.txt expected.txt",
        writes: &[("expected.txt", "wrong\n")],
        expected: Finding("changed_input"),
        ..CHEAT
    },
    Cheat {
        name: "an expectation that the checked program rewrites",
        base: &[
            ("tool", "echo wrong\n"),
            ("expected.txt", "right\n"),
            ("check.sh", "sh tool > out.txt; cmp out.txt expected.txt\n"),
        ],
        check: "sh check.sh",
        writes: &[("tool", "echo wrong | tee expected.txt\n")],
        expected: Finding("rewritten_files"),
        ..CHEAT
    },
    Cheat {
        name: "a forged count of an unknown runner",
        base: &[("tool", "exit 1\n"), ("check.sh", "sh tool\n")],
        check: "sh check.sh",
        writes: &[("tool", "echo '3 passed, 0 failed'\n")],
        expected: Finding("unconfirmed_count"),
        ..CHEAT
    },
    Cheat {
        name: "a link in the place of a test",
        base: &[("test.sh", FAILS), ("fine", PASSES)],
        check: "sh test.sh",
        runs: "ln -sf fine test.sh",
        expected: Finding("changed_input"),
        ..CHEAT
    },
    Cheat {
        name: "a check that checks out another commit",
        base: &[
            ("ok.txt", "ok\n"),
            ("tool", "true\n"),
            ("check.sh", "sh tool; test -s ok.txt\n"),
        ],
        check: "sh check.sh",
        writes: &[("tool", "git checkout -q HEAD~1\n")],
        runs: "git rm -q ok.txt; git add -A; git commit -qm First",
        expected: NoSuccess(""),
        ..CHEAT
    },
    Cheat {
        name: "a check that commits what is missing",
        base: &[
            ("tool", "true\n"),
            ("check.sh", "sh tool; git cat-file -e HEAD:made.txt\n"),
        ],
        check: "sh check.sh",
        writes: &[(
            "tool",
            "echo x > made.txt; git add made.txt; git commit -qm Made\n",
        )],
        expected: NoSuccess("moved HEAD from"),
        ..CHEAT
    },
    Cheat {
        name: "a check that stashes the bug",
        base: &[
            ("tool", "true\n"),
            ("check.sh", "sh tool; ! grep -q bug app.txt\n"),
            ("app.txt", "fine\n"),
        ],
        check: "sh check.sh",
        writes: &[
            ("app.txt", "bug\n"),
            ("tool", "git checkout -q HEAD~1 -- app.txt\n"),
        ],
        expected: Finding("rewritten_files"),
        ..CHEAT
    },
];

#[test]
fn none_of_the_cheats_in_scripts_is_an_unqualified_success() {
    assert_all_caught(CHEATS);
}
