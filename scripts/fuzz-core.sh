#!/usr/bin/env bash
# Runs the parsers of directives and the walk of core/ on random inputs, each compared with what the specification
# says in other words.
#
# Usage: scripts/fuzz-core.sh [COUNT [FIRST]]
#
# COUNT    executions of each target (default: 1000000)
# FIRST    the number of the first one (default: 0); each number stands for one input, always the same
#
# An execution that fails is printed with its number. The targets are in core/tests/fuzz.rs.
set -euo pipefail

# shellcheck source=lib/all.sh
. "$(dirname "$0")/lib/all.sh"

[ "${1:-}" != --help ] || { print_help && exit; }

require_rust
export EXECUTIONS=${1:-1000000} EXECUTIONS_FROM=${2:-0}

cd "$ROOT"
cargo test --release --locked -p combined-upstreams-core --test fuzz
