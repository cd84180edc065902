# What it costs to read a configuration in which upstreams are made of others.
# shellcheck shell=bash disable=SC2154 # BINARY, MODULE, MEASURE and WORKDIR are set by bench.sh

STARTUP_LIMIT="<= 1.3"
STARTUP_RUNS=15

bench_startup() {
    compare_startup "2,000 upstreams, each with add_upstream of three others" add_upstream
    compare_startup "200 hosts of 20 servers with singlets" singlets
    compare_startup "the same with keepalive and hash" singlets "keepalive 32; hash \$uri;"
}

compare_startup() {
    local what=$1 kind=$2 lines=${3:-}

    write_startup_config "$kind" "$lines" no
    write_startup_config "$kind" "$lines" yes
    compare_tests "$what" "$STARTUP_LIMIT" "$STARTUP_RUNS" "$kind-no" "$kind-yes"
}

# compare_tests WHAT LIMIT RUNS OURS OTHER: `nginx -t` of two configurations, in turns.
compare_tests() {
    local what=$1 limit=$2 usage
    usage=$("$MEASURE" "$3" "$(test_command "$4")" "$(test_command "$5")")

    ratio "$what: nginx -t" ms "$limit" "$(sed -n '1s/ .*//p' <<<"$usage")" "$(sed -n '2s/ .*//p' <<<"$usage")"
    ratio "$what: its memory" KB "$limit" "$(sed -n '1s/.* //p' <<<"$usage")" "$(sed -n '2s/.* //p' <<<"$usage")"
}

test_command() {
    printf '%q -t -e stderr -p %q -c %q' "$BINARY" "$WORKDIR" "$WORKDIR/$1.conf"
}

# KIND-no.conf or KIND-yes.conf: with our directives or with all upstreams written out.
write_startup_config() {
    local kind=$1 lines=$2 by_hand=$3

    {
        # Loaded by both: its own size is not the question.
        printf 'load_module %s;\npid %s/nginx.pid;\nevents { }\nhttp {\naccess_log off;\n' "$MODULE" "$WORKDIR"
        awk -v by_hand="$by_hand" -v lines="$lines" "$(startup_upstreams_of_"$kind")"
        printf '}\n'
    } >"$WORKDIR/$kind-$by_hand.conf"
}

startup_upstreams_of_add_upstream() {
    cat <<'END'
function servers(i) {
    return "server 127.0.0.1:" i ";\nserver 127.0.0.2:" i " weight=2;\n"
}
BEGIN {
    srand(1)
    for (i = 1; i <= 2000; i++)
        printf "upstream source%d {\n%s}\n", i, servers(i)
    for (i = 1; i <= 2000; i++) {
        printf "upstream host%d {\n", i
        for (j = 0; j < 3; j++) {
            other = int(rand() * 2000) + 1
            printf "%s", by_hand == "yes" ? servers(other) : "add_upstream source" other ";\n"
        }
        print "}"
    }
}
END
}

startup_upstreams_of_singlets() {
    cat <<'END'
BEGIN {
    for (i = 1; i <= 200; i++) {
        printf "upstream host%d_ {\n", i
        for (j = 1; j <= 20; j++)
            printf "server 127.0.%d.%d:80;\n", i, j
        printf "%s\n%s}\n", by_hand == "yes" ? "" : "combine_server_singlets;", lines
        for (active = 1; by_hand == "yes" && active <= 20; active++) {
            printf "upstream host%d_%d {\n", i, active
            for (j = 1; j <= 20; j++)
                printf "server 127.0.%d.%d:80%s;\n", i, j, j == active ? "" : " backup"
            printf "%s}\n", lines
        }
    }
}
END
}
