#!/usr/bin/env bash
# Runs all tests on many builds of nginx: versions, debug and release, with parts left out.
#
# Usage: scripts/matrix.sh [--list] [BUILD...]
#
# BUILD    one of those that --list prints (default: all of them)
#
# On each: the accessor layout (tests/layout), the suites of t/ and the tests of tests/. A test whose configuration
# needs what the build lacks is skipped, with nginx's own words for it: "unknown directive". At last, a module that
# was built for one nginx is offered to another, which has to refuse it. A line for each build is printed when it is
# done, and a table of all of them at the end. Logs are kept in target/matrix. It takes some ten minutes a build.
set -euo pipefail

# shellcheck source=lib/all.sh
. "$(dirname "$0")/lib/all.sh"
# shellcheck source=lib/checks.sh
. "$LIB/checks.sh"
# shellcheck source=lib/run-folder.sh
. "$LIB/run-folder.sh"

# What tests need, for a build that has little else.
FEW=(
    --with-http_addition_module
    --with-http_auth_request_module
    --with-http_realip_module
    --with-http_slice_module
    --with-http_ssl_module
    --with-http_stub_status_module
    --with-http_sub_module
)

BUILDS=(
    stock
    1.22.1
    1.22.1-release
    1.26.3
    1.26.3-release
    1.28.3
    1.28.3-release
    1.30.6
    no-compat
    no-proxy
    no-pcre
    few
)

# Prints the arguments of scripts/build.sh for a build, one a line.
build_arguments() {
    local build=$1

    case $build in
        no-compat) printf '%s\n' --variant no-compat --no-compat --configure-arg=--with-debug ;;
        no-proxy) printf '%s\n' --variant no-proxy --configure-arg=--with-debug --configure-arg=--without-http_proxy_module ;;
        no-pcre)
            printf '%s\n' --variant no-pcre --configure-arg=--with-debug --configure-arg=--without-pcre \
                --configure-arg=--without-http_rewrite_module
            ;;
        few)
            printf '%s\n' --variant few --no-default-args --configure-arg=--with-debug \
                --configure-arg=--without-http-cache "${FEW[@]/#/--configure-arg=}"
            ;;
        *-release) printf '%s\n' --release-nginx "${build%-release}" ;;
        *) printf '%s\n' "$build" ;;
    esac
}

# What stands in a build's row beside its name.
description_of() {
    case $1 in
        stock) echo "Debian's own" ;;
        1.30.6) echo "Debian's own of forky" ;;
        no-compat) echo "1.28.3, without --with-compat" ;;
        no-proxy) echo "1.28.3, without http_proxy" ;;
        no-pcre) echo "1.28.3, without PCRE and http_rewrite" ;;
        few) echo "1.28.3, without http_v2, http_v3, http_cache, threads, stream" ;;
        *-release) echo "release" ;;
        *) echo "debug" ;;
    esac
}

# Prints "passed failed skipped" for a log, and adds to REASONS what nginx said of each that is skipped.
count_with_reasons() {
    awk -v reasons="$2" '
        function close_test() {
            if (name == "") return
            if (reason != "") { skipped++; print reason >> reasons }
            else { failed++; print "FAILED " name >> reasons }
            name = ""
        }
        /^---- .* stdout ----$/ { close_test(); name = $2; reason = ""; next }
        /^failures:$/ { close_test() }
        name != "" && reason == "" && match($0, /unknown directive "[^"]*"|requires? (the )?PCRE library|requires? (the )?ngx_[a-z0-9_]*|unknown "[^"]*" variable|\[emerg\].*(parameter "[^"]*")|"[a-z_]*" directive is not allowed here|is unsupported on this platform/) {
            reason = substr($0, RSTART, RLENGTH)
        }
        /^ok [0-9]+ .*# (skip|SKIP)/ { skipped++; print "# skip in t/" >> reasons; next }
        /^ok [0-9]+/ { passed++ }
        /^test result: / {
            for (i = 1; i < NF; i++) {
                if ($(i + 1) == "passed;") passed += $i
                if ($(i + 1) == "ignored;") skipped += $i
            }
        }
        END { close_test(); print passed + 0, failed + 0, skipped + 0 }
    ' "$1"
}

# takes_test_nginx SUITE: Test::Nginx writes a proxy_temp_path into each configuration, and would wait long for each nginx
# that does not start.
takes_test_nginx() {
    local line=

    if grep -q '\breturn [0-9]' "$1"; then
        line='server { return 204; }'
    fi

    printf 'pid nginx.pid;\nevents { }\nhttp { proxy_temp_path proxy; access_log off; %s }\n' "$line" >"$RUN/test-nginx.conf"
    "$NGINX_BINARY" -t -q -e stderr -p "$RUN" -c "$RUN/test-nginx.conf"
}

# The suites, one file after the other: one whose nginx does not start is skipped as a whole.
run_each_suite() {
    local suite log

    for suite in t/*.t; do
        log=$RUN/suite.log
        if ! takes_test_nginx "$suite" >"$log" 2>&1; then
            printf -- '---- %s stdout ----\n' "$suite"
            cat "$log"
            printf 'failures:\n'
        elif run_suites "$suite" >"$log" 2>&1; then
            cat "$log"
        else
            printf -- '---- %s stdout ----\n' "$suite"
            sed 's/^\(not \)\?ok /# &/' "$log"
            printf 'failures:\n'
        fi
    done
}

test_build() {
    local build=$1 arguments started=$SECONDS counts
    LOG=$TARGET/matrix/$build
    mkdir -p "$LOG"
    rm -f "$LOG"/*
    touch "$LOG/reasons"

    mapfile -t arguments < <(build_arguments "$build")
    if ! build_with_environment "${arguments[@]}" >"$LOG/build" 2>&1 || ! load_environment "$LOG/build"; then
        printf '%s|%s|-|-|-|does not build|\n' "$build" "$(description_of "$build")" >"$LOG/row"
        cat "$LOG/row"
        return
    fi

    if run_layout >"$LOG/layout" 2>&1; then counts=ok; else counts=FAIL; fi
    run_each_suite >"$LOG/suites" 2>&1 </dev/null || true
    run_faults >"$LOG/faults" 2>&1 </dev/null || true

    printf '%s|%s|%s|%s|%s|%d s|\n' "$build" "$(description_of "$build")" "$counts" \
        "$(count_with_reasons "$LOG/suites" "$LOG/reasons")" \
        "$(count_with_reasons "$LOG/faults" "$LOG/reasons")" $((SECONDS - started)) >"$LOG/row"
    cat "$LOG/row"
}

report() {
    local build failed=0

    printf '\n| build | | layout | t/: passed, failed, skipped | tests/: the same | time |\n|---|---|---|---|---|---|\n'
    for build in "${builds[@]}"; do
        awk -F '|' '{ printf "| %s | %s | %s | %s | %s | %s |\n", $1, $2, $3, $4, $5, $6 }' "$TARGET/matrix/$build/row"
    done

    for build in "${builds[@]}"; do
        if [ -s "$TARGET/matrix/$build/reasons" ]; then
            printf '\n%s:\n' "$build"
            sort "$TARGET/matrix/$build/reasons" | uniq -c | sort -rn
        fi
        if grep -q -e '|FAIL|' -e 'does not build' "$TARGET/matrix/$build/row" ||
            grep -q '^FAILED' "$TARGET/matrix/$build/reasons"; then
            failed=1
        fi
    done

    return "$failed"
}

builds=()

parse_arguments() {
    while [ $# -gt 0 ]; do
        case $1 in
            --help) print_help && exit ;;
            --list) printf '%s\n' "${BUILDS[@]}" && exit ;;
            *) [[ " ${BUILDS[*]} " == *" $1 "* ]] || die "unknown build $1 (see --list)" && builds+=("$1") ;;
        esac
        shift
    done

    [ "${#builds[@]}" -gt 0 ] || builds=("${BUILDS[@]}")
}

main() {
    local build
    parse_arguments "$@"
    cd "$ROOT"
    scripts/setup.sh test
    make_run_folder
    reserve_ports
    (get_test_nginx)

    for build in "${builds[@]}"; do
        test_build "$build"
    done

    report
}

main "$@"
