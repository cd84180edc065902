# Asks the edges for many URIs, in four states of the cluster, and counts what is fetched from the origins.
# Read by scripts/run.sh --check.
# shellcheck shell=bash disable=SC2154 # port and prefix are set there

URIS=200

# The first of the three edges' ports.
UPSTRANDS=$port
UPSTREAMS=$((port + 3))
UNSHIELDED=$((port + 6))

# ask NAME PORT EDGE...: asks each edge (counted from 0) twice for all URIs, which are new; shows the counts, and sets
# `fetches` and `errors`.
ask() {
    local name=$1 first=$2 round edge
    local -a clients=()
    shift 2
    prefix_number=$((prefix_number + 1))

    for round in 1 2; do
        for edge in "$@"; do
            curl --silent --parallel --parallel-max 20 --max-time 60 --output /dev/null \
                --write-out '%{http_code}\n' \
                "http://127.0.0.1:$((first + edge))/$prefix_number/[1-$URIS]" >"$prefix/answers-$edge-$round" 2>/dev/null &
            clients+=($!)
        done
        wait "${clients[@]}" || true
        clients=()
    done

    requests=$(cat "$prefix"/answers-* | wc -l)
    errors=$(cat "$prefix"/answers-* | grep -cv '^200$' || true)
    fetches=$(grep -c "^/$prefix_number/" "$prefix/logs/fetches.log" || true)
    twice=$(grep "^/$prefix_number/" "$prefix/logs/fetches.log" | sort | uniq -d | wc -l)
    rm "$prefix"/answers-*

    say "$(printf '      %-42s %8d %8d %8d' "$name" "$requests" "$fetches" "$errors")"
}

check_cluster() {
    local prefix_number=0 requests fetches errors twice

    say
    say "$(printf '      %-42s %8s %8s %8s' "$URIS URIs" requests fetches errors)"

    ask "no shielding" "$UNSHIELDED" 0 1 2
    expect "each edge fetches each URI" [ "$fetches" -eq $((3 * URIS)) ]

    ask "upstreams" "$UPSTREAMS" 0 1 2
    expect "each URI is fetched once in the cluster" [ "$fetches $twice $errors" = "$URIS 0 0" ]

    ask "upstrands" "$UPSTRANDS" 0 1 2
    expect "each URI is fetched once in the cluster" [ "$fetches $twice $errors" = "$URIS 0 0" ]

    touch "$prefix/edge3-sick"

    ask "upstreams, edge 3 answers 503" "$UPSTREAMS" 0 1
    expect "what belongs to edge 3 fails" [ "$errors" -gt 0 ]

    ask "upstrands, edge 3 answers 503" "$UPSTRANDS" 0 1
    expect "no client sees it" [ "$errors" -eq 0 ]
    expect "only what belongs to edge 3 is fetched twice" fetched_by_two

    stop_nginx node-edge3

    ask "upstreams, edge 3 is down" "$UPSTREAMS" 0 1
    expect "no client sees it" [ "$errors" -eq 0 ]
    expect "only what belongs to edge 3 is fetched twice" fetched_by_two

    ask "upstrands, edge 3 is down" "$UPSTRANDS" 0 1
    expect "no client sees it" [ "$errors" -eq 0 ]
    expect "only what belongs to edge 3 is fetched twice" fetched_by_two
}

# The third that belongs to edge 3 is fetched by both others.
fetched_by_two() {
    [ "$fetches" -eq $((URIS + twice)) ] && [ "$twice" -gt 0 ] && [ "$twice" -lt $((URIS / 2)) ]
}

check_cluster
