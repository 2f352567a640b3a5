#!/bin/sh
# Everything that `npm test` proves: sets up, checks, then runs every other folder of test/ by itself.
#
#   scripts/test.sh          what CI runs
#   scripts/test.sh --full   also test/full/, and with SELFSAME_TEST_FULL=1 for tests that have a longer form
#
# The last line is `N passed, N failed` over all runs.
set -eu

cd "$(dirname "$0")/.."

full=no
case ${1-} in
  '') ;;
  --full)
    full=yes
    export SELFSAME_TEST_FULL=1
    ;;
  *)
    echo 'Usage: scripts/test.sh [--full]' >&2
    exit 2
    ;;
esac

scripts/setup.sh --for test

mkdir -p .cache
COUNTS_FILE=$(mktemp "$PWD/.cache/counts.XXXXXX")
export COUNTS_FILE
trap 'rm -f "$COUNTS_FILE"' EXIT

total() { awk -v column="$1" '{ sum += $column } END { print sum + 0 }' "$COUNTS_FILE"; }

# run NAME COMMAND...: a command that fails without counting a failure (it crashed) counts as one.
run() {
  echo "== $1"
  shift
  before=$(total 2)
  if ! "$@" && [ "$(total 2)" = "$before" ]; then echo '0 1 0' >>"$COUNTS_FILE"; fi
}

run check scripts/check.sh
for folder in test/*/; do
  folder=${folder%/}
  case $folder in
    test/scenarios | test/support | test/tidy) continue ;; # Part of the check, or no tests.
    test/full) [ "$full" = yes ] || continue ;;
  esac
  [ -n "$(find "$folder" -name '*.test.ts' | head -n 1)" ] || continue
  # Files that have a plane of their own, or real guests, which wait more than they work: one for each core.
  case $folder in
    test/crash | test/e2e | test/https | test/planes | test/transcripts) how= ;;
    *) how=--one-by-one ;;
  esac
  # shellcheck disable=SC2086 # No word where there is none.
  TEST_TIMEOUT_MS=${TEST_TIMEOUT_MS:-600000} run "$folder" scripts/run-tests.sh $how "$folder"
done

echo
skipped=$(total 3)
[ "$skipped" = 0 ] || echo "$skipped skipped, each with its reason above"
echo "$(total 1) passed, $(total 2) failed"
[ "$(total 2)" = 0 ]
