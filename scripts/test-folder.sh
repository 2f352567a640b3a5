#!/bin/sh
# Runs the tests of one folder of test/ and prints their output when they have ended, because scripts/test.sh runs two
# folders at the same time. Writes the counts to a file in COUNTS_DIR.
#
#   COUNTS_DIR=DIR scripts/test-folder.sh test/FOLDER
set -eu

cd "$(dirname "$0")/.."
folder=$1
[ -n "$(find "$folder" -name '*.test.ts' | head -n 1)" ] || exit 0

# Files with their own plane or real guests mostly wait, so one runs per core.
case $folder in
  test/crash | test/e2e | test/https | test/planes | test/transcripts) how= ;;
  *) how=--one-by-one ;;
esac

COUNTS_FILE=$COUNTS_DIR/$(basename "$folder").counts
export COUNTS_FILE
output=$COUNTS_DIR/$(basename "$folder").output
: >"$COUNTS_FILE"
echo ".. $folder started"
status=0
# shellcheck disable=SC2086 # Must be no argument if it is empty.
TEST_TIMEOUT_MS=${TEST_TIMEOUT_MS:-600000} scripts/run-tests.sh $how "$folder" >"$output" 2>&1 || status=$?
# A run that fails without counting a failure has crashed.
if [ "$status" != 0 ] && [ "$(awk '{ sum += $2 } END { print sum + 0 }' "$COUNTS_FILE")" = 0 ]; then
  echo "$folder: exited with status $status before it could count" >>"$output"
  echo '0 1 0' >>"$COUNTS_FILE"
fi
# In one write as far as possible, because another folder may end at the same time.
printf '== %s\n%s\n' "$folder" "$(cat "$output")"
