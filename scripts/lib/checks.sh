# What scripts/test.sh does in its steps.
# shellcheck shell=bash disable=SC2154 # RUN, LOGS and PORT_BASE are set by test.sh

# --- style

run_style_steps() {
    step "rustfmt" "$LOGS/rustfmt" run_rustfmt
    step "shellcheck" "$LOGS/shellcheck" shellcheck -x -a scripts/*.sh .ci/run examples/*/*.sh \
        packaging/*.sh packaging/rpm/*.sh tests/packages/*.sh
    step "clippy" "$LOGS/clippy" run_clippy

    if has_command cargo-deny; then
        step "cargo-deny" "$LOGS/deny" cargo deny --offline check licenses bans sources
    else
        echo "      (no cargo-deny here: licenses are not checked)"
    fi
}

run_rustfmt() {
    cargo fmt --all --check
    cargo fmt --check --manifest-path core/fuzz/Cargo.toml
}

run_clippy() {
    local environment
    environment=$("$ROOT/scripts/build.sh" --print-env)
    mapfile -t environment <<<"$environment"

    env "${environment[@]}" cargo clippy --locked --workspace --all-targets -- -D warnings
    env "${environment[@]}" cargo clippy --locked --no-default-features -- -D warnings
}

# --- core

# libFuzzer is written in C++.
run_fuzz_step() {
    if has_command c++; then
        step "core, fuzzed" "$LOGS/fuzz-core" "$ROOT/scripts/fuzz-core.sh" --guided 100000
    else
        echo "      (no c++ here: core is not fuzzed)"
    fi
}

# --- tests on an nginx

# Prints what load_environment reads, for an nginx by the arguments of scripts/build.sh.
build_with_environment() {
    "$ROOT/scripts/build.sh" --print-env "$@"
    "$ROOT/scripts/build.sh" "$@"
}

# Sets what tests are told of the nginx: NGINX_BINARY, NGINX_MODULE, NGINX_SOURCE_DIR, NGINX_BUILD_DIR.
load_environment() {
    local log=$1
    NGINX_SOURCE_DIR=$(sed -n 's/^NGINX_SOURCE_DIR=//p' "$log")
    NGINX_BUILD_DIR=$(sed -n 's/^NGINX_BUILD_DIR=//p' "$log")
    NGINX_BINARY=$(tail -n 2 "$log" | head -n 1)
    NGINX_MODULE=$(tail -n 1 "$log")
    export NGINX_SOURCE_DIR NGINX_BUILD_DIR NGINX_BINARY NGINX_MODULE

    [ -x "$NGINX_BINARY" ] && [ -f "$NGINX_MODULE" ]
}

get_test_nginx() {
    make_workdir
    take_build_lock
    prepare_test_nginx
}

# The suites find their further servers' ports in TEST_NGINX_PORT_1 to TEST_NGINX_PORT_9.
run_layout() {
    cargo test --locked -p combined-upstreams-layout --target-dir "$TARGET/layout"
}

run_suites() {
    local i
    PERL5LIB=$(test_nginx_perl5lib)
    export PERL5LIB

    export TEST_NGINX_BINARY=$NGINX_BINARY
    export TEST_NGINX_LOAD_MODULES=$NGINX_MODULE
    export TEST_NGINX_SERVROOT=$RUN/servroot
    export TEST_NGINX_SERVER_PORT=$PORT_BASE

    for i in 1 2 3 4 5 6 7 8 9; do
        export "TEST_NGINX_PORT_$i=$((PORT_BASE + i))"
    done

    prove --verbose "$@"
}

# Most of the tests wait most of their time.
run_faults() {
    cargo test --locked -p combined-upstreams-tests -- --test-threads=$(($(nproc) * 3)) "$@"
}

# run_soak SECONDS [REQUESTS]
run_soak() {
    cargo build --quiet --locked -p combined-upstreams-tests --bin soak
    "$TARGET/debug/soak" "$@" </dev/null
}

# --- ways to build

run_build_steps() {
    NGINX_BINARY=$("$ROOT/scripts/build.sh" --nginx-only)
    cp -R "$ROOT/nginx-src/$(pinned "" default)" "$RUN/nginx"

    step "cargo build --features vendored" "$LOGS/build-vendored" check_vendored_build
    step "./configure --add-dynamic-module" "$LOGS/build-dynamic" check_dynamic_build
    step "./configure --add-module" "$LOGS/build-static" check_static_build
    step "a module for another nginx is refused" "$LOGS/build-refused" check_other_version_is_refused
    step "filters above the module's, which is built in" "$LOGS/static-filters" check_static_filters
}

check_vendored_build() {
    env -u NGINX_SOURCE_DIR -u NGINX_BUILD_DIR \
        cargo build --locked --features vendored --target-dir "$TARGET/module/vendored"
    check_module_loads "$NGINX_BINARY" "$TARGET/module/vendored/debug/lib$MODULE_NAME.so"
}

check_dynamic_build() {
    cd "$RUN/nginx"
    ./configure --builddir="$RUN/dynamic" --with-compat --add-dynamic-module="$ROOT"
    make -f "$RUN/dynamic/Makefile" modules
    check_module_loads "$NGINX_BINARY" "$RUN/dynamic/$MODULE_NAME.so"
}

check_static_build() {
    cd "$RUN/nginx"
    ./configure --builddir="$RUN/static" --add-module="$ROOT" \
        --with-http_slice_module --with-http_stub_status_module --with-http_v2_module --with-threads
    make -j2 -f "$RUN/static/Makefile"
    check_module_loads "$RUN/static/nginx"
}

# nginx says so in its own words.
check_other_version_is_refused() {
    local module output
    module=$("$ROOT/scripts/build.sh" stock | tail -n 1)

    if output=$(check_module_loads "$NGINX_BINARY" "$module" 2>&1); then
        echo "taken"
        return 1
    fi

    printf '%s\n' "$output"
    [[ $output == *"module \"$module\" version "*" instead of "* ]]
}

# The slice filter gives up where it sees a failed hop: the module's filter has to come first.
check_static_filters() {
    NGINX_BINARY=$RUN/static/nginx NGINX_MODULE= run_faults slices reload::
}

# check_module_loads BINARY [MODULE]: it takes a configuration with the module's directives.
check_module_loads() {
    local binary=$1 module=${2:-}
    mkdir -p "$RUN/load/logs"
    cat >"$RUN/load/nginx.conf" <<EOF
${module:+load_module $module;}
events {
}
http {
    upstream a { server 127.0.0.1:1; }
    upstream b { add_upstream a; }
    upstrand c { upstream b; next_upstream_statuses 5xx; }
    server {
        listen 127.0.0.1:$PORT_BASE;
        location / { proxy_pass http://\$upstrand_c; }
    }
}
EOF

    "$binary" -t -e stderr -p "$RUN/load" -c nginx.conf
}

# --- documentation

run_docs_step() {
    local nginx
    nginx=$(pinned "" default)
    step "build for nginx $nginx" "$LOGS/build-docs" build_with_environment "$nginx"

    if load_environment "$LOGS/build-docs"; then
        step "examples of the documentation" "$LOGS/docs" run_docs
    fi
}

run_docs() {
    export TEST_NGINX_SERVER_PORT=$PORT_BASE
    prove --verbose t/docs
}

# --- examples

run_example_steps() {
    local conf example

    for conf in examples/*/nginx.conf; do
        example=$(basename "$(dirname "$conf")")
        step "run.sh --check $example" "$LOGS/example-$example" scripts/run.sh --check "$example"
    done

    step "run.sh in the foreground" "$LOGS/foreground" check_foreground
    step "run.sh with several processes" "$LOGS/foreground-nodes" check_foreground_of_nodes
}

# It answers, and a Ctrl-C ends it.
check_foreground() {
    local pid

    scripts/run.sh --port "$PORT_BASE" >"$RUN/foreground" 2>&1 &
    pid=$!

    until port_is_used "$PORT_BASE"; do
        kill -0 "$pid"
        sleep 0.05
    done

    curl --silent --show-error --fail --max-time 20 "http://127.0.0.1:$PORT_BASE/"
    expect_one_line "port $PORT_BASE is in use" scripts/run.sh --port "$PORT_BASE"
    kill -INT "$pid"
    wait "$pid"
    rm -rf "$TARGET/run/quickstart-$PORT_BASE"
    grep -F 'curl -i' "$RUN/foreground"
}

# The end of the script is that of all its processes.
check_foreground_of_nodes() {
    local pid prefix=$TARGET/run/cdn-shielding-$PORT_BASE

    scripts/run.sh --port "$PORT_BASE" cdn-shielding &
    pid=$!

    until port_is_used $((PORT_BASE + 2)); do
        kill -0 "$pid"
        sleep 0.05
    done

    curl --silent --show-error --fail --max-time 20 "http://127.0.0.1:$((PORT_BASE + 2))/"
    kill -TERM "$pid"
    wait "$pid" || [ $? -eq 143 ]
    expect_no_process "$prefix"
    rm -rf "$prefix"
}

# --- what the scripts say when something is wrong

run_script_steps() {
    step "build.sh: unknown version" "$LOGS/unknown-version" \
        expect_one_line "nginx 9.9.9 is not in nginx-src/versions.toml" scripts/build.sh 9.9.9
    step "build.sh: wrong checksum" "$LOGS/wrong-checksum" check_wrong_checksum
    step "setup.sh: no Rust" "$LOGS/no-rust" check_no_rust
    step "setup.sh: Rust too old" "$LOGS/old-rust" check_old_rust
    step "setup.sh: no compiler, no root" "$LOGS/no-compiler" check_no_compiler
    step "build.sh: no compiler" "$LOGS/build-no-compiler" check_build_without_compiler
}

# expect_one_line TEXT COMMAND...: it fails, and says so in one line that holds the text.
expect_one_line() {
    local text=$1 output
    shift

    if output=$("$@" 2>&1); then
        echo "succeeded: $*"
        return 1
    fi

    printf '%s\n' "$output"
    [ "$(wc -l <<<"$output")" -eq 1 ] && [[ $output == *"$text"* ]]
}

check_wrong_checksum() {
    cat >"$RUN/versions.toml" <<EOF
["9.9.9"]
from = "crate"
crate = "$(pinned "$(pinned "" default)" crate)"
crate_version = "$(pinned "$(pinned "" default)" crate_version)"
file = "$(pinned "$(pinned "" default)" file)"
sha256 = "$(printf '%064d' 0)"
EOF

    NGINX_VERSIONS_FILE=$RUN/versions.toml expect_one_line "wrong sha256 checksum" scripts/build.sh 9.9.9

    if compgen -G 'nginx-src/9.9.9*' || compgen -G 'target/nginx/9.9.9*'; then
        echo "left behind"
        return 1
    fi
}

check_no_rust() {
    make_bin_without 'cargo' 'rustc' 'rustup'
    PATH=$RUN/bin HOME=/nonexistent CARGO_HOME=/nonexistent \
        expect_one_line "Rust is needed" scripts/setup.sh
}

check_old_rust() {
    make_bin_without 'cargo'
    printf '#!/bin/sh\necho cargo 1.63.0\n' >"$RUN/bin/cargo"
    chmod +x "$RUN/bin/cargo"
    PATH=$RUN/bin expect_one_line "this is 1.63.0" scripts/setup.sh
}

check_no_compiler() {
    make_bin_without 'cc' 'gcc*' 'id'
    printf '#!/bin/sh\necho 1000\n' >"$RUN/bin/id"
    chmod +x "$RUN/bin/id"
    PATH=$RUN/bin expect_one_line "gcc" scripts/setup.sh
}

check_build_without_compiler() {
    make_bin_without 'cc' 'gcc*'
    PATH=$RUN/bin expect_one_line "missing: gcc" scripts/build.sh
}

# Makes RUN/bin, links to every command of the PATH without those that match a pattern.
make_bin_without() {
    local dir pattern
    rm -rf "${RUN:?}/bin"
    mkdir "$RUN/bin"

    for dir in ${PATH//:/ }; do
        find -L "$dir" -maxdepth 1 -type f -exec ln -s -t "$RUN/bin" {} + 2>/dev/null || true
    done

    for pattern in "$@"; do
        find "$RUN/bin" -name "$pattern" -delete
    done
}

# --- the end

expect_no_process() {
    local pid left
    left=$(processes_of "$1")

    for pid in $left; do
        echo "left: $pid $(tr '\0' ' ' <"/proc/$pid/cmdline")"
    done

    [ -z "$left" ]
}
