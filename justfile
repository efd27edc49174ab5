# The commands of daily work; `just` alone lists them. `pip install rust-just` installs it if your system has no package.

set shell := ["bash", "-euo", "pipefail", "-c"]

# List the recipes
[private]
default:
    @just --list --unsorted

# Run everything CI runs, the quickest to fail first
check:
    scripts/test

# Run what needs no Docker Engine, no agent and no network: formatting, words, unit tests
quick:
    scripts/test --quick

# Format the code
fmt:
    cargo fmt --all

# Check formatting and lints; a warning is an error
lint:
    scripts/test fmt clippy

# Run all tests, with the examples in the documentation
test:
    scripts/test test doctest

# Run the tests of ralph-core, which take seconds
test-core *arguments:
    cargo test -p ralph-core --lib --locked -- {{ arguments }}

# Print the rates of detected circling and of false positives
circling:
    cargo test -p ralph-core --lib --locked -- gutter::corpus gutter::pairs --nocapture --test-threads 1

# Not with nextest: snapshots in one file are rewritten in turn only by tests of one process.
# Rewrite the expected output of snapshot tests and show what changed
snap *arguments:
    SNAPSHOTS=overwrite cargo test --workspace --tests --no-fail-fast --locked -- {{ arguments }}
    git --no-pager diff --stat

# Build the documentation of the code; a broken link is an error
docs:
    scripts/test doc

# Check licences, banned crates and sources of the dependencies
deny:
    scripts/test deny

# Serve the dashboard with hot reload, for the running `ralph serve` at this address
web server="http://127.0.0.1:8000":
    [ -d web/node_modules ] || (cd web && npm ci --no-audit --no-fund --ignore-scripts)
    @echo "Open the login link of the server with the port 5173: http://127.0.0.1:5173/login?code=…"
    cd web && RALPH_DEV_SERVER={{ server }} node_modules/.bin/vite --host 127.0.0.1

# Take the pictures of the dashboard for the README
screenshots:
    scripts/screenshots

# Run the offline demo: small tasks, scripted models, no account, and the dashboard
demo:
    cargo run -p ralph -- demo

# Measure the overhead of an iteration, and the parts of the core that could become slow
bench:
    bench/iteration
    bench/core
