# Programs to measure with and against, from Debian's packages: unpacked under target/, so that nothing is installed
# and no service is started.
# shellcheck shell=bash disable=SC2154 # APT_DIR is set by apt.sh

BENCH_PACKAGES=(wrk haproxy libnginx-mod-http-lua)

# Sets TOOLS to the folder with the packages, and with those that they need and the machine lacks.
prepare_bench_tools() {
    local dir=$TARGET/bench-tools package

    TOOLS=$dir/root
    if is_stamped "$dir" "${BENCH_PACKAGES[*]}"; then
        return
    fi

    say "fetching ${BENCH_PACKAGES[*]}"
    prepare_apt_lists "$(debian_codename)" deb
    rm -rf "$dir"
    mkdir -p "$dir/debs" "$TOOLS"

    for package in $(missing_packages_of "${BENCH_PACKAGES[@]}"); do
        fetch_any_deb "$dir/debs" "$package"
    done
    for package in "$dir"/debs/*.deb; do
        dpkg -x "$package" "$TOOLS"
    done

    write_stamp "$dir" "${BENCH_PACKAGES[*]}"
}

# Prints the packages, and all that they need, without those that are installed except themselves.
missing_packages_of() {
    printf '%s\n' "$@"
    apt_private "$APT_DIR" --simulate --no-install-recommends install "$@" | awk '/^Inst / { print $2 }' |
        grep -vxF -f <(printf '%s\n' "$@") || true
}

# with_tools COMMAND...: as a command of those packages, with their libraries.
with_tools() {
    local libraries
    libraries=$(find "$TOOLS" -name '*.so.*' -printf '%h\n' | sort -u | paste -s -d :)

    PATH=$TOOLS/usr/bin:$TOOLS/usr/sbin:$PATH LD_LIBRARY_PATH=$libraries exec "$@"
}
