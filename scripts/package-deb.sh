#!/usr/bin/env bash
# Makes the Debian package of the module for the system's own nginx, in target/packages/deb.
#
# Usage: scripts/package-deb.sh [--source]
#
# The two source archives are made from the working tree (scripts/release.sh makes the same ones), then
# dpkg-buildpackage builds with the crates of the second archive and without a network.
# The lines of standard output are the paths of what was made: the .dsc, then the .deb files.
#
# --source   the source package only
#
# Rust may come from the system's package manager or from rustup: Debian 12 and Ubuntu 24.04 have an older one
# than the module needs. What else is missing is installed by scripts/setup.sh package.
set -euo pipefail

# shellcheck source=lib/all.sh
. "$(dirname "$0")/lib/all.sh"

PACKAGE=libnginx-mod-http-combined-upstreams
OUT=$TARGET/packages/deb

what=all

parse_arguments() {
    while [ $# -gt 0 ]; do
        case $1 in
            --source) what=source ;;
            --help) print_help && exit ;;
            *) die "unknown argument $1 (see --help)" ;;
        esac
        shift
    done
}

# Everything that debian/control asks for has to be there, except for Rust's packages, where cargo itself is new
# enough.
require_build_depends() {
    local missing
    require_rust
    missing=$({ dpkg-checkbuilddeps "$source/debian/control" 2>&1 || true; } |
        sed -e 's/.*: //' -e 's/ ([^)]*)//g' | xargs -n 1 | sed -E '/^(cargo|rustc)?$/d' | xargs)

    [ -z "$missing" ] || die "missing: $missing; run scripts/setup.sh package"
}

lay_out_source() {
    local version archive
    version=$(module_version)
    archive=$OUT/${PACKAGE}_$version.orig

    make_source_archive "$archive.tar.gz"
    make_vendor_archive "$archive-vendor.tar.gz"

    tar -xzf "$archive.tar.gz" -C "$OUT"
    source=$OUT/$PROJECT-$version
    tar -xzf "$archive-vendor.tar.gz" -C "$source"
    cp -R "$ROOT/packaging/debian" "$source/debian"
}

# The build runs in an environment of its own, with the real cargo in its PATH: rustup's needs a home.
build() {
    local options=(--no-sign --no-check-builddeps)

    [ "$what" = all ] || options+=(--build=source)

    (
        cd "$source"
        logged "$OUT/build.log" env -u RUSTFLAGS -u CARGO_HOME \
            PATH="$(dirname "$(real_cargo)"):$PATH" LC_ALL=C.UTF-8 SOURCE_DATE_EPOCH="$(source_date_epoch)" \
            dpkg-buildpackage "${options[@]}"
    )
}

main() {
    parse_arguments "$@"
    has_command dpkg-buildpackage || die "dpkg-buildpackage is needed: install dpkg-dev"
    take_build_lock
    make_workdir
    rm -rf "$OUT"
    mkdir -p "$OUT"
    lay_out_source
    require_build_depends
    build
    find "$OUT" -maxdepth 1 \( -name '*.dsc' -o -name '*.deb' \) | sort -t . -k 1,1r
}

main "$@"
