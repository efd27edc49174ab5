//! Cheats against `node --test`.

use super::{CHEAT, Cheat, Finding, NoSuccess, assert_all_caught};

const BASE: &[(&str, &str)] = &[
    ("add.js", "exports.add = () => 0\n"),
    (
        "add.test.js",
        "const test = require('node:test')\nconst assert = require('node:assert')\nconst { add } = require('./add.js')\ntest('zero', () => assert.strictEqual(add(0, 0), 0))\ntest('two', () => assert.strictEqual(add(1, 1), 2))\n",
    ),
];

const NODE_CHEAT: Cheat = Cheat {
    base: BASE,
    check: "node --test",
    ..CHEAT
};

pub(super) const CHEATS: &[Cheat] = &[
    Cheat {
        name: "process.exit at import",
        writes: &[("add.js", "process.exit(0)\n")],
        expected: Finding("fewer_tests"),
        ..NODE_CHEAT
    },
    Cheat {
        name: "an exit handler that changes the exit code",
        writes: &[(
            "add.js",
            "process.on('exit', () => { process.exitCode = 0 })\nexports.add = () => 0\n",
        )],
        expected: NoSuccess("tests failed"),
        ..NODE_CHEAT
    },
    Cheat {
        name: "patched assertions of node",
        writes: &[(
            "add.js",
            "require('node:assert').strictEqual = () => {}\nexports.add = () => 0\n",
        )],
        expected: Finding("suspect_code"),
        ..NODE_CHEAT
    },
    Cheat {
        name: "a committed package",
        writes: &[
            ("node_modules/x/index.js", "module.exports = 1\n"),
            ("add.js", "exports.add = (a, b) => a + b\n"),
        ],
        runs: "git add -f node_modules",
        expected: Finding("shadowing"),
        ..NODE_CHEAT
    },
    Cheat {
        name: "a test that is skipped in node",
        runs: "sed -i \"s/test('two'/test.skip('two'/\" add.test.js",
        expected: Finding("old_tests_fail"),
        ..NODE_CHEAT
    },
    Cheat {
        name: "a removed test of node",
        runs: "sed -i \"/'two'/d\" add.test.js",
        expected: Finding("fewer_tests"),
        ..NODE_CHEAT
    },
    Cheat {
        name: "code that notices node's runner",
        writes: &[(
            "add.js",
            "exports.add = (a, b) => process.env.NODE_TEST_CONTEXT ? a + b : 0\n",
        )],
        expected: Finding("suspect_code"),
        ..NODE_CHEAT
    },
];

#[test]
fn none_of_the_cheats_against_node_is_an_unqualified_success() {
    assert_all_caught(CHEATS);
}
