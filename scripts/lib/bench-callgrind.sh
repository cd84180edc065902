# Counts what an nginx does for a request, with callgrind: the same for the same requests, whatever else the machine
# does. Of two runs with different numbers of requests the difference is taken, so that nginx's start does not count.
# shellcheck shell=bash disable=SC2154 # BINARY and WORKDIR are set by bench.sh, the ports by bench-servers.sh

# To each port.
FEW_REQUESTS=10
MANY_REQUESTS=70
REQUESTS_BETWEEN=$(((MANY_REQUESTS - FEW_REQUESTS) * FRONT_PORTS))

# instructions CONFIG URI: those of one request.
instructions() {
    count_requests "$1" "$2"
    echo $((($(total_of many) - $(total_of few)) / REQUESTS_BETWEEN))
}

# own_instructions: how many of those that were counted last are in the module's own functions.
own_instructions() {
    echo $((($(own_of many) - $(own_of few)) / REQUESTS_BETWEEN))
}

# calls CONFIG URI PATTERN: how often the module calls a function with such a name in one request.
calls() {
    count_requests "$1" "$2"
    awk -v a="$(calls_of many "$3")" -v b="$(calls_of few "$3")" -v n="$REQUESTS_BETWEEN" \
        'BEGIN { printf "%.2f\n", (a - b) / n }'
}

# Writes the counts of a run with few requests and of one with many.
count_requests() {
    count_run few "$1" "$2" "$FEW_REQUESTS"
    count_run many "$1" "$2" "$MANY_REQUESTS"
}

# count_run COUNTS CONFIG URI REQUESTS: an nginx from its start to its end, with so many requests to each port.
count_run() {
    local counts=$1 config=$2 uri=$3 requests=$4

    start_server callgrind "$PORT_BASE" valgrind --tool=callgrind --callgrind-out-file="$WORKDIR/$counts" \
        "$BINARY" -e "$WORKDIR/$config.log" -p "$WORKDIR" -c "$WORKDIR/$config.conf"
    expect_good_answers "$uri" "$requests"
    stop_server "$SERVER"
}

# expect_good_answers URI REQUESTS: so many requests to each port, over one connection each.
expect_good_answers() {
    local uri=$1 requests=$2 answers

    answers=$(curl --silent --output /dev/null --write-out '%{http_code}\n' \
        "http://127.0.0.1:[$PORT_BASE-$((PORT_BASE + FRONT_PORTS - 1))]$uri?[1-$requests]" | sort | uniq -c | xargs)

    [ "$answers" = "$((requests * FRONT_PORTS)) 200" ] || die "$uri: $answers"
}

total_of() {
    sed -n 's/^summary: //p' "$WORKDIR/$1"
}

# own_of COUNTS: the instructions in the module's own object. A line behind calls= is of what was called.
own_of() {
    awk -F '[=() ]+' "$(name_objects)"'
        /^calls=/ { called = NR + 1 }
        /^[-+*0-9]/ && ours && NR != called { sum += $2 }
        END { printf "%d\n", sum }
    ' "$WORKDIR/$1"
}

# calls_of COUNTS PATTERN: the calls from there.
calls_of() {
    awk -F '[=() ]+' -v pattern="$2" "$(name_objects)"'
        /^c?fn=.*\) / { name["fn" $2] = named() }
        /^cfn=/ { called = name["fn" $2] }
        /^calls=/ && ours && called ~ pattern { sum += $2 }
        END { print sum + 0 }
    ' "$WORKDIR/$1"
}

# callgrind writes a name only once, and then its number.
name_objects() {
    cat <<'END_OF_RULES'
function named() {
    return substr($0, index($0, ") ") + 2)
}
/^c?ob=.*\) / { name["ob" $2] = named() }
/^ob=/ { ours = name["ob" $2] ~ /combined_upstreams/ }
END_OF_RULES
}
