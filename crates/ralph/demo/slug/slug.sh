#!/bin/sh
# Turns a title into the name of a page.
# usage: slug.sh TITLE
printf '%s\n' "$1"
