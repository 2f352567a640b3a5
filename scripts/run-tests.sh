#!/bin/sh
# Runs the test files below the given files and directories. Ignores those that do not exist.
#
#   scripts/run-tests.sh [--one-by-one] PATH...
#
# Unit tests share two processes, scenarios a third one, and tests that mostly wait a fourth one. This needs far less
# CPU than one process per file (30 s instead of 69 s, measured with 248 files). Files with beforeEach or afterEach at
# the top level get their own process, because these hooks would run around the tests of all files in the process.
# --one-by-one is for tests that kill, load or measure processes and must not disturb each other.
set -eu

cd "$(dirname "$0")/.."
# More than any single test may take: a test that hangs fails by name instead of blocking the run.
TEST_TIMEOUT_MS=${TEST_TIMEOUT_MS:-60000}

concurrency=$(nproc)
if [ "${1-}" = --one-by-one ]; then
  concurrency=1
  shift
fi

files=$(for path in "$@"; do [ ! -e "$path" ] || find "$path" -name '*.test.ts' -type f; done | sort -u)
[ -n "$files" ] || exit 0

# Splits the files: those that can share a process, and the others.
unit='' scenarios='' waiting='' alone=''
for file in $files; do
  if grep -qE '^(beforeEach|afterEach)\(' "$file"; then
    alone="$alone $file"
  else
    case $file in
      src/engine/store/* | src/node/hypervisor/qemu/*) waiting="$waiting $file" ;; # Mostly for disks and processes.
      src/* | bench/* | guest/*) unit="$unit $file" ;;
      *) scenarios="$scenarios $file" ;;
    esac
  fi
done
# For a few files it makes no difference, and separate processes are safer.
if [ "$concurrency" = 1 ] || [ "$(echo "$files" | wc -w)" -lt 100 ]; then
  alone=$files unit='' scenarios='' waiting=''
fi

export NODE_COMPILE_CACHE="$PWD/.cache/node-compile"
# If inherited from an outer node:test, it would make this run report in the binary format of that run.
unset NODE_TEST_CONTEXT

# Far more than they take: a shared process that does not end must not block the run.
SHARED_LIMIT_S=600

# Tests run in a network namespace of their own with nothing but loopback: planes make bridges and rules there.
isolated() { "$@"; }
if [ "$(id -u)" = 0 ] && unshare --net true 2>/dev/null; then
  export SELFSAME_TEST_NETWORK=private
  isolated() { unshare --net sh -c 'ip link set dev lo up && exec "$@"' sh "$@"; }
fi

# run OPTION FILE...
run() {
  isolated timeout -k 10 "${limit:-0}" node_modules/.bin/node --disable-warning=ExperimentalWarning --test --test-timeout="$TEST_TIMEOUT_MS" \
    --test-reporter=./scripts/report.ts --test-reporter-destination=stdout "$@"
}

status=0
# shellcheck disable=SC2086 # Our file names have no spaces.
if [ -n "$unit$scenarios" ]; then
  limit=$SHARED_LIMIT_S
  # Without files, node would run all tests.
  units='' others=''
  # In two processes: the one that ends first leaves its core to the others.
  half() { echo "$unit" | tr ' ' '\n' | awk -v half="$1" 'NF && NR % 2 == half'; }
  [ -z "$unit" ] || { run --test-isolation=none $(half 0) & units=$!; run --test-isolation=none $(half 1) & others=$!; }
  {
    failed=0
    [ -z "$waiting" ] || run --test-isolation=none $waiting || failed=1
    [ -z "$alone" ] || run --test-concurrency="$concurrency" $alone || failed=1
    exit "$failed"
  } &
  waits=$!
  # The first test of a shared process waits for the hooks of all files.
  [ -z "$scenarios" ] || run --test-timeout=$((TEST_TIMEOUT_MS * 4)) --test-isolation=none $scenarios || status=1
  [ -z "$units" ] || wait "$units" || status=1
  [ -z "$others" ] || wait "$others" || status=1
  wait "$waits" || status=1
else
  run --test-concurrency="$concurrency" $alone || status=1
fi
exit "$status"
