# Requests a second and processor time under load, with one failed hop and then a good one: what is measured has one
# processor to itself, the load and the backends share another. Runs take turns.
# shellcheck shell=bash disable=SC2154 # BINARY, MODULE, WORKDIR and TOOLS are set by bench.sh, the ports by bench-servers.sh

LOAD_PAIRS=5
LOAD_SECONDS=2
LOAD_CONNECTIONS=32

bench_load() {
    local front

    prepare_bench_tools
    write_load_config
    start_front load
    front=$SERVER

    compare_load "one failed hop, against error_page and a named location" \
        "$front" "$PORT_BASE/walked" "$front" "$PORT_BASE/chain"
    compare_load "first hop good, against static proxy_pass" \
        "$front" "$PORT_BASE/first-good" "$front" "$PORT_BASE/static" -

    write_haproxy_config
    start_server haproxy "$SPARE_PORT" with_tools taskset -c "$(front_core)" haproxy -db -f "$WORKDIR/haproxy.conf"
    compare_load "one failed hop, against HAProxy's retry" "$front" "$PORT_BASE/walked" "$SERVER" "$SPARE_PORT/"
    stop_server "$SERVER"
    stop_server "$front"

    compare_with_lua
}

# Lua's balancer runs in the system's nginx; so does the module, here.
compare_with_lua() {
    local BINARY MODULE paths front

    paths=$("$ROOT/scripts/build.sh" stock)
    BINARY=$(head -n 1 <<<"$paths")
    MODULE=$(tail -n 1 <<<"$paths")

    write_load_config
    start_front load
    front=$SERVER
    write_lua_config
    start_server lua "$SPARE_PORT" with_tools taskset -c "$(front_core)" \
        "$BINARY" -e "$WORKDIR/lua.log" -p "$WORKDIR" -c "$WORKDIR/lua.conf"

    compare_load "one failed hop, against Lua's balancer, both in the system's nginx" \
        "$front" "$PORT_BASE/walked" "$SERVER" "$SPARE_PORT/"
    stop_server "$SERVER"
    stop_server "$front"
}

write_load_config() {
    write_front_config load "
location /first-good { proxy_pass http://\$upstrand_first_good; }
location /walked { proxy_pass http://\$upstrand_first_bad; }
location /static { $STATIC }
location /chain { $CHAIN }
$CHAIN_END" "$UPSTRANDS"
}

# compare_load WHAT PROCESS PORT/URI PROCESS PORT/URI [LIMIT]
compare_load() {
    local what=$1 limit=${6:-"> 1"} i ours=() other=()

    run_load "$2" "$3" >/dev/null
    run_load "$4" "$5" >/dev/null
    for ((i = 0; i < LOAD_PAIRS; i++)); do
        ours+=("$(run_load "$2" "$3")")
        other+=("$(run_load "$4" "$5")")
    done

    paired_ratio "$what" requests/s "$limit" "${ours[*]% *}" "${other[*]% *}"
    paired_ratio "$what: processor time" "us a request" "${limit/> 1/< 1}" "${ours[*]#* }" "${other[*]#* }"
}

# run_load PROCESS PORT/URI: prints the requests a second, and the process's microseconds for each.
run_load() {
    local process=$1 url=http://127.0.0.1:$2 before after output
    before=$(processor_time "$process")
    output=$(with_tools taskset -c "$(load_core)" wrk -t 1 -c "$LOAD_CONNECTIONS" -d "${LOAD_SECONDS}s" "$url")
    after=$(processor_time "$process")

    ! grep -E 'Non-2xx|Socket errors' <<<"$output" >&2 || die "$url: errors under load"
    awk -v us=$(((after - before) * 1000000 / $(getconf CLK_TCK))) '
        / requests in / { requests = $1 }
        /^Requests\/sec:/ { printf "%.0f %.1f\n", $2, us / requests }' <<<"$output"
}

# Prints the user's and the system's time of a process, in clock ticks.
processor_time() {
    awk '{ print $14 + $15 }' "/proc/$1/stat"
}

write_haproxy_config() {
    cat >"$WORKDIR/haproxy.conf" <<END_OF_CONFIG
global
    nbthread 1
    maxconn 1000
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    http-reuse always
frontend front
    bind 127.0.0.1:$SPARE_PORT
    default_backend walk
backend walk
    balance first
    retries 1
    retry-on 503
    option redispatch 1
    server bad 127.0.0.1:$BAD_PORT
    server good 127.0.0.1:$GOOD_PORT
END_OF_CONFIG
}

write_lua_config() {
    write_config lua "load_module $TOOLS/usr/lib/nginx/modules/ndk_http_module.so;
load_module $TOOLS/usr/lib/nginx/modules/ngx_http_lua_module.so;
events { worker_connections 4096; }
http {
    access_log off;
    keepalive_requests 1000000;
    proxy_http_version 1.1;
    proxy_set_header Connection \"\";
    lua_package_path \"$TOOLS/usr/share/lua/5.1/?.lua;;\";
    init_by_lua_block { balancer = require \"ngx.balancer\" }
    upstream walk {
        server 0.0.0.1;
        balancer_by_lua_block {
            if ngx.ctx.failed then
                balancer.set_current_peer(\"127.0.0.1\", $GOOD_PORT)
            else
                ngx.ctx.failed = true
                balancer.set_more_tries(1)
                balancer.set_current_peer(\"127.0.0.1\", $BAD_PORT)
            end
        }
        keepalive 64;
    }
    server {
        listen 127.0.0.1:$SPARE_PORT backlog=4096;
        proxy_next_upstream http_503;
        location / { proxy_pass http://walk; }
    }
}"
}
