#!/usr/bin/env bash
# Sends requests through an upstrand of three backends that answer in mutated HTTP, with an nginx built with
# AddressSanitizer: each client has to get what it gets from the right one of them without an upstrand.
#
# Usage: scripts/fuzz-responses.sh [COUNT [FIRST]]
#
# COUNT    how many walks (default: 20000)
# FIRST    the number of the first one (default: 0); each number stands for one request and its three answers,
#          always the same
#
# One that is trouble is printed with its number. The answers are made in tests/tests/responses/mutation.rs.
set -euo pipefail

# shellcheck source=lib/all.sh
. "$(dirname "$0")/lib/all.sh"
# shellcheck source=lib/asan.sh
. "$LIB/asan.sh"

[ "${1:-}" != --help ] || { print_help && exit; }

"$ROOT/scripts/setup.sh" test
use_asan_build
export RESPONSES=${1:-20000} RESPONSES_FROM=${2:-0}

cd "$ROOT"
cargo test --locked -p combined-upstreams-tests --test faults -- responses:: --nocapture
