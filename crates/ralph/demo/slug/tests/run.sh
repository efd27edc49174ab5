#!/bin/sh
# Runs the named tests, or all of them.
# usage: tests/run.sh [NAME...]
cd "$(dirname "$0")/.." || exit 1
wanted=" $* "
passed=0
failed=0

is_wanted() {
    case "$wanted" in
        "  " | *" $1 "*) return 0 ;;
        *) return 1 ;;
    esac
}

check() { # name, input, actual, expected
    if [ "$3" = "$4" ]; then
        passed=$((passed + 1))
        echo "ok    $1: $2"
    else
        failed=$((failed + 1))
        echo "FAIL  $1: $2 gives '$3', not '$4'"
    fi
}

expect() { # name, title, slug
    is_wanted "$1" || return 0
    check "$1" "'$2'" "$(sh slug.sh "$2")" "$3"
}

expect lowercase "Hello" "hello"
expect lowercase "ABC" "abc"
expect dashes "one two" "one-two"
expect dashes "one   two three" "one-two-three"
expect punctuation "What's new?" "whats-new"
expect punctuation "(a) b, c." "a-b-c"
if is_wanted usage; then
    sh slug.sh >/dev/null 2>&1
    check usage "no title" "exit $?" "exit 2"
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
