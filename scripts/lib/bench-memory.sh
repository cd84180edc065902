# What the failed hops of a request hold, while it waits for its next upstream's answer.
# shellcheck shell=bash disable=SC2154 # WORKDIR and the ports are set by bench.sh and bench-servers.sh

# To each port, whose requests take their memory in pools of another size.
MEMORY_REQUESTS_EACH=32
MEMORY_REQUESTS=$((MEMORY_REQUESTS_EACH * FRONT_PORTS))
MEMORY_HOPS=(0 4 16)

bench_memory() {
    local hops none used

    prepare_bench_tools
    write_front_config memory "$(memory_locations)" "$(memory_upstrands)"

    for hops in "${MEMORY_HOPS[@]}"; do
        used=$(memory_of_waiting "/hops-$hops")
        none=${none:-$used}
        [ "$hops" -eq 0 ] ||
            value "held by each of $hops failed hops of a waiting request" bytes "<= 4096" \
                $(((used - none) * 1024 / MEMORY_REQUESTS / hops))
    done
}

memory_upstrands() {
    local hops i

    echo "upstream waiting { server 127.0.0.1:$SPARE_PORT; }"
    for ((i = 1; i <= MEMORY_HOPS[-1]; i++)); do
        echo "upstream bad$i { server 127.0.0.1:$BAD_PORT; keepalive 64; }"
    done

    for hops in "${MEMORY_HOPS[@]}"; do
        echo "upstrand hops_$hops {"
        for ((i = 1; i <= hops; i++)); do
            echo "upstream bad$i;"
        done
        echo "upstream waiting; order per_request; next_upstream_statuses 5xx; }"
    done
}

memory_locations() {
    local hops

    for hops in "${MEMORY_HOPS[@]}"; do
        echo "location = /hops-$hops { proxy_pass http://\$upstrand_hops_$hops; }"
    done
}

# Prints the kilobytes of a new nginx all of whose requests have come to the upstream that does not answer.
memory_of_waiting() {
    local waiting loads=() front i

    : >"$WORKDIR/nobody"
    start_backend waiting "$SPARE_PORT" "
location / { auth_basic x; auth_basic_user_file $WORKDIR/nobody; auth_delay 1h; }
location = /status { stub_status; }"
    waiting=$SERVER
    start_front memory
    front=$SERVER
    for ((i = 0; i < FRONT_PORTS; i++)); do
        with_tools wrk -t 1 -c "$MEMORY_REQUESTS_EACH" -d 1h "http://127.0.0.1:$((PORT_BASE + i))$1" >/dev/null &
        loads+=($!)
        on_exit "kill $! 2>/dev/null"
    done

    until waiting_requests; do
        kill -0 "${loads[@]}" "$front" || die "$1: the requests have ended"
    done
    awk '/^VmRSS:/ { print $2 }' "/proc/$front/status"

    kill "${loads[@]}"
    wait "${loads[@]}" 2>/dev/null || true
    stop_server "$front"
    stop_server "$waiting"
}

# The server counts the request for its status, too.
waiting_requests() {
    curl --silent "http://127.0.0.1:$SPARE_PORT/status" | grep -q "Writing: $((MEMORY_REQUESTS + 1)) "
}
