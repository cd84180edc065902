# How much memory a walk asks nginx for.
# shellcheck shell=bash disable=SC2154 # UPSTRANDS is set by bench-servers.sh

ALLOCATING='^(malloc|calloc|realloc|posix_memalign|ngx_(alloc|calloc|memalign|p[nc]?alloc|pmemalign|pool_cleanup_add|array_push.*|list_push|create_.*|http_cleanup_add))$'

bench_allocations() {
    write_front_config allocations "
location /good { proxy_pass http://\$upstrand_first_good; }
location /bad { proxy_pass http://\$upstrand_first_bad; }" "$UPSTRANDS"

    value "the module's calls for memory, first hop good" "a request" "<= 1" \
        "$(calls allocations /good "$ALLOCATING")"
    value "the module's calls for memory, one failed hop" "a request" - "$(calls allocations /bad "$ALLOCATING")"
}
