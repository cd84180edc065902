# What a request costs, in instructions of the worker, against what nginx does without the module.
#
# callgrind counts them: the same for the same requests, whatever else the machine does. Of two runs with different
# numbers of requests the difference is taken, so that the start of nginx does not count.
# shellcheck shell=bash disable=SC2034,SC2154 # OVER_LIMIT is read by bench.sh, which sets BINARY, MODULE and WORKDIR

FEW_REQUESTS=200
MANY_REQUESTS=1200

bench_instructions() {
    local first_good by_variable static failed chain unused absent

    command -v valgrind >/dev/null || die "the case instructions needs valgrind"
    reserve_ports
    start_backends
    write_front_config with "load_module $MODULE;" "$(front_walks)" "$(walk_locations)"
    write_front_config unused "load_module $MODULE;" "" ""
    write_front_config without "" "" ""

    first_good=$(instructions with /first-good)
    by_variable=$(instructions with /variable)
    static=$(instructions with /static)
    failed=$(instructions with /failed)
    chain=$(instructions with /chain)
    unused=$(instructions unused /static)
    absent=$(instructions without /static)

    compare_instructions "first hop good, against proxy_pass http://\$v" 1.01 "$first_good" "$by_variable"
    compare_instructions "first hop good, against static proxy_pass" 1.10 "$first_good" "$static"
    compare_instructions "one failed hop (503, 1 KB), against error_page and a named location" 0.97 "$failed" "$chain"
    compare_instructions "module loaded and unused, against not loaded" 1.006 "$unused" "$absent"
    compare_further_hops
}

# The cost of a further hop after few and after many: it grows only as far as nginx, which looks an upstream up by its
# name in a list, has a longer way to those that are declared later.
compare_further_hops() {
    local none few many k

    none=$(instructions with /hops-0)
    k=2 && few=$((($(instructions with /hops-$k) - none) / k))

    for k in 4 8 16; do
        many=$((($(instructions with /hops-$k) - none) / k))
        compare_instructions "a further failed hop among $k, against one among 2" 1.10 "$many" "$few"
    done
}

# compare_instructions WHAT LIMIT A B: instructions a request, of which A may be LIMIT times B.
compare_instructions() {
    local what=$1 limit=$2 result

    result=$(awk -v a="$3" -v b="$4" -v limit="$limit" 'BEGIN {
        printf "%d / %d = %.3f %s", a, b, a / b, a / b <= limit ? "ok" : "OVER"
    }')
    printf '%s: %s (limit %s)\n' "$what" "$result" "$limit"

    if [ "${result##* }" = OVER ]; then
        OVER_LIMIT=1
    fi
}

# Prints the instructions of one request.
instructions() {
    local few many
    few=$(count_instructions "$1" "$2" "$FEW_REQUESTS")
    many=$(count_instructions "$1" "$2" "$MANY_REQUESTS")

    echo $(((many - few) / (MANY_REQUESTS - FEW_REQUESTS)))
}

# Prints those of an nginx from its start to its end, with so many requests of one connection.
count_instructions() {
    local front=$1 uri=$2 requests=$3 counts=$WORKDIR/counts nginx answers

    valgrind --tool=callgrind --callgrind-out-file="$counts" \
        "$BINARY" -e "$WORKDIR/front.log" -p "$WORKDIR" -c "$WORKDIR/$front.conf" >"$WORKDIR/valgrind.log" 2>&1 &
    nginx=$!
    wait_for_port "$PORT_BASE" "$nginx"

    answers=$(curl --silent --output /dev/null --write-out '%{http_code}\n' \
        "http://127.0.0.1:$PORT_BASE$uri?[1-$requests]" | sort | uniq -c | xargs)
    kill -QUIT "$nginx"
    wait "$nginx" || true

    [ "$answers" = "$requests 200" ] || die "$uri: $answers"
    sed -n 's/^summary: //p' "$counts"
}

# Waits until a server listens, as long as its process lives.
wait_for_port() {
    until port_is_used "$1"; do
        kill -0 "$2" 2>/dev/null || die "nginx did not start: $(tail -n 3 "$WORKDIR/valgrind.log")"
    done
}

# One backend is good, the other answers 503 with a body of 1 KB.
start_backends() {
    local good=$((PORT_BASE + 1)) bad=$((PORT_BASE + 2)) body

    body=$(printf '%1024s' '' | tr ' ' x)
    cat >"$WORKDIR/backends.conf" <<END
daemon off;
master_process off;
error_log $WORKDIR/backends.log warn;
pid $WORKDIR/backends.pid;
events { }
http {
    access_log off;
    keepalive_requests 1000000;
    server { listen 127.0.0.1:$good; return 200 "good\n"; }
    server { listen 127.0.0.1:$bad; return 503 "$body"; }
}
END
    "$BINARY" -e "$WORKDIR/backends.log" -p "$WORKDIR" -c "$WORKDIR/backends.conf" &
    on_exit "kill -QUIT $! 2>/dev/null"
    wait_for_port "$good" $!
}

# write_front_config NAME TOP HTTP SERVER: what needs no module stands in each, what does is given.
write_front_config() {
    cat >"$WORKDIR/$1.conf" <<END
$2
daemon off;
master_process off;
error_log $WORKDIR/front.log warn;
pid $WORKDIR/front.pid;
events { }
http {
    access_log off;
    keepalive_requests 1000000;
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    upstream good { server 127.0.0.1:$((PORT_BASE + 1)); keepalive 4; }
    upstream bad { server 127.0.0.1:$((PORT_BASE + 2)); keepalive 4; }
$3
    server {
        listen 127.0.0.1:$PORT_BASE;
        location /static { proxy_pass http://good; }
        location /variable { set \$v good; proxy_pass http://\$v; }
        location /chain {
            set \$v bad;
            proxy_intercept_errors on;
            error_page 503 = @next;
            proxy_pass http://\$v;
        }
        location @next { set \$w good; proxy_pass http://\$w; }
$4
    }
}
END
}

front_walks() {
    local k i

    echo "upstrand first_good { upstream good; upstream bad; order per_request; next_upstream_statuses 5xx; }"
    echo "upstrand failed { upstream bad; upstream good; order per_request; next_upstream_statuses 5xx; }"

    for ((i = 1; i <= 16; i++)); do
        echo "upstream bad$i { server 127.0.0.1:$((PORT_BASE + 2)); keepalive 4; }"
    done

    for k in 0 2 4 8 16; do
        echo "upstrand hops_$k {"
        for ((i = 1; i <= k; i++)); do
            echo "upstream bad$i;"
        done
        echo "upstream good; order per_request; next_upstream_statuses 5xx; }"
    done
}

walk_locations() {
    local k

    echo "location /first-good { proxy_pass http://\$upstrand_first_good; }"
    echo "location /failed { proxy_pass http://\$upstrand_failed; }"

    for k in 0 2 4 8 16; do
        echo "location = /hops-$k { proxy_pass http://\$upstrand_hops_$k; }"
    done
}
