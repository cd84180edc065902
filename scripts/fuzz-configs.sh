#!/usr/bin/env bash
# Runs `nginx -t` of a build with AddressSanitizer on random configurations of upstreams with the module's
# directives, and on those of tests/corpus/configs. Each has to be taken, or refused with one line.
#
# Usage: scripts/fuzz-configs.sh [COUNT [FIRST]]
#
# COUNT    how many (default: 20000)
# FIRST    the number of the first one (default: 0); each number stands for one configuration, always the same
#
# One that is trouble is printed with its number. Once it is understood, it goes to tests/corpus/configs, with
# what is expected of it in its first line. The grammar is tests/tests/configs/grammar.rs.
set -euo pipefail

# shellcheck source=lib/all.sh
. "$(dirname "$0")/lib/all.sh"
# shellcheck source=lib/asan.sh
. "$LIB/asan.sh"

[ "${1:-}" != --help ] || { print_help && exit; }

"$ROOT/scripts/setup.sh" test
use_asan_build
export CONFIGS=${1:-20000} CONFIGS_FROM=${2:-0}

cd "$ROOT"
cargo test --locked -p combined-upstreams-tests -- --nocapture configs::
