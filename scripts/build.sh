#!/usr/bin/env bash
# Builds the module and the nginx that it is for, under target/.
#
# Usage: scripts/build.sh [OPTION...] [VERSION|stock]
#
# VERSION is one of nginx-src/versions.toml (default: the one named there); its source is fetched, verified
# and built. `stock` is the nginx that the system's package manager installed; only the module is built.
# The last two lines of standard output are the paths of the nginx binary and of the module. Everything
# else that is printed goes to standard error. What is up to date is not built again.
#
# Options:
#   --debug              nginx with debug logging (default)
#   --release-nginx      nginx without it, as for production and benchmarks
#   --nginx-only         no module; one line, the nginx binary
#   --print-env          no module; NGINX_SOURCE_DIR=... and NGINX_BUILD_DIR=..., the environment that
#                        `cargo build` and `cargo clippy` of the module need
#   --variant NAME       nginx with other options, kept apart under this name. With it:
#   --configure-arg=ARG    adds an argument for nginx's ./configure (as often as needed)
#   --no-default-args      leaves out ours except --with-compat
#   --no-compat            leaves out --with-compat
#   --list               prints the known versions
#   --help               prints this
#
# Examples:
#   scripts/build.sh
#   scripts/build.sh stock
#   scripts/build.sh --variant asan --configure-arg=--with-debug \
#       --configure-arg='--with-cc-opt=-O1 -g -fsanitize=address' \
#       --configure-arg=--with-ld-opt=-fsanitize=address 1.28.3
set -euo pipefail

# shellcheck source=lib/all.sh
. "$(dirname "$0")/lib/all.sh"

version=
flavour=debug
product=module
compat=yes

parse_arguments() {
    local variant=

    while [ $# -gt 0 ]; do
        case $1 in
            --debug) flavour=debug ;;
            --release-nginx) flavour=release ;;
            --nginx-only) product=nginx ;;
            --print-env) product=environment ;;
            --variant) variant=${2:?--variant needs a name} && shift ;;
            --configure-arg=*) EXTRA_CONFIGURE_ARGS+=("${1#*=}") ;;
            --no-default-args) NGINX_CONFIGURE_ARGS=(--with-compat) ;;
            --no-compat) compat=no ;;
            --list) pinned_versions && exit ;;
            --help) print_help && exit ;;
            -*) die "unknown option $1 (see --help)" ;;
            *) version=$1 ;;
        esac
        shift
    done

    version=${version:-$(pinned "" default)}

    if [ -n "$variant" ]; then
        flavour=$variant
    elif [ "${#EXTRA_CONFIGURE_ARGS[@]}" -gt 0 ] || [ "${#NGINX_CONFIGURE_ARGS[@]}" -eq 1 ] || [ "$compat" = no ]; then
        die "other options for nginx need a name: --variant NAME"
    fi

    if [ "$compat" = no ]; then
        # the first of them
        NGINX_CONFIGURE_ARGS=("${NGINX_CONFIGURE_ARGS[@]:1}")
    fi
}

build() {
    require_build_tools
    take_build_lock
    make_workdir
    prepare_nginx "$version" "$flavour"

    if [ "$product" = module ]; then
        build_module
    fi
}

print_result() {
    case $product in
        module) printf '%s\n' "$NGINX_BINARY" "$MODULE" ;;
        nginx) printf '%s\n' "$NGINX_BINARY" ;;
        environment) printf '%s\n' "NGINX_SOURCE_DIR=$NGINX_SOURCE_DIR" "NGINX_BUILD_DIR=$NGINX_BUILD_DIR" ;;
    esac
}

parse_arguments "$@"
build
print_result
