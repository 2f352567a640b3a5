#!/bin/sh
# Runs the test files below the given files and folders; those that do not exist are no tests.
#
#   scripts/run-tests.sh [--one-by-one] PATH...
#
# Unit tests share one process: measured with 248 files, that takes 30 s of CPU instead of 69. Files with hooks at their top
# have a process each, because the hooks would run around the tests of every other file; so have scenarios, which
# would use one core only.
# --one-by-one is for tests that kill, load or measure processes and must not disturb each other.
set -eu

cd "$(dirname "$0")/.."
# Longer than any single test may take; a test that hangs fails by name instead of blocking the run.
TEST_TIMEOUT_MS=${TEST_TIMEOUT_MS:-60000}

concurrency=$(nproc)
if [ "${1-}" = --one-by-one ]; then
  concurrency=1
  shift
fi

files=$(for path in "$@"; do [ ! -e "$path" ] || find "$path" -name '*.test.ts' -type f; done | sort -u)
[ -n "$files" ] || exit 0

# Splits them: unit tests that may share a process, and the others.
shared='' alone=''
for file in $files; do
  case $file in
    src/main.test.ts) alone="$alone $file" ;; # Measures nothing, but kills and waits.
    src/* | bench/* | guest/*)
      if grep -qE '^(before|after|beforeEach|afterEach)\(' "$file"; then alone="$alone $file"; else shared="$shared $file"; fi
      ;;
    *) alone="$alone $file" ;;
  esac
done
# For a few files it makes no difference, and each alone is the surer way.
if [ "$concurrency" = 1 ] || [ "$(echo "$shared" | wc -w)" -lt 20 ]; then
  alone=$files shared=''
fi

export NODE_COMPILE_CACHE="$PWD/.cache/node-compile"
# Inherited from an outer node:test it would make this run report in that one's binary format.
unset NODE_TEST_CONTEXT

# run OPTION FILE...
run() {
  node_modules/.bin/node --disable-warning=ExperimentalWarning --test --test-timeout="$TEST_TIMEOUT_MS" \
    --test-reporter=./scripts/report.ts --test-reporter-destination=stdout "$@"
}

status=0
# shellcheck disable=SC2086 # Our file names have no spaces.
{
  if [ -n "$shared" ]; then run --test-isolation=none $shared & fi
  [ -z "$alone" ] || run --test-concurrency="$concurrency" $alone || status=1
  if [ -n "$shared" ]; then wait $! || status=1; fi
}
exit "$status"
