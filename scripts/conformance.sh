#!/bin/sh
# Quick tests with real kubectl that start no VM, for any cluster where Selfsame is installed.
#
#   scripts/conformance.sh                   against a plane of their own
#   scripts/conformance.sh --kubeconfig K    against that cluster; they use a namespace of their own and remove it
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
      echo "conformance: Cannot read $2; expected a kubeconfig" >&2
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
