#!/bin/sh
# Quick tests with real kubectl that start no VM, for any cluster on which Selfsame is installed.
#
#   scripts/conformance.sh                   on their own plane
#   scripts/conformance.sh --kubeconfig K    on that cluster, in a namespace that is removed afterwards
set -eu

usage() {
  echo 'Usage: scripts/conformance.sh [--kubeconfig FILE]' >&2
  exit 2
}

unset SELFSAME_CONFORMANCE_KUBECONFIG
case ${1-} in
  '') [ $# = 0 ] || usage ;;
  --kubeconfig)
    [ $# = 2 ] || usage
    [ -r "$2" ] || {
      echo "conformance: Cannot read $2; pass a readable kubeconfig" >&2
      exit 1
    }
    SELFSAME_CONFORMANCE_KUBECONFIG=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
    export SELFSAME_CONFORMANCE_KUBECONFIG
    ;;
  *) usage ;;
esac

cd "$(dirname "$0")/.."
scripts/setup.sh --for test
TEST_TIMEOUT_MS=${TEST_TIMEOUT_MS:-120000} exec scripts/run-tests.sh --one-by-one test/conformance
