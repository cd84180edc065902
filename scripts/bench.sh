#!/usr/bin/env bash
# Measures the module, with an nginx built as for production.
#
# Usage: scripts/bench.sh [--nginx VERSION] CASE...
#
# CASE     one of:
#            startup   the time and memory of `nginx -t` for many upstreams that are made of others, compared
#                      with the same upstreams written out by hand
#            instructions  what a request costs: with a good first hop, with failed ones, with the module unused
# --nginx  a version of nginx-src/versions.toml (default: the one named there)
#
# Each case prints a line for each of its measurements, and fails if one is over its limit.
set -euo pipefail

# shellcheck source=lib/all.sh
. "$(dirname "$0")/lib/all.sh"
# shellcheck source=lib/bench-startup.sh
. "$LIB/bench-startup.sh"
# shellcheck source=lib/bench-instructions.sh
. "$LIB/bench-instructions.sh"

version=
cases=()
OVER_LIMIT=0

parse_arguments() {
    while [ $# -gt 0 ]; do
        case $1 in
            --help) print_help && exit ;;
            --nginx) version=${2:?--nginx needs a version} && shift ;;
            startup | instructions) cases+=("$1") ;;
            *) die "unknown case or option $1 (see --help)" ;;
        esac
        shift
    done

    [ "${#cases[@]}" -gt 0 ] || die "no case given (see --help)"
    version=${version:-$(pinned "" default)}
}

# Sets BINARY, MODULE and MEASURE.
build() {
    local paths
    "$ROOT/scripts/setup.sh" build
    paths=$("$ROOT/scripts/build.sh" --release-nginx "$version")
    BINARY=$(head -n 1 <<<"$paths")
    MODULE=$(tail -n 1 <<<"$paths")

    cargo build --quiet --locked -p combined-upstreams-tests --bin measure
    MEASURE=$TARGET/debug/measure
}

# compare WHAT LIMIT "MS KB" "MS KB": the first against the second, which it may exceed LIMIT times.
compare() {
    local what=$1 limit=$2 result
    result=$(awk -v a="$3" -v b="$4" -v limit="$limit" 'BEGIN {
        split(a, ours); split(b, other)
        time = ours[1] / other[1]; memory = ours[2] / other[2]
        printf "time %.1f / %.1f ms = %.2f, memory %.1f / %.1f MB = %.2f %s", ours[1], other[1], time,
            ours[2] / 1024, other[2] / 1024, memory, (time <= limit && memory <= limit) ? "ok" : "OVER"
    }')
    printf '%s: %s (limit %s)\n' "$what" "$result" "$limit"

    if [ "${result##* }" = OVER ]; then
        OVER_LIMIT=1
    fi
}

main() {
    local case
    parse_arguments "$@"
    cd "$ROOT"
    build
    make_workdir

    for case in "${cases[@]}"; do
        "bench_$case"
    done

    [ "$OVER_LIMIT" -eq 0 ] || die "over a limit"
}

main "$@"
