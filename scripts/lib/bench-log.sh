# What a log of walks costs: all variables of the module, against as many of nginx's own.
# shellcheck shell=bash disable=SC2154 # WORKDIR is set by bench.sh

bench_log() {
    local none hops

    write_front_config log "$(log_locations)" "
log_format ours '\$upstrand_path \$upstrand_addr \$upstrand_status \$upstrand_cache_status \$upstrand_connect_time '
    '\$upstrand_header_time \$upstrand_response_time \$upstrand_response_length';
log_format nginx '\$proxy_host \$upstream_addr \$upstream_status \$upstream_cache_status \$upstream_connect_time '
    '\$upstream_header_time \$upstream_response_time \$upstream_response_length';
upstrand one { upstream good; order per_request; }
upstrand two { upstream bad; upstream good; order per_request; next_upstream_statuses 5xx; }"

    for hops in one two; do
        none=$(instructions log "/$hops-none")
        ratio "a log with all eight variables, against eight of nginx's, of a walk of $hops" instructions "<= 1.5" \
            $(($(instructions log "/$hops-ours") - none)) $(($(instructions log "/$hops-nginx") - none))
    done
}

log_locations() {
    local hops format

    for hops in one two; do
        echo "location /$hops-none { proxy_pass http://\$upstrand_$hops; }"

        for format in ours nginx; do
            echo "location /$hops-$format {
                access_log $WORKDIR/access.log $format buffer=64k;
                proxy_pass http://\$upstrand_$hops;
            }"
        done
    done
}
