# Shared by all scripts: where the repository is, messages, one temporary folder, one lock.
# shellcheck shell=bash

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
TARGET=$ROOT/target

# rustup's place, which is not in the PATH of every non-interactive shell.
PATH=$PATH:${CARGO_HOME:-${HOME:-/nonexistent}/.cargo}/bin

say() {
    printf '%s\n' "$*" >&2
}

die() {
    say "${0##*/}: $*"
    exit 1
}

# Prints the comment block at the top of the calling script, which is its manual.
print_help() {
    awk 'NR == 1 { next } !/^#/ { exit } { sub(/^# ?/, ""); print }' "$0"
}

has_command() {
    command -v "$1" >/dev/null 2>&1
}

# Runs a command with its output in a log file; shows the end of the log only if it fails.
logged() {
    local log=$1
    shift

    mkdir -p "$(dirname "$log")"

    if ! "$@" >"$log" 2>&1; then
        tail -n 30 "$log" >&2
        die "$1 failed (all its output: $log)"
    fi
}

# Adds a command that is run when this shell ends (the script, or a subshell of it), the last one first.
on_exit() {
    if [ "$EXIT_COMMANDS_OF" != "$BASHPID" ]; then
        EXIT_COMMANDS_OF=$BASHPID
        EXIT_COMMANDS=()
    fi

    EXIT_COMMANDS=("$*" "${EXIT_COMMANDS[@]}")
    trap run_exit_commands EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
}

run_exit_commands() {
    local command

    for command in "${EXIT_COMMANDS[@]}"; do
        eval "$command" || true
    done
}

EXIT_COMMANDS=()
EXIT_COMMANDS_OF=

# Sets WORKDIR to a new folder under target/ that is removed when the script ends.
make_workdir() {
    mkdir -p "$TARGET/tmp"
    WORKDIR=$(mktemp -d "$TARGET/tmp/${0##*/}.XXXXXX")
    chmod 755 "$WORKDIR"
    on_exit "$(printf 'rm -rf %q' "$WORKDIR")"
}

# Waits until no other script builds; the lock is given back when this script ends.
take_build_lock() {
    mkdir -p "$TARGET"
    exec {BUILD_LOCK}>"$TARGET/.build.lock"
    flock "$BUILD_LOCK"
}

sha256_of() {
    sha256sum "$1" | cut -d ' ' -f 1
}

check_sha256() {
    local file=$1 expected=$2 found
    found=$(sha256_of "$file")

    if [ "$found" != "$expected" ]; then
        die "${file##*/}: wrong sha256 checksum $found, expected $expected"
    fi
}
