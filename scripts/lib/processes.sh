# Finds and ends what a test run may have left behind.
# shellcheck shell=bash

# Prints the ids of the processes that were started for a folder: it stands in their command line, or they
# have a file in it open, or it is their current folder. (nginx overwrites its environment, so that
# cannot tell.)
processes_of() {
    local dir=$1 proc pid

    for proc in /proc/[0-9]*; do
        pid=${proc#/proc/}

        if [ "$pid" -ne $$ ] && [ "$pid" -ne "$BASHPID" ] && process_uses "$proc" "$dir"; then
            printf '%s\n' "$pid"
        fi
    done
}

process_uses() {
    local proc=$1 dir=$2 link

    if tr '\0' ' ' 2>/dev/null <"$proc/cmdline" | grep -qF "$dir"; then
        return
    fi

    for link in "$proc"/cwd "$proc"/fd/*; do
        case $(readlink "$link" 2>/dev/null) in
            "$dir"/*) return ;;
        esac
    done

    return 1
}

# Ends them, each by its id.
end_processes_of() {
    local pid

    for pid in $(processes_of "$1"); do
        kill -KILL "$pid" 2>/dev/null || true
    done
}
