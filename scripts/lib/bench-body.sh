# How long a client waits for a good answer after a failed one, whose body need not be read.
# shellcheck shell=bash disable=SC2154 # WORKDIR and the ports are set by bench.sh and bench-servers.sh

# What is compared takes turns of so many requests each.
BODY_TURNS=20
BODY_REQUESTS=20

bench_body() {
    local body turn bodies some less

    start_bodies
    bodies=$SERVER
    write_front_config body "location / { proxy_pass http://\$upstrand_body; }" "
upstream bodies { server 127.0.0.1:$SPARE_PORT; keepalive 64; }
upstrand body { upstream bodies; upstream good; order per_request; next_upstream_statuses 5xx; }"
    start_front body

    for body in 1k 1m 64m endless; do
        some=() less=()
        for ((turn = 0; turn < BODY_TURNS; turn++)); do
            some+=("$(first_byte "/$body")")
            less+=("$(first_byte /64k)")
        done
        paired_ratio "a good answer after a failed one with a body of $body, against 64k" "us to the first byte" "<= 1.2" \
            "${some[*]}" "${less[*]}"
    done
    stop_server "$SERVER"
    stop_server "$bodies"
}

# A server that answers 503 with files of these sizes. The endless one is chunked, and of a size that nobody reads; it
# takes no room. What nobody reads is not made, either: it would be made on the good server's processor.
start_bodies() {
    local body

    mkdir -p "$WORKDIR/bodies"
    for body in 1k 64k 1m 64m; do
        truncate -s "${body^^}" "$WORKDIR/bodies/$body"
    done
    truncate -s 8T "$WORKDIR/bodies/endless"

    start_backend bodies "$SPARE_PORT" "
root $WORKDIR/bodies;
sendfile on;
location / { error_page 503 /body\$uri; return 503; }
location /body/ { internal; alias $WORKDIR/bodies/; }
location = /body/endless { internal; alias $WORKDIR/bodies/endless; ssi on; ssi_types *; }" sndbuf=16k
}

# Prints the median of the times to the first byte.
first_byte() {
    local times

    times=$(taskset -c "$(front_core)" curl --silent --output /dev/null --write-out '%{http_code} %{time_starttransfer}\n' \
        "http://127.0.0.1:$PORT_BASE$1?[1-$BODY_REQUESTS]" | awk '$1 == 200 { printf "%d\n", $2 * 1000000 }')
    mapfile -t times <<<"$times"

    [ "${#times[@]}" -eq "$BODY_REQUESTS" ] || die "$1: not all answers were good"
    median "${times[@]}" | cut -d ' ' -f 1
}
