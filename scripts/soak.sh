#!/usr/bin/env bash
# Soaks nginx: mixed traffic (HTTP/1.1, HTTP/2, POST, WebSocket, SSI, a cache) through three upstrands over six upstreams
# whose backends fail, hang, refuse and come back, while nginx is reloaded, its logs are reopened, a worker is killed
# now and then, and the binary is upgraded once.
#
# Usage: scripts/soak.sh [--nginx VERSION|stock] [MINUTES [REQUESTS]]
#
# MINUTES   how long (default: 1)
# REQUESTS  how many at least (default: 0)
# --nginx   a version of nginx-src/versions.toml (default: the one named there) or stock
#
# Each request has an id. Afterwards: none was lost while no worker was killed, none got what belongs to another, no
# POST was delivered twice, memory and descriptors are as before, workers that were told to leave have gone, and the
# error log has no alert. It prints what was done, and a line for each thing that is wrong.
set -euo pipefail

# shellcheck source=lib/all.sh
. "$(dirname "$0")/lib/all.sh"
# shellcheck source=lib/checks.sh
. "$LIB/checks.sh"
# shellcheck source=lib/run-folder.sh
. "$LIB/run-folder.sh"

version=
minutes=1
requests=0

parse_arguments() {
    while [ $# -gt 0 ]; do
        case $1 in
            --help) print_help && exit ;;
            --nginx) version=${2:?--nginx needs a version} && shift ;;
            -*) die "unknown option $1 (see --help)" ;;
            *) break ;;
        esac
        shift
    done

    minutes=${1:-$minutes}
    requests=${2:-$requests}
}

main() {
    parse_arguments "$@"
    cd "$ROOT"
    scripts/setup.sh test
    make_run_folder

    build_with_environment "${version:-$(pinned "" default)}" >"$RUN/build"
    load_environment "$RUN/build"
    run_soak $((minutes * 60)) "$requests"
}

main "$@"
