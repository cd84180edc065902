# What a further failed hop costs, after few and after many: always the same, but for nginx's own search for an upstream
# by its name, which has a longer way to those that are declared later.
# shellcheck shell=bash disable=SC2154 # the ports are set by bench-servers.sh

HOPS=(1 4 8 16 64 200)
MOST_HOPS=200

bench_hops() {
    local k none own_none few search own

    write_front_config hops "$(hops_locations)" "$(hops_upstreams)"
    search=$((($(instructions hops /last) - $(instructions hops /first)) / (MOST_HOPS + 1)))
    none=$(instructions hops /hops-0)
    own_none=$(own_instructions)

    few=$(cost_of_hop 2)
    for k in "${HOPS[@]}"; do
        ratio "each of $k failed hops, against each of 2, nginx's search taken off" instructions "<= 1.10" \
            "$(cost_of_hop "$k")" "$few"
        own=$((($(own_instructions) - own_none) / k))
        value "of these, in the module's own functions" instructions - "$own"
    done

    value "nginx's search for an upstream, for each one declared before it" instructions - "$search"
}

# cost_of_hop K: on the way to each of the first k upstreams there are k / 2 others on the average.
cost_of_hop() {
    echo $((($(instructions hops "/hops-$1") - none) / $1 - search * $1 / 2))
}

hops_upstreams() {
    local k i

    echo "upstream $(hop_name 0) { server 127.0.0.1:$GOOD_PORT; keepalive 4; }"
    for ((i = 1; i <= MOST_HOPS; i++)); do
        echo "upstream $(hop_name "$i") { server 127.0.0.1:$BAD_PORT; keepalive 4; }"
    done
    echo "upstream $(hop_name "$i") { server 127.0.0.1:$GOOD_PORT; keepalive 4; }"

    for k in 0 2 "${HOPS[@]}"; do
        echo "upstrand hops_$k {"
        for ((i = 1; i <= k; i++)); do
            echo "upstream $(hop_name "$i");"
        done
        echo "upstream good; order per_request; next_upstream_statuses 5xx; }"
    done
}

# All of the same length, since nginx looks no further at other names; most differ in their first letter.
hop_name() {
    printf '%d%02dbad' $(($1 % 10)) $(($1 / 10))
}

hops_locations() {
    local k

    for k in 0 2 "${HOPS[@]}"; do
        echo "location = /hops-$k { proxy_pass http://\$upstrand_hops_$k; }"
    done

    echo "location = /first { set \$v $(hop_name 0); proxy_pass http://\$v; }"
    echo "location = /last { set \$v $(hop_name $((MOST_HOPS + 1))); proxy_pass http://\$v; }"
}
