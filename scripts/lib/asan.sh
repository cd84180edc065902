# nginx with AddressSanitizer.
# shellcheck shell=bash

# Builds it, and exports what the tests are told of it. nginx leaves its memory to the end of the process; an
# allocation of terabytes fails, as it does without the sanitizer.
use_asan_build() {
    local paths
    paths=$("$ROOT/scripts/build.sh" --variant asan \
        --configure-arg=--with-debug \
        --configure-arg='--with-cc-opt=-O1 -g -fsanitize=address' \
        --configure-arg=--with-ld-opt=-fsanitize=address)

    NGINX_BINARY=$(head -n 1 <<<"$paths")
    NGINX_MODULE=$(tail -n 1 <<<"$paths")
    export NGINX_BINARY NGINX_MODULE
    export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1
}
