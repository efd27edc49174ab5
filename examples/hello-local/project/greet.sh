#!/bin/sh
# Greets somebody.
# usage: greet.sh [NAME]
echo "Hello"
