#!/usr/bin/env bash
# Runs all tests of t/ and tests/ on an nginx built with AddressSanitizer and UndefinedBehaviorSanitizer, each piece of
# a pool allocated by itself (NGX_DEBUG_PALLOC), and some of them under valgrind.
#
# Usage: scripts/sanitize.sh [STEP...]
#
# STEP     one of:
#            planted   a module with faults, to see that they are reported
#            suites    t/
#            faults    tests/
#            memory    each allocation of a request fails in turn, without the sanitizers, with NGX_DEBUG_PALLOC
#            valgrind  memcheck over t/walk.t, t/intercept.t, t/variables.t and t/add_upstream.t, if it is installed
#            core      memcheck over the tests of core/, likewise
#          Default: all.
#
# A report makes its step fail: what is undefined ends the process, and no test takes that for an answer. The C
# accessors of the module are built with the same flags as nginx.
set -euo pipefail

# shellcheck source=lib/all.sh
. "$(dirname "$0")/lib/all.sh"
# shellcheck source=lib/checks.sh
. "$LIB/checks.sh"
# shellcheck source=lib/run-folder.sh
. "$LIB/run-folder.sh"

# nginx itself calls memcpy with NULL and a length of 0 when it starts, and compares methods as integers wherever
# they stand.
SANITIZERS='-fsanitize=address,undefined -fno-sanitize=nonnull-attribute,alignment -fno-sanitize-recover=undefined'
POOLS=-DNGX_DEBUG_PALLOC=1
VALGRIND_SUITES=(t/walk.t t/intercept.t t/variables.t t/add_upstream.t)

steps=("$@")

# CFLAGS is for the module's C code.
build_with_sanitizers() {
    CFLAGS="$SANITIZERS $POOLS" build_with_environment --variant sanitized \
        --configure-arg=--with-debug \
        --configure-arg="--with-cc-opt=-O1 -g -Wno-error $SANITIZERS $POOLS" \
        --configure-arg="--with-ld-opt=$SANITIZERS"
}

build_with_single_pieces() {
    build_with_environment --variant palloc \
        --configure-arg=--with-debug \
        --configure-arg="--with-cc-opt=-O1 -g -Wno-error $POOLS"
}

check_accessors_are_sanitized() {
    nm -D "$NGINX_MODULE" | grep -F __asan_report
}

check_planted_faults() {
    local includes
    includes=$(sed -n '/^ALL_INCS/,/^$/p' "$NGINX_BUILD_DIR/Makefile" | grep -o -e '-I [^ ]*' | tr '\n' ' ')

    # shellcheck disable=SC2086 # words
    (cd "$NGINX_SOURCE_DIR" && cc -shared -fPIC -g $SANITIZERS $POOLS $includes \
        -o "$RUN/planted.so" "$ROOT/tests/sanitizer/planted.c")
    expect_report 'AddressSanitizer: heap-buffer-overflow' overread
    expect_report 'runtime error: signed integer overflow' overflow
}

# expect_report TEXT FAULT
expect_report() {
    local text=$1 output
    mkdir -p "$RUN/planted/logs"
    printf 'load_module %s;\nplanted %s;\nevents { }\n' "$RUN/planted.so" "$2" >"$RUN/planted/nginx.conf"

    # Any module has those tables that nginx has.
    if output=$(ASAN_OPTIONS=$ASAN_OPTIONS:detect_odr_violation=0 "$NGINX_BINARY" -t -e stderr -p "$RUN/planted" -c nginx.conf 2>&1); then
        echo "no report of $2"
        return 1
    fi

    printf '%s\n' "$output"
    [[ $output == *"$text"* ]]
}

run_memory() {
    ALLOCATIONS=10000 run_faults no_memory:: --nocapture
}

# Test::Nginx's own way: nginx runs under memcheck, and what it prints goes to the log. Leaks are those of memory that
# nothing points at when a worker leaves; nginx's pools are freed by then.
run_valgrind() {
    cat >"$RUN/valgrind" <<EOF2
#!/bin/sh
case "\$*" in
    *-V*|*-v*) exec "$NGINX_BINARY" "\$@" ;;
esac
exec valgrind --quiet --error-exitcode=9 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=none \\
    --log-file="$RUN/memcheck.%p" "$NGINX_BINARY" "\$@"
EOF2
    chmod +x "$RUN/valgrind"
    NGINX_BINARY=$RUN/valgrind run_suites "${VALGRIND_SUITES[@]}"
    cat "$RUN"/memcheck.* 
    ! grep -e 'Invalid' -e 'uninitialised' -e combined_upstreams "$RUN"/memcheck.*
}

# Fewer of the random ones: memcheck takes thirty times as long.
run_core() {
    EXECUTIONS=300 PROPTEST_CASES=16 cargo test --locked -p combined-upstreams-core \
        --config "target.'cfg(all())'.runner='valgrind --quiet --error-exitcode=9 --leak-check=full \
        --show-leak-kinds=definite --errors-for-leak-kinds=definite'"
}

wants() {
    [ "${#steps[@]}" -eq 0 ] || [[ " ${steps[*]} " == *" $1 "* ]]
}

main() {
    [ "${1:-}" != --help ] || { print_help && exit; }
    cd "$ROOT"
    scripts/setup.sh test
    make_run_folder
    reserve_ports
    step "Test::Nginx" "$LOGS/test-nginx" get_test_nginx

    step "build with sanitizers" "$LOGS/build" build_with_sanitizers
    load_environment "$LOGS/build"
    export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1

    if wants planted; then
        step "the module's C code has the sanitizers" "$LOGS/accessors" check_accessors_are_sanitized
        step "planted faults" "$LOGS/planted" check_planted_faults
    fi

    if wants suites; then
        step "suites" "$LOGS/suites" run_suites t/*.t
    fi

    if wants faults; then
        step "faults" "$LOGS/faults" run_faults
    fi

    step "build with single pieces" "$LOGS/build-palloc" build_with_single_pieces
    load_environment "$LOGS/build-palloc"

    if wants memory; then
        step "failing allocations" "$LOGS/memory" run_memory
    fi

    if wants valgrind && has_command valgrind; then
        step "valgrind" "$LOGS/valgrind" run_valgrind
    fi

    if wants core && has_command valgrind; then
        step "core" "$LOGS/core" run_core
    fi

    step "no process left" "$LOGS/processes" expect_no_process "$RUN"
    report_all_steps
}

main "$@"
