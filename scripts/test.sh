#!/bin/sh
# Runs everything of `npm test`: setup, check, and then every other folder of test/.
#
#   scripts/test.sh          as in CI
#   scripts/test.sh --full   also test/full/, and with SELFSAME_TEST_FULL=1 the longer forms of tests that have one
#
# Tests with real guests and planes mostly wait, so two folders run at the same time. Those that measure run before, one
# by one. The last line is `N passed, N failed` over all runs.
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
COUNTS_DIR=$(mktemp -d "$PWD/.cache/counts.XXXXXX")
export COUNTS_DIR
trap 'rm -rf "$COUNTS_DIR"' EXIT

total() { cat "$COUNTS_DIR"/*.counts | awk -v column="$1" '{ sum += $column } END { print sum + 0 }'; }

echo '== check'
: >"$COUNTS_DIR/check.counts"
if ! COUNTS_FILE=$COUNTS_DIR/check.counts scripts/check.sh && [ "$(total 2)" = 0 ]; then
  echo '0 1 0' >>"$COUNTS_DIR/check.counts"
fi

alone='test/fuzz test/load test/watch'
# The longest ones first.
together='test/e2e test/transcripts test/crash'
for folder in test/*/; do
  folder=${folder%/}
  case " $alone $together " in *" $folder "*) continue ;; esac
  case $folder in
    test/scenarios | test/support | test/tidy) ;; # Part of the check, or without tests.
    test/full) [ "$full" = no ] || alone="$alone $folder" ;;
    *) together="$together $folder" ;;
  esac
done

for folder in $alone; do scripts/test-folder.sh "$folder"; done
# shellcheck disable=SC2086 # Our folders have no spaces.
printf '%s\n' $together | xargs -n 1 -P 2 scripts/test-folder.sh

echo
skipped=$(total 3)
[ "$skipped" = 0 ] || echo "$skipped skipped, each with its reason above"
echo "$(total 1) passed, $(total 2) failed"
[ "$(total 2)" = 0 ]
