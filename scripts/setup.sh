#!/usr/bin/env bash
# Installs what is missing to build the module, to test it or to package it, with the system's package manager.
#
# Usage: scripts/setup.sh [build|test|package|bench]
#
# build   (default) a C compiler, make, the libraries of nginx, libclang, curl
# test    also the system's nginx with its headers (whose package may start it, on port 80), and what
#         Test::Nginx and scripts/test.sh need, those for packages included
# package the tools of RPM and of Debian's packages, and the system's nginx with its headers
# bench   valgrind, and the system's nginx with its headers
#
# Rust is not installed, only asked for. Without root nothing is installed either: one line tells what to
# install. If nothing is missing, nothing is done.
set -euo pipefail

# shellcheck source=lib/all.sh
. "$(dirname "$0")/lib/all.sh"

install_packages() {
    if [ "$(id -u)" -ne 0 ]; then
        die "only root can install what is missing: sudo $(install_command) $*"
    fi

    say "installing $*"

    if is_debian; then
        export DEBIAN_FRONTEND=noninteractive
        logged "$TARGET/log/apt-update.log" apt-get update
        logged "$TARGET/log/apt-install.log" apt-get install --yes --no-install-recommends "$@"
    else
        logged "$TARGET/log/install.log" "$(install_command | cut -d ' ' -f 1)" --assumeyes install "$@"
    fi
}

main() {
    local missing

    case ${1:-build} in
        build) missing=$(missing_build_packages) ;;
        test) missing=$({ missing_test_packages && missing_package_packages; } | sort -u) ;;
        package) missing=$({ missing_build_packages && missing_package_packages; } | sort -u) ;;
        bench) missing=$({ missing_build_packages && missing_bench_packages; } | sort -u) ;;
        --help) print_help && exit ;;
        *) die "unknown argument $1 (see --help)" ;;
    esac

    require_rust

    if [ -n "$missing" ]; then
        mapfile -t missing <<<"$missing"
        install_packages "${missing[@]}"
    fi
}

main "$@"
