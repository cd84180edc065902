# The folder of a test run.
# shellcheck shell=bash disable=SC2034 # variables set for the scripts

# A folder for everything that the run makes, with a short path because of unix sockets.
make_run_folder() {
    RUN=$(mktemp -d /tmp/combined-upstreams.XXXXXX)
    chmod 755 "$RUN"
    LOGS=$TARGET/test-logs/${RUN##*.}
    export TMPDIR=$RUN
    on_exit "$(printf 'rm -rf %q' "$RUN")"
    on_exit "$(printf 'end_processes_of %q' "$RUN")"
}
