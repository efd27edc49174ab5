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
    actual=$(sh convert.sh $2 2>/dev/null)
    if [ "$actual" = "$3" ]; then
        echo "ok    $1: $2"
    else
        echo "FAIL  $1: $2 gives '$actual', not '$3'"
        failed=$((failed + 1))
    fi
}

expect km-mi "km mi 10" 6.21
expect mi-km "mi km 10" 16.09
expect m-ft "m ft 2" 6.56
expect ft-m "ft m 6" 1.83
expect kg-lb "kg lb 5" 11.02
expect lb-kg "lb kg 5" 2.27
expect c-f "c f 100" 212.00
expect f-c "f c 212" 100.00
expect l-gal "l gal 10" 2.64
expect gal-l "gal l 10" 37.85

[ "$failed" -eq 0 ]
