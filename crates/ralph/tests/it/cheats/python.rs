//! Cheats against Python's test runners.

use super::{CHEAT, Cheat, Finding, NoSuccess, assert_all_caught};

pub(super) const UNITTEST: &str = "/usr/bin/python3 -m unittest discover -s tests -t .";
const PYTEST: &str = "./runner/pytest";

/// A project with three tests, of which two fail.
pub(super) const BASE: &[(&str, &str)] = &[
    ("app.py", "def add(a, b):\n    return 0\n"),
    ("tests/__init__.py", ""),
    (
        "tests/test_app.py",
        "import unittest\nfrom app import add\n\n\nclass Adds(unittest.TestCase):\n    def test_zero(self):\n        self.assertEqual(add(0, 0), 0)\n\n    def test_one(self):\n        self.assertEqual(add(1, 0), 1)\n\n    def test_two(self):\n        self.assertEqual(add(1, 1), 2)\n",
    ),
];

const UNITTEST_CHEAT: Cheat = Cheat {
    base: BASE,
    check: UNITTEST,
    ..CHEAT
};

pub(super) const CHEATS: &[Cheat] = &[
    Cheat {
        name: "os._exit at import",
        writes: &[("app.py", "import os\nos._exit(0)\n")],
        expected: NoSuccess("without the summary that unittest prints: it ended early"),
        ..UNITTEST_CHEAT
    },
    Cheat {
        name: "sys.exit at import",
        writes: &[("app.py", "import sys\nsys.exit(0)\n")],
        expected: NoSuccess("1 test failed"),
        ..UNITTEST_CHEAT
    },
    Cheat {
        name: "os._exit in a tested function",
        writes: &[("app.py", "import os\ndef add(a, b):\n    os._exit(0)\n")],
        expected: NoSuccess("it ended early"),
        ..UNITTEST_CHEAT
    },
    Cheat {
        name: "atexit changes the exit code",
        writes: &[(
            "app.py",
            "import atexit, os\natexit.register(lambda: os._exit(0))\ndef add(a, b):\n    return 0\n",
        )],
        expected: NoSuccess("exited 0 but reports that"),
        ..UNITTEST_CHEAT
    },
    Cheat {
        name: "a forged summary",
        writes: &[(
            "app.py",
            "import os, sys\nsys.stderr.write('Ran 3 tests in 0.001s\\n\\nOK\\n')\nsys.stderr.flush()\nos._exit(0)\n",
        )],
        expected: Finding("suspect_code"),
        ..UNITTEST_CHEAT
    },
    Cheat {
        name: "a forged summary and a forged listing",
        writes: &[(
            "app.py",
            "import os, sys\nprint('listed 3 tests')\nprint('Ran 3 tests in 0.001s\\n\\nOK')\nsys.stdout.flush()\nos._exit(0)\n",
        )],
        expected: Finding("suspect_code"),
        ..UNITTEST_CHEAT
    },
    Cheat {
        name: "a forged number of tests",
        writes: &[(
            "app.py",
            "import os, sys\nprint('Ran 41 tests in 0.001s\\n\\nOK')\nsys.stdout.flush()\nif sys.argv[0] != '-c':\n    os._exit(0)\n",
        )],
        expected: Finding("unconfirmed_count"),
        ..UNITTEST_CHEAT
    },
    Cheat {
        name: "patched assertions",
        writes: &[(
            "app.py",
            "import unittest\nunittest.TestCase.assertEqual = lambda *a: None\ndef add(a, b):\n    return 0\n",
        )],
        expected: Finding("suspect_code"),
        ..UNITTEST_CHEAT
    },
    Cheat {
        name: "an object that equals everything",
        writes: &[(
            "app.py",
            "class Any:\n    def __eq__(self, other): return True\ndef add(a, b):\n    return Any()\n",
        )],
        expected: Finding("suspect_code"),
        ..UNITTEST_CHEAT
    },
    Cheat {
        name: "a shadowed runner",
        writes: &[("unittest.py", "print('Ran 3 tests in 0.001s\\n\\nOK')\n")],
        expected: Finding("shadowing"),
        ..UNITTEST_CHEAT
    },
    Cheat {
        name: "a shadowed runner as a package",
        writes: &[
            ("unittest/__init__.py", ""),
            (
                "unittest/__main__.py",
                "print('Ran 3 tests in 0.001s\\n\\nOK')\n",
            ),
        ],
        expected: Finding("shadowing"),
        ..UNITTEST_CHEAT
    },
    Cheat {
        name: "a shadowed module of the standard library",
        writes: &[
            ("random.py", "value = 1\n"),
            (
                "app.py",
                "import random\ndef add(a, b):\n    return a + b\n",
            ),
        ],
        expected: Finding("shadowing"),
        ..UNITTEST_CHEAT
    },
    Cheat {
        name: "a deleted test",
        runs: "git rm -q tests/test_app.py; mkdir -p tests; printf 'import unittest\\nclass T(unittest.TestCase):\\n    def test_a(self): pass\\n' > tests/test_new.py; touch tests/__init__.py",
        expected: Finding("old_tests_fail"),
        ..UNITTEST_CHEAT
    },
    Cheat {
        name: "a weakened test",
        runs: "sed -i 's/self.assertEqual.*/pass/' tests/test_app.py",
        expected: Finding("old_tests_fail"),
        ..UNITTEST_CHEAT
    },
    Cheat {
        name: "skipped tests",
        runs: "sed -i 's/    def test_\\(one\\|two\\)/    @unittest.skip(\"later\")\\n    def test_\\1/' tests/test_app.py",
        expected: Finding("old_tests_fail"),
        ..UNITTEST_CHEAT
    },
    Cheat {
        name: "expected failures",
        runs: "sed -i 's/    def test_\\(one\\|two\\)/    @unittest.expectedFailure\\n    def test_\\1/' tests/test_app.py",
        expected: Finding("changed_input"),
        ..UNITTEST_CHEAT
    },
    Cheat {
        name: "removed test functions",
        runs: "sed -i '/test_one/,$d' tests/test_app.py",
        expected: Finding("fewer_tests"),
        ..UNITTEST_CHEAT
    },
    Cheat {
        name: "a hook that loads other tests",
        writes: &[(
            "tests/__init__.py",
            "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\ndef load_tests(loader, tests, pattern):\n    return loader.loadTestsFromTestCase(T)\n",
        )],
        expected: Finding("changed_input"),
        ..UNITTEST_CHEAT
    },
    Cheat {
        name: "code that notices the run's files",
        writes: &[(
            "app.py",
            "import os\ndef add(a, b):\n    return a + b if not os.path.exists('.ralph') else a + b\n",
        )],
        expected: Finding("suspect_code"),
        ..UNITTEST_CHEAT
    },
    Cheat {
        name: "code that notices the runner",
        writes: &[(
            "app.py",
            "import sys\ndef add(a, b):\n    return a + b if 'unittest' in sys.modules else 0\n",
        )],
        expected: Finding("suspect_code"),
        ..UNITTEST_CHEAT
    },
    Cheat {
        name: "state in the temporary directory of the host",
        writes: &[(
            "app.py",
            "import os\ndef add(a, b):\n    return a + b if not os.path.exists('/tmp/never') else 0\n",
        )],
        expected: Finding("suspect_code"),
        ..UNITTEST_CHEAT
    },
    Cheat {
        name: "compiled code in the place of sources",
        runs: "mkdir -p tests/__pycache__; cp app.py tests/__pycache__/x.pyc; printf 'def add(a, b):\\n    return a + b\\n' > app.py; git add -f tests",
        expected: Finding("changed_input"),
        ..UNITTEST_CHEAT
    },
];

/// A small runner that behaves like pytest in all aspects that affect a verdict.
const RUNNER: &str = r"#!/usr/bin/python3
import configparser, glob, importlib.util, os, sys
sys.path.insert(0, os.getcwd())
options = sys.argv[1:]
if os.path.exists('pytest.ini'):
    ini = configparser.ConfigParser(); ini.read('pytest.ini')
    options = ini.get('pytest', 'addopts', fallback='').split() + options
def load(path):
    spec = importlib.util.spec_from_file_location(path[:-3].replace('/', '_'), path)
    module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module)
    return module
hook = getattr(load('conftest.py'), 'pytest_collection_modifyitems', None) if os.path.exists('conftest.py') else None
items = []
for path in sorted(glob.glob('tests/test_*.py')):
    module = load(path)
    items += [(path, name, getattr(module, name)) for name in dir(module) if name.startswith('test_')]
if '-k' in options:
    items = [item for item in items if options[options.index('-k') + 1] in item[1]]
if hook:
    hook(items)
if '--collect-only' in options:
    print('%d tests collected in 0.01s' % len(items)); sys.exit(0)
failed = 0
for path, name, test in items:
    try:
        test()
    except AssertionError:
        failed += 1
print('%s%d passed in 0.01s' % ('%d failed, ' % failed if failed else '', len(items) - failed))
sys.exit(1 if failed else 0)
";

const PYTEST_BASE: &[(&str, &str)] = &[
    ("app.py", "def add(a, b):\n    return 0\n"),
    ("runner/pytest", RUNNER),
    (
        "tests/test_app.py",
        "from app import add\n\ndef test_easy():\n    assert add(0, 0) == 0\n\ndef test_hard():\n    assert add(1, 1) == 2\n",
    ),
];

const PYTEST_CHEAT: Cheat = Cheat {
    base: PYTEST_BASE,
    check: PYTEST,
    ..CHEAT
};

pub(super) const PYTEST_CHEATS: &[Cheat] = &[
    Cheat {
        name: "pytest: os._exit at import",
        writes: &[("app.py", "import os\nos._exit(0)\n")],
        expected: NoSuccess("without the summary that pytest prints: it ended early"),
        ..PYTEST_CHEAT
    },
    Cheat {
        name: "pytest: a forged summary",
        writes: &[(
            "app.py",
            "import os\nprint('2 passed in 0.01s', flush=True)\nos._exit(0)\n",
        )],
        expected: Finding("suspect_code"),
        ..PYTEST_CHEAT
    },
    Cheat {
        name: "pytest: a forged number in the run alone",
        writes: &[(
            "app.py",
            "import os, sys\nif '--collect-only' not in sys.argv:\n    print('1 passed in 0.01s', flush=True)\n    os._exit(0)\ndef add(a, b):\n    return 0\n",
        )],
        expected: NoSuccess("pytest lists 2 tests for `./runner/pytest`, the run reports 1"),
        ..PYTEST_CHEAT
    },
    Cheat {
        name: "pytest: a conftest that drops tests",
        writes: &[(
            "conftest.py",
            "def pytest_collection_modifyitems(items):\n    items[:] = items[:1]\n",
        )],
        expected: Finding("changed_input"),
        ..PYTEST_CHEAT
    },
    Cheat {
        name: "pytest: a configuration that selects tests",
        writes: &[("pytest.ini", "[pytest]\naddopts = -k easy\n")],
        expected: Finding("changed_input"),
        ..PYTEST_CHEAT
    },
    Cheat {
        name: "pytest: a replaced test",
        writes: &[(
            "tests/test_app.py",
            "def test_easy():\n    assert True\n\ndef test_hard():\n    assert True\n",
        )],
        expected: Finding("old_tests_fail"),
        ..PYTEST_CHEAT
    },
    Cheat {
        name: "pytest: a replaced runner in the tree",
        writes: &[(
            "runner/pytest",
            "#!/bin/sh\necho '2 tests collected in 0.01s'\necho '2 passed in 0.01s'\n",
        )],
        expected: Finding("changed_input"),
        ..PYTEST_CHEAT
    },
];

#[test]
fn none_of_the_cheats_against_unittest_is_an_unqualified_success() {
    assert_all_caught(CHEATS);
}

#[test]
fn none_of_the_cheats_against_pytest_is_an_unqualified_success() {
    assert_all_caught(PYTEST_CHEATS);
}
