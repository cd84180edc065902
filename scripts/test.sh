#!/usr/bin/env bash
# Tests everything, or a part.
#
# Usage: scripts/test.sh [--nginx VERSION|stock]... [STEP|FILE|NAME...]
#
# STEP     one of:
#            style    rustfmt, clippy and shellcheck; cargo-deny where it is installed
#            core     the tests of core/, which need no nginx; with a C++ compiler its fuzz targets, too
#            layout   nginx's structures, as Rust and C see them
#            suites   t/ under Test::Nginx
#            faults   tests/: misbehaving backends and hand-made clients
#            soak     a minute of scripts/soak.sh, on the first nginx
#            builds   the ways to build: for a configured tree (by scripts/build.sh), with the nginx that cargo
#                     carries along, and by nginx's own ./configure, dynamic and static
#            docs     the examples in the documentation, with the requests and answers that it shows; its links
#            examples scripts/run.sh --check with each example
#            packages the DEB and both RPMs are made, checked, installed in a private root, used and removed
#            scripts  what the scripts say when something is wrong
# FILE     a suite: t/walk.t
# NAME     only the tests of tests/ whose names contain it
# --nginx  the nginx for layout, suites and faults, a version of nginx-src/versions.toml or stock, as often as wanted.
#          Default: the version named there, and stock.
#
# What is missing is installed first (scripts/setup.sh test), except for core alone, which needs only Rust.
# One line a step, with its seconds; the last line is "N passed, N failed". If a test
# fails, the logs of the run are kept in target/test-logs. Runs may overlap.
set -euo pipefail

# shellcheck source=lib/all.sh
. "$(dirname "$0")/lib/all.sh"
# shellcheck source=lib/checks.sh
. "$LIB/checks.sh"
# shellcheck source=lib/packages.sh
. "$LIB/packages.sh"
# shellcheck source=lib/run-folder.sh
. "$LIB/run-folder.sh"

ALL_STEPS=(style core layout suites faults soak builds docs examples packages scripts)

nginxes=()
steps=()
suites=()
names=()

parse_arguments() {
    while [ $# -gt 0 ]; do
        case $1 in
            --help) print_help && exit ;;
            --nginx) nginxes+=("${2:?--nginx needs a version}") && shift ;;
            -*) die "unknown option $1 (see --help)" ;;
            *.t) suites+=("$1") ;;
            *) add_step_or_name "$1" ;;
        esac
        shift
    done

    if [ "${#nginxes[@]}" -eq 0 ]; then
        nginxes=("$(pinned "" default)" stock)
    fi

    if [ "${#suites[@]}" -gt 0 ]; then
        steps+=(suites)
    else
        suites=(t/*.t)
    fi

    if [ "${#names[@]}" -gt 0 ]; then
        steps+=(faults)
    elif [ "${#steps[@]}" -eq 0 ]; then
        steps=("${ALL_STEPS[@]}")
    fi
}

add_step_or_name() {
    if [[ " ${ALL_STEPS[*]} " == *" $1 "* ]]; then
        steps+=("$1")
    else
        names+=("$1")
    fi
}

wants() {
    [[ " ${steps[*]} " == *" $1 "* ]]
}

# Builds nginx and the module and runs the suites and the faults on them.
test_on() {
    local nginx=$1 build=$LOGS/build-$1

    step "build for nginx $nginx" "$build" build_with_environment "$nginx"
    load_environment "$build" || return 0

    if wants layout; then
        step "layout on nginx $nginx" "$LOGS/layout-$nginx" run_layout
    fi

    if wants suites; then
        step "suites on nginx $nginx" "$LOGS/suites-$nginx" run_suites "${suites[@]}"
    fi

    if wants faults; then
        step "faults on nginx $nginx" "$LOGS/faults-$nginx" run_faults "${names[@]}"
    fi

    if wants soak && [ "$nginx" = "${nginxes[0]}" ]; then
        step "soak on nginx $nginx" "$LOGS/soak-$nginx" run_soak 60
    fi
}

main() {
    local nginx
    parse_arguments "$@"
    cd "$ROOT"

    if [ "${steps[*]}" = core ]; then
        require_rust
    else
        scripts/setup.sh test
    fi

    make_run_folder
    reserve_ports

    if wants style; then
        run_style_steps
    fi

    if wants core; then
        step "core" "$LOGS/core" cargo test --locked -p combined-upstreams-core
        run_fuzz_step
    fi

    if wants suites; then
        step "Test::Nginx" "$LOGS/test-nginx" get_test_nginx
    fi

    if wants layout || wants suites || wants faults || wants soak; then
        for nginx in "${nginxes[@]}"; do
            test_on "$nginx"
        done
    fi

    if wants builds; then
        run_build_steps
    fi

    if wants docs; then
        run_docs_step
    fi

    if wants examples; then
        run_example_steps
    fi

    if wants packages; then
        run_package_steps
    fi

    if wants scripts; then
        run_script_steps
    fi

    step "no process left" "$LOGS/processes" expect_no_process "$RUN"
    report_all_steps
}

main "$@"
