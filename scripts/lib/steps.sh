# Test steps: each is a command whose output goes to a log; one line tells how it went.
# shellcheck shell=bash

PASSED=0
FAILED=0
SKIPPED=0

# step LABEL LOG COMMAND...: the tests that its output tells of are counted (TAP's and cargo's), or else
# the step itself counts as one.
step() {
    local label=$1 log=$2 started=$SECONDS status
    shift 2

    mkdir -p "$(dirname "$log")"
    set +e
    (
        set -e
        "$@"
    ) >"$log" 2>&1 </dev/null
    status=$?
    set -e

    count_tests "$log" "$status"
    report_step "$label" "$log" "$status" $((SECONDS - started))

    return 0
}

count_tests() {
    local log=$1 status=$2 passed failed skipped
    read -r passed failed skipped < <(awk '
        /^ok [0-9]+ .*# (skip|SKIP)/ { skipped++; next }
        /^ok [0-9]+/ { passed++ }
        /^not ok [0-9]+/ && !/# TODO/ { failed++ }
        /^test result: / {
            for (i = 1; i < NF; i++) {
                if ($(i + 1) == "passed;") passed += $i
                if ($(i + 1) == "failed;") failed += $i
                if ($(i + 1) == "ignored;") skipped += $i
            }
        }
        END { print passed + 0, failed + 0, skipped + 0 }
    ' "$log")

    if [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; then
        failed=1
    elif [ "$status" -eq 0 ] && [ $((passed + failed + skipped)) -eq 0 ]; then
        passed=1
    fi

    PASSED=$((PASSED + passed))
    FAILED=$((FAILED + failed))
    SKIPPED=$((SKIPPED + skipped))
}

report_step() {
    local label=$1 log=$2 status=$3 seconds=$4

    if [ "$status" -eq 0 ]; then
        printf 'ok    %s (%d s)\n' "$label" "$seconds"
    else
        printf 'FAIL  %s (%d s)\n' "$label" "$seconds"
        uniq "$log" | tail -n 60 | sed 's/^/      /'
        printf '      all its output: %s\n' "$log"
    fi
}

# The closing line; fails if a test failed. Logs of a run in which none did are not kept.
report_all_steps() {
    [ "$FAILED" -gt 0 ] || rm -rf "$LOGS"

    if [ "$SKIPPED" -gt 0 ]; then
        printf '%d passed, %d failed, %d skipped\n' "$PASSED" "$FAILED" "$SKIPPED"
    else
        printf '%d passed, %d failed\n' "$PASSED" "$FAILED"
    fi

    [ "$FAILED" -eq 0 ]
}
