#!/usr/bin/env bash
# Measures what the module costs, with an nginx built as for production.
#
# Usage: scripts/bench.sh [--nginx VERSION] [CASE...]
#
# CASE     one of:
#            instructions  a request: with a good first hop, with a failed one, with the module unused
#            hops          each of 1 to 200 failed hops
#            allocations   how often the module asks for memory
#            blacklist     a walk past 99 blacklisted upstreams
#            log           the module's variables in a log
#            load          requests a second and processor time, against error_page, HAProxy and Lua
#            body          the time to a good answer, after failed ones with bodies of 1 KB up to endless
#            memory        what a failed hop of a waiting request holds
#            scale         10,000 upstreams in 100 upstrands
#            startup       `nginx -t` of upstreams that are made of others, against all of them written out
# --nginx  a version of nginx-src/versions.toml (default: the one named there)
#
# Each figure is a line. Only ratios of one run are claims: two machines differ. Without a CASE all are run, and
# docs/performance.md and docs/performance.svg get their figures. Fails if a figure is not what it must be.
set -euo pipefail

# shellcheck source=lib/all.sh
. "$(dirname "$0")/lib/all.sh"
# shellcheck source=lib/bench-report.sh
. "$LIB/bench-report.sh"
# shellcheck source=lib/bench-servers.sh
. "$LIB/bench-servers.sh"
# shellcheck source=lib/bench-callgrind.sh
. "$LIB/bench-callgrind.sh"
# shellcheck source=lib/bench-tools.sh
. "$LIB/bench-tools.sh"
# shellcheck source=lib/bench-instructions.sh
. "$LIB/bench-instructions.sh"
# shellcheck source=lib/bench-hops.sh
. "$LIB/bench-hops.sh"
# shellcheck source=lib/bench-allocations.sh
. "$LIB/bench-allocations.sh"
# shellcheck source=lib/bench-blacklist.sh
. "$LIB/bench-blacklist.sh"
# shellcheck source=lib/bench-log.sh
. "$LIB/bench-log.sh"
# shellcheck source=lib/bench-load.sh
. "$LIB/bench-load.sh"
# shellcheck source=lib/bench-body.sh
. "$LIB/bench-body.sh"
# shellcheck source=lib/bench-memory.sh
. "$LIB/bench-memory.sh"
# shellcheck source=lib/bench-scale.sh
. "$LIB/bench-scale.sh"
# shellcheck source=lib/bench-startup.sh
. "$LIB/bench-startup.sh"

ALL_CASES=(instructions hops allocations blacklist log load body memory scale startup)

version=
cases=()

parse_arguments() {
    while [ $# -gt 0 ]; do
        case $1 in
            --help) print_help && exit ;;
            --nginx) version=${2:?--nginx needs a version} && shift ;;
            *) add_case "$1" ;;
        esac
        shift
    done

    version=${version:-$(pinned "" default)}
}

add_case() {
    [[ " ${ALL_CASES[*]} " == *" $1 "* ]] || die "unknown case or option $1 (see --help)"
    cases+=("$1")
}

# Sets BINARY, MODULE and MEASURE.
build() {
    local paths
    "$ROOT/scripts/setup.sh" bench
    paths=$("$ROOT/scripts/build.sh" --release-nginx "$version")
    BINARY=$(head -n 1 <<<"$paths")
    MODULE=$(tail -n 1 <<<"$paths")

    cargo build --quiet --locked -p combined-upstreams-tests --bin measure
    MEASURE=$TARGET/debug/measure
}

main() {
    local selected
    parse_arguments "$@"
    cd "$ROOT"
    build
    make_workdir
    reserve_ports
    start_backends

    selected=("${cases[@]:-${ALL_CASES[@]}}")
    for CASE in "${selected[@]}"; do
        "bench_$CASE"
    done

    [ "${#cases[@]}" -gt 0 ] || write_performance
    all_reached || die "not all figures are what they must be"
}

main "$@"
