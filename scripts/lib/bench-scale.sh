# Many upstreams, taken into many upstrands by regular expressions.
# shellcheck shell=bash disable=SC2154 # SERVER and the ports are set by bench-servers.sh

SCALE_LIMIT="<= 1.1"
SCALE_RUNS=9

bench_scale() {
    local location

    write_scale_config few 10
    write_scale_config many 10000
    write_front_config without "" "$(scale_upstreams 10000)"

    compare_tests "10,000 upstreams in 100 upstrands by regex, against no upstrands" "$SCALE_LIMIT" "$SCALE_RUNS" \
        many without
    prepare_bench_tools
    for location in walk by-variable; do
        ratio "a request among 10,000 upstreams, against 10: location /$location" "us of processor time" - \
            "$(time_of_request many "/$location")" "$(time_of_request few "/$location")"
    done
}

time_of_request() {
    local run

    start_front "$1"
    run=$(run_load "$SERVER" "$PORT_BASE$2")
    stop_server "$SERVER"

    echo "${run#* }"
}

# write_scale_config NAME UPSTREAMS: a walk, and a plain proxy_pass by a variable, to one in the middle.
write_scale_config() {
    local name=$1 count=$2

    write_front_config "$name" "
location /walk { proxy_pass http://\$upstrand_middle; }
location /by-variable { set \$v $(scale_name $((count / 2))); proxy_pass http://\$v; }" "
$(scale_upstreams "$count")
$(scale_upstrands "$count")
upstrand middle { upstream $(scale_name $((count / 2))); next_upstream_statuses 5xx; }"
}

scale_name() {
    printf 'u%05d' "$1"
}

scale_upstreams() {
    awk -v count="$1" -v port="$GOOD_PORT" 'BEGIN {
        for (i = 0; i < count; i++)
            printf "upstream u%05d { server 127.0.0.1:%d; }\n", i, port
    }'
}

# An upstrand for each hundred of the names.
scale_upstrands() {
    awk -v count="$1" 'BEGIN {
        for (i = 0; i < 100; i++)
            printf "upstrand s%03d { upstream ~^u%s; order per_request; next_upstream_statuses 5xx; }\n", i,
                count < 100 ? "" : sprintf("%03d", i)
    }'
}
