# Finds and ends what a test run may have left behind.
# shellcheck shell=bash

# Prints the ids of the processes that were started for a folder: it stands in their command line, or they
# have a file in it open, or it is their current folder. (nginx overwrites its environment, so that
# cannot tell.)
processes_of() {
    local dir=$1

    {
        grep -lF -f <(printf '%s\n' "$dir") /proc/[0-9]*/cmdline
        find /proc/[0-9]*/cwd /proc/[0-9]*/fd -lname "$dir" -o -lname "$dir/*"
    } 2>/dev/null | cut -d / -f 3 | sort -nu | grep -vx "$$" || true
}

# Ends them, each by its id.
end_processes_of() {
    local pid

    for pid in $(processes_of "$1"); do
        kill -KILL "$pid" 2>/dev/null || true
    done
}
