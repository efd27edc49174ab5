#!/bin/sh
# Runs the named tests, or all of them.
# usage: tests/run.sh [NAME...]
cd "$(dirname "$0")/.." || exit 1
wanted=" $* "
failed=0

is_wanted() {
    case "$wanted" in
        "  " | *" $1 "*) return 0 ;;
        *) return 1 ;;
    esac
}

expect() { # name, argument, expected
    is_wanted "$1" || return 0
    actual=$(sh iso.sh $2 2>/dev/null)
    if [ "$actual" = "$3" ]; then
        echo "ok    $1: $2"
    else
        echo "FAIL  $1: $2 gives '$actual', not '$3'"
        failed=$((failed + 1))
    fi
}

expect german 31.12.2026 2026-12-31
expect german 1.2.2026 2026-02-01
expect american 12/31/2026 2026-12-31
expect american 2/1/2026 2026-02-01

[ "$failed" -eq 0 ]
