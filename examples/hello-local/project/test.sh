#!/bin/sh
# Runs the named tests, or all of them.
# usage: test.sh [name|nobody]
passed=0
failed=0

expect() { # what was tried, what came out, what should have
    if [ "$2" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL  $1 gives '$2', not '$3'"
    fi
}

[ "$1" = nobody ] || expect "a name" "$(sh greet.sh Ada)" "Hello, Ada!"
[ "$1" = name ] || expect "no name" "$(sh greet.sh)" "Hello, world!"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
