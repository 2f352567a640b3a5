#!/bin/sh
# Runs the test files below the given files and folders; those that do not exist are no tests.
#
#   scripts/run-tests.sh [--isolated] PATH...
#
# All files share one process unless --isolated: 60 files then start in a fraction of the time (facts: 0.7 s of CPU).
# Isolated is for tests that kill, load or measure processes and must not disturb each other.
set -eu

cd "$(dirname "$0")/.."
# Longer than any single test may take; a test that hangs fails by name instead of blocking the run.
TEST_TIMEOUT_MS=${TEST_TIMEOUT_MS:-60000}

isolation=none
if [ "${1-}" = --isolated ]; then
  isolation=process
  shift
fi

files=$(for path in "$@"; do [ ! -e "$path" ] || find "$path" -name '*.test.ts' -type f; done | sort)
[ -n "$files" ] || exit 0

export NODE_COMPILE_CACHE="$PWD/.cache/node-compile"
# Inherited from an outer node:test it would make this run report in that one's binary format.
unset NODE_TEST_CONTEXT
# shellcheck disable=SC2086 # Our file names have no spaces.
exec node_modules/.bin/node --disable-warning=ExperimentalWarning --test \
  --test-isolation=$isolation --test-timeout="$TEST_TIMEOUT_MS" --test-concurrency=1 \
  --test-reporter=./scripts/report.ts --test-reporter-destination=stdout $files
