#!/bin/sh
# Lists the items of items.txt.
# usage: todo.sh list
cd "$(dirname "$0")" || exit 1
cat items.txt
