#!/bin/sh
# Runs a command with each secret (a file named as its variable) in its environment.
set -eu
for file in "${SECRETS_DIR:-/run/secrets}"/*; do
  [ -f "$file" ] && [ -s "$file" ] || continue
  export "${file##*/}=$(cat "$file")"
done
exec "$@"
