#!/bin/sh
# Converts numbers to another unit and back, one per second.
# usage: tests/round_trips.sh FROM TO
cd "$(dirname "$0")/.." || exit 1
for number in 1 2 3 5 8 13 21 34 55 89; do
    there=$(sh convert.sh "$1" "$2" "$number") || exit 1
    back=$(sh convert.sh "$2" "$1" "$there") || exit 1
    echo "$number $1 = $there $2 = $back $1"
    sleep 1
done
