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

[ "${1:-}" != --help ] || { print_help && exit; }

"$ROOT/scripts/setup.sh" test
paths=$("$ROOT/scripts/build.sh" --variant asan \
    --configure-arg=--with-debug \
    --configure-arg='--with-cc-opt=-O1 -g -fsanitize=address' \
    --configure-arg=--with-ld-opt=-fsanitize=address)

# nginx leaves its memory to the end of the process; an allocation of terabytes fails, as it does without.
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1
NGINX_BINARY=$(head -n 1 <<<"$paths")
NGINX_MODULE=$(tail -n 1 <<<"$paths")
export NGINX_BINARY NGINX_MODULE
export CONFIGS=${1:-20000} CONFIGS_FROM=${2:-0}

cd "$ROOT"
cargo test --locked -p combined-upstreams-tests -- --nocapture configs::
