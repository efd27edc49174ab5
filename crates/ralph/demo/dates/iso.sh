#!/bin/sh
# Prints a date as an ISO date.
# usage: iso.sh DATE
printf '%s\n' "$1"
