# The servers of a benchmark: an nginx under test, before two others, of which one is good and one fails.
# shellcheck shell=bash disable=SC2034,SC2154 # BINARY, MODULE, WORKDIR and PORT_BASE are set by bench.sh and ports.sh

# The nginx under test listens on so many ports, and takes the memory of a request in pools of another size on each.
# Where a pool ends depends on each single allocation; over many sizes that evens out.
FRONT_PORTS=16

# Sets the ports, and starts the two backends. One is good, the other answers 503 with a body of 1 KB.
start_backends() {
    local body

    GOOD_PORT=$((PORT_BASE + FRONT_PORTS))
    BAD_PORT=$((PORT_BASE + FRONT_PORTS + 1))
    SPARE_PORT=$((PORT_BASE + FRONT_PORTS + 2))

    body=$(printf '%1024s' '' | tr ' ' x)
    start_backend good "$GOOD_PORT" 'return 200 "good\n";'
    start_backend bad "$BAD_PORT" "return 503 \"$body\";"
}

# start_backend NAME PORT LINES [OPTION]: an nginx with this server, until the script ends. The option is of listen.
start_backend() {
    write_config "$1" "events { worker_connections 4096; }
http {
    access_log off;
    keepalive_requests 1000000;
    server { listen 127.0.0.1:$2 backlog=4096 ${4-}; $3 }
}"
    start_server "$1" "$2" taskset -c "$(load_core)" "$BINARY" -e "$WORKDIR/$1.log" -p "$WORKDIR" -c "$WORKDIR/$1.conf"
}

# write_config NAME TEXT: a configuration of one process in the foreground, with files of its own.
write_config() {
    cat >"$WORKDIR/$1.conf" <<END_OF_CONFIG
daemon off;
master_process off;
worker_rlimit_nofile 8192;
error_log $WORKDIR/$1.log warn;
pid $WORKDIR/$1.pid;
$2
END_OF_CONFIG
}

# start_server NAME PORT COMMAND...: sets SERVER to the process, which has begun to listen.
start_server() {
    local name=$1 port=$2
    shift 2

    "$@" >"$WORKDIR/$name.out" 2>&1 &
    SERVER=$!
    on_exit "kill -TERM $SERVER 2>/dev/null"
    wait_for_port "$port" "$SERVER" "$WORKDIR/$name.out"
}

# stop_server PROCESS
stop_server() {
    kill -TERM "$1"
    wait "$1" || true
}

# Waits until a server listens, as long as its process lives.
wait_for_port() {
    until port_is_used "$1"; do
        kill -0 "$2" 2>/dev/null || die "a server did not start: $(tail -n 3 "$3")"
    done
}

# What is measured runs on the first processor, all else on the last.
front_core() {
    echo 0
}

load_core() {
    echo $(($(nproc) - 1))
}

# write_front_config NAME LOCATIONS [HTTP [TOP]]: the nginx under test, with two upstreams and what is given.
write_front_config() {
    printf '%s\n' "$2" >"$WORKDIR/$1.locations"

    write_config "$1" "${4-load_module $MODULE;}
events { worker_connections 4096; }
http {
    access_log off;
    keepalive_requests 1000000;
    proxy_http_version 1.1;
    proxy_set_header Connection \"\";
    variables_hash_max_size 65536;
    upstream good { server 127.0.0.1:$GOOD_PORT; keepalive 64; }
    upstream bad { server 127.0.0.1:$BAD_PORT; keepalive 64; }
${3-}
$(front_servers "$1.locations")
}"
}

front_servers() {
    local i

    for ((i = 0; i < FRONT_PORTS; i++)); do
        echo "server {
            listen 127.0.0.1:$((PORT_BASE + i)) backlog=4096;
            request_pool_size $((4096 + 32 * i));
            include $WORKDIR/$1;
        }"
    done
}

# start_front NAME: sets SERVER to the nginx under test, alone on its processor.
start_front() {
    start_server "$1" "$PORT_BASE" \
        taskset -c "$(front_core)" "$BINARY" -e "$WORKDIR/$1.log" -p "$WORKDIR" -c "$WORKDIR/$1.conf"
}

# Upstrands whose first upstream is good, and whose first one fails.
UPSTRANDS='
upstrand first_good { upstream good; upstream bad; order per_request; next_upstream_statuses 5xx; }
upstrand first_bad { upstream bad; upstream good; order per_request; next_upstream_statuses 5xx; }'

# What is done without the module: a plain proxy_pass, one by a variable, and two passes by variables, of which the
# first fails.
STATIC='proxy_pass http://good;'
VARIABLE="set \$v good; proxy_pass http://\$v;"
CHAIN="set \$v bad; proxy_intercept_errors on; error_page 503 = @next; proxy_pass http://\$v;"
CHAIN_END="location @next { set \$w good; proxy_pass http://\$w; }"
