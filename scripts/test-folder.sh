#!/bin/sh
# Runs the tests of one folder of test/, and prints what they say in one piece when they are over: scripts/test.sh runs
# two folders at a time. Counts go to a file of their own below COUNTS_DIR.
#
#   COUNTS_DIR=DIR scripts/test-folder.sh test/FOLDER
set -eu

cd "$(dirname "$0")/.."
folder=$1
[ -n "$(find "$folder" -name '*.test.ts' | head -n 1)" ] || exit 0

# Files that have a plane of their own, or real guests, which wait more than they work: one for each core.
case $folder in
  test/crash | test/e2e | test/https | test/planes | test/transcripts) how= ;;
  *) how=--one-by-one ;;
esac

COUNTS_FILE=$COUNTS_DIR/$(basename "$folder").counts
export COUNTS_FILE
output=$COUNTS_DIR/$(basename "$folder").output
: >"$COUNTS_FILE"
echo ".. $folder begins"
status=0
# shellcheck disable=SC2086 # No word where there is none.
TEST_TIMEOUT_MS=${TEST_TIMEOUT_MS:-600000} scripts/run-tests.sh $how "$folder" >"$output" 2>&1 || status=$?
# One that fails without counting a failure has crashed.
if [ "$status" != 0 ] && [ "$(awk '{ sum += $2 } END { print sum + 0 }' "$COUNTS_FILE")" = 0 ]; then
  echo "$folder: ended with status $status before it could count" >>"$output"
  echo '0 1 0' >>"$COUNTS_FILE"
fi
# In one write, as far as that is possible: another folder may end at the same moment.
printf '== %s\n%s\n' "$folder" "$(cat "$output")"
