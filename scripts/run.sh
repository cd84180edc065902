#!/usr/bin/env bash
# Starts an example, from nothing: installs what is missing, builds nginx and the module, starts nginx with
# examples/NAME/nginx.conf in the foreground and tells which requests to try. Ctrl-C ends it.
#
# Usage: scripts/run.sh [--check] [--port PORT] [NAME]
#
# NAME         a folder of examples/ (default: quickstart)
# --port PORT  moves the example from 127.0.0.1:8010 (and its other servers from 8011 to 8029) to PORT and up
# --check      starts it on free ports, sends the requests, shows each with its answer, stops nginx, and fails
#              if one is not as it should be
#
# An example is nginx.conf, further processes (each node-*.conf beside it is an nginx of its own), requests.sh with
# the requests to try, and perhaps check.sh with what a single request cannot show.
#
# Everything is made under target/. nginx needs no root.
set -euo pipefail

# shellcheck source=lib/all.sh
. "$(dirname "$0")/lib/all.sh"

EXAMPLE_PORT=8010
EXAMPLE_PORTS=20

example=quickstart
port=$EXAMPLE_PORT
check=no
failures=0
declare -A nginx_of=()      # process ids

parse_arguments() {
    while [ $# -gt 0 ]; do
        case $1 in
            --check) check=yes ;;
            --port) port=${2:?--port needs a number} && shift ;;
            --help) print_help && exit ;;
            -*) die "unknown option $1 (see --help)" ;;
            *) example=$1 ;;
        esac
        shift
    done

    [ -f "$ROOT/examples/$example/nginx.conf" ] ||
        die "no example $example; there are: $(find "$ROOT/examples" -name nginx.conf -printf '%h\n' | xargs -n 1 basename | sort | xargs)"
}

# Sets BINARY and MODULE.
build() {
    local paths
    "$ROOT/scripts/setup.sh" build
    paths=$("$ROOT/scripts/build.sh")
    BINARY=$(tail -n 2 <<<"$paths" | head -n 1)
    MODULE=$(tail -n 1 <<<"$paths")
}

# Lays out nginx's prefix: the example's files with its ports moved, and the module.
lay_out() {
    rm -rf "$prefix"
    mkdir -p "$prefix/logs" "$prefix/modules"
    cp -R "$ROOT/examples/$example/." "$prefix"
    ln -s "$MODULE" "$prefix/modules/"

    find "$prefix" \( -name '*.conf' -o -name '*.inc' \) -print | while read -r file; do
        move_ports "$file"
    done
}

move_ports() {
    local offset script=

    for ((offset = 0; offset < EXAMPLE_PORTS; offset++)); do
        script+="s/127\.0\.0\.1:$((EXAMPLE_PORT + offset))\b/127.0.0.1:moved$((port + offset))/g;"
    done

    sed -i "$script s/:moved/:/g" "$1"
}

require_free_ports() {
    local listed used

    while read -r listed; do
        used=$((listed - EXAMPLE_PORT + port))

        if port_is_used "$used"; then
            die "port $used is in use; stop what listens there, or choose others: scripts/run.sh --port 9010"
        fi
    done < <(ports_of "$ROOT/examples/$example/"*.conf)
}

# Prints the ports that configurations listen on.
ports_of() {
    sed -n -E 's/^ *listen +127\.0\.0\.1:([0-9]+).*/\1/p' "$@"
}

run_in_foreground() {
    prefix=$TARGET/run/$example-$port
    lay_out

    say "nginx listens on 127.0.0.1:$port. Ctrl-C ends it. In another terminal:"
    each_request show_request
    say

    if compgen -G "$prefix/node-*.conf" >/dev/null; then
        start_all
        wait
    else
        exec "$BINARY" -p "$prefix" -c nginx.conf -g 'daemon off;'
    fi
}

run_check() {
    make_workdir
    prefix=$WORKDIR/prefix
    reserve_ports
    port=$PORT_BASE
    lay_out
    start_all
    each_request check_request

    if [ -f "$prefix/check.sh" ]; then
        # shellcheck source=/dev/null
        . "$prefix/check.sh"
    fi

    if cat "$prefix"/logs/*error.log | grep -E '\[(alert|emerg|crit)\]' >&2; then
        die "nginx logged errors"
    fi

    [ "$failures" -eq 0 ] || die "$failures results are not as they should be"
    say "all as it should be"
}

start_all() {
    local name

    for name in nginx $(find "$prefix" -name 'node-*.conf' -printf '%f\n' | sort); do
        start_nginx "${name%.conf}"
    done
}

# start_nginx NAME: that of NAME.conf; waits until it listens on all of its ports.
start_nginx() {
    local name=$1 listened pid

    "$BINARY" -p "$prefix" -c "$name.conf" -g 'daemon off;' >"$prefix/logs/$name.out" 2>"$prefix/logs/$name.err" &
    pid=$!
    nginx_of[$name]=$pid
    on_exit "kill -QUIT $pid 2>/dev/null && wait $pid"

    for listened in $(ports_of "$prefix/$name.conf"); do
        until port_is_used "$listened"; do
            if ! kill -0 "$pid" 2>/dev/null; then
                die "nginx did not start: $(head -n 1 "$prefix/logs/$name.err")"
            fi
            sleep 0.05
        done
    done
}

# stop_nginx NAME: at once, for check.sh.
stop_nginx() {
    kill -TERM "${nginx_of[$1]}"
    wait "${nginx_of[$1]}" || true
}

# expect WHAT COMMAND...: for check.sh, a command that succeeds if all is as it should be.
expect() {
    local what=$1
    shift

    if "$@"; then
        say "ok    $what"
    else
        say "FAIL  $what"
        failures=$((failures + 1))
    fi
}

# Calls a function for each line of the example's requests.sh.
each_request() {
    request_action=$1
    # shellcheck source=/dev/null
    . "$ROOT/examples/$example/requests.sh"
}

# request WHAT STATUS BODY PATH-PATTERN URI CURL-ARGUMENT...
request() {
    "$request_action" "$@"
}

show_request() {
    local what=$1 status=$2 body=$3 path=$4 uri=$5
    shift 5

    say
    say "    # $what: $status, \"$body\"${path:+, path $path}"
    say "    curl -i${*:+ $*} http://127.0.0.1:$port$uri"
}

check_request() {
    local what=$1 status=$2 body=$3 path=$4 uri=$5 got_status got_body got_path
    shift 5

    got_status=$(curl --silent --show-error --max-time 20 --output "$WORKDIR/body" --dump-header "$WORKDIR/headers" \
        --write-out '%{http_code}' "$@" "http://127.0.0.1:$port$uri") || true
    got_body=$(cat "$WORKDIR/body")
    got_path=$(tr -d '\r' <"$WORKDIR/headers" | sed -n 's/^X-Path: //ip')

    # shellcheck disable=SC2053
    if [ "$got_status" = "$status" ] && [ "$got_body" = "$body" ] && [[ $got_path == $path ]]; then
        say "ok    $uri ${*:+$* }-> $got_status \"$got_body\"${got_path:+ path $got_path} ($what)"
    else
        say "FAIL  $uri ${*:+$* }-> $got_status \"$got_body\"${got_path:+ path $got_path} ($what:" \
            "expected $status \"$body\"${path:+ path $path})"
        failures=$((failures + 1))
    fi
}

parse_arguments "$@"

if [ "$check" = yes ]; then
    build
    run_check
else
    require_free_ports
    build
    run_in_foreground
fi
