#!/bin/sh
# Converts a number from one unit to another.
# usage: convert.sh FROM TO NUMBER
case "$1 $2" in
    *) echo "convert.sh: cannot convert $1 to $2" >&2; exit 2 ;;
esac
awk -v x="$3" "BEGIN { printf \"%.2f\\n\", $formula }"
