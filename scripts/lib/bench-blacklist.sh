# The start of a walk among many members that are blacklisted.
# shellcheck shell=bash disable=SC2154 # SPARE_PORT is set by bench-servers.sh

bench_blacklist() {
    local few many

    write_front_config alone "location / { proxy_pass http://\$upstrand_alone; }" "$(blacklist_upstrands)"
    write_front_config many "location / { proxy_pass http://\$upstrand_many; }" "$(blacklist_upstrands)"

    few=$(instructions alone /)
    many=$(instructions many /)
    ratio "100 members, 99 of them blacklisted, against one member" instructions - "$many" "$few"
    value "the same, for each blacklisted member" instructions "<= 20" $(((many - few) / 99))
}

# The first request of all finds that nobody listens at the 99.
blacklist_upstrands() {
    local i

    echo "upstrand alone { upstream good; order per_request; next_upstream_statuses error; }"

    for ((i = 1; i <= 99; i++)); do
        echo "upstream refused_$i { server 127.0.0.1:$SPARE_PORT; }"
    done

    cat <<'END_OF_UPSTRAND'
upstrand many {
    upstream ~^refused_ blacklist_interval=1h;
    upstream good;
    order per_request;
    next_upstream_statuses error;
}
END_OF_UPSTRAND
}
