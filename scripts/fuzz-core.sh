#!/usr/bin/env bash
# Runs the parsers of directives and the walk of core/ on random inputs, each compared with what the specification
# says in other words.
#
# Usage: scripts/fuzz-core.sh [--guided] [COUNT [FIRST]]
#
# --guided libFuzzer makes the inputs, guided by the code that they reach; without it they are random
# COUNT    executions of each target (default: 1000000)
# FIRST    the number of the first one (default: 0); each number stands for one random input, always the same
#
# A random execution that fails is printed with its number; an input of libFuzzer that does is kept in target/fuzz, and
# what it has found there serves the next run. The targets are in core/tests/fuzz/targets.rs; `cargo fuzz` takes those
# of core/fuzz, too.
set -euo pipefail

# shellcheck source=lib/all.sh
. "$(dirname "$0")/lib/all.sh"

TARGETS=(statuses singlets weights chunks walks)

# What cargo fuzz gives to rustc, without a sanitizer, which needs a nightly one: core/ has no unsafe code.
FLAGS='-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 -Cdebug-assertions -Coverflow-checks'

run_guided() {
    local host target folder=$TARGET/fuzz
    host=$(rustc -vV | sed -n 's/^host: //p')

    RUSTFLAGS=$(xargs <<<"$FLAGS") cargo build --release --locked --manifest-path core/fuzz/Cargo.toml \
        --target "$host" --target-dir "$folder"

    for target in "${TARGETS[@]}"; do
        say "$target"
        mkdir -p "$folder/corpus/$target"
        logged "$folder/$target.log" "$folder/$host/release/$target" -runs="$1" -max_len=512 -artifact_prefix="$folder/" \
            -print_final_stats=1 "$folder/corpus/$target"
        grep -E '^(Done|stat::number_of_executed_units|stat::new_units_added)' "$folder/$target.log"
    done
}

run_random() {
    EXECUTIONS=$1 EXECUTIONS_FROM=$2 cargo test --release --locked -p combined-upstreams-core --test fuzz
}

main() {
    local run=run_random

    case ${1:-} in
        --help) print_help && exit ;;
        --guided) run=run_guided && shift ;;
    esac

    require_rust
    cd "$ROOT"
    "$run" "${1:-1000000}" "${2:-0}"
}

main "$@"
