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
    actual=$(sh todo.sh $2 2>/dev/null)
    if [ "$actual" = "$3" ]; then
        echo "ok    $1: $2"
    else
        echo "FAIL  $1: $2 gives '$actual', not '$3'"
        failed=$((failed + 1))
    fi
}

expect count "count" 2
expect json "list --json" '{"item": "water the plants"}
{"item": "read \"Walden\""}'

[ "$failed" -eq 0 ]
