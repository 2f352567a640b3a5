#!/bin/sh
# Types, lint, format, unit and scenario tests, in parallel, in under a minute. Prints only what fails.
#
#   scripts/check.sh          everything, as in CI and the pre-push hook
#   scripts/check.sh --fast   without tests, as in the pre-commit hook
set -eu

cd "$(dirname "$0")/.."
export PATH="$PWD/node_modules/.bin:$PATH"

fast=no
case ${1-} in
  '') ;;
  --fast) fast=yes ;;
  *)
    echo 'Usage: scripts/check.sh [--fast]' >&2
    exit 2
    ;;
esac

if [ ! -x node_modules/.bin/node ]; then
  echo 'check: the npm packages are missing; run scripts/setup.sh first' >&2
  exit 1
fi

output=$(mktemp -d)
trap 'rm -rf "$output"' EXIT

# begin NAME COMMAND...: runs the command in the background.
begin() {
  name=$1
  shift
  {
    status=0
    "$@" >"$output/$name" 2>&1 || status=$?
    echo "$status" >"$output/$name.status"
  } &
}

# Incremental: checks only what has changed since the last time.
begin types tsc --noEmit --incremental --tsBuildInfoFile .cache/types.tsbuildinfo
begin lint oxlint --type-aware --deny-warnings --format=unix
begin format oxfmt --check
names='types lint format'
if [ "$fast" = no ]; then
  begin tests scripts/run-tests.sh src bench guest scripts test/scenarios test/support test/tidy test/tidy.test.ts
  names="$names tests"
fi
wait

failed=0
for name in $names; do
  status=$(cat "$output/$name.status")
  # scripts/report.ts counts the tests.
  if [ "$status" = 0 ]; then
    summary=$(grep -E '^(skipped: |[0-9]+ passed)' "$output/$name" || true)
    echo "ok      $name${summary:+
$(echo "$summary" | sed 's/^/        /')}"
    counts='1 0 0'
  else
    failed=$((failed + 1))
    echo "FAILED  $name"
    sed 's/^/        /' "$output/$name"
    counts='0 1 0'
  fi
  [ -z "${COUNTS_FILE-}" ] || [ "$name" = tests ] || echo "$counts" >>"$COUNTS_FILE"
done
[ "$failed" = 0 ]
