#!/usr/bin/env bash
# Makes what a release consists of, in target/packages/release.
#
# Usage: scripts/release.sh [--reproduce] [--draft]
#
# The files, one a line of standard output:
#   nginx-combined-upstreams-VERSION.tar.gz         the source, as git has it
#   nginx-combined-upstreams-VERSION-vendor.tar.gz  the crates that it is built with (cargo vendor --locked)
#   CHANGES-VERSION.md                              this version's section of CHANGELOG.md
#   SHA256SUMS                                      the checksums of these, for sha256sum --check
#
# --reproduce  also builds the module from the two archives twice, by nginx's own ./configure, without a network, in
#              folders of different names and with different homes of cargo; fails if the two objects differ.
#              Their checksum is the last line then. It holds for the same compilers and C library.
# --draft      the working tree as it is, changes that are not committed and a missing date included
set -euo pipefail

# shellcheck source=lib/all.sh
. "$(dirname "$0")/lib/all.sh"

OUT=$TARGET/packages/release

reproduce=no
draft=no

parse_arguments() {
    while [ $# -gt 0 ]; do
        case $1 in
            --reproduce) reproduce=yes ;;
            --draft) draft=yes ;;
            --help) print_help && exit ;;
            *) die "unknown argument $1 (see --help)" ;;
        esac
        shift
    done
}

# Everything that names the version names the same one.
check_versions() {
    local file found

    while read -r file found; do
        [ "$found" = "$version" ] || die "$file has version $found, Cargo.toml has $version"
    done < <(
        cd "$ROOT"
        sed -n 's/^version = "\(.*\)"/core\/Cargo.toml \1/p' core/Cargo.toml | head -n 1
        sed -n 's/^Version: *\(.*\)/packaging\/rpm\/nginx-mod-combined-upstreams.spec \1/p' \
            packaging/rpm/nginx-mod-combined-upstreams.spec
        sed -n 's/^%global module_version \(.*\)/packaging\/rpm\/nginx-module-combined-upstreams.spec \1/p' \
            packaging/rpm/nginx-module-combined-upstreams.spec
        sed -n '1s/.*(\(.*\)-[^-]*).*/packaging\/debian\/changelog \1/p' packaging/debian/changelog
    )
}

check_tree() {
    [ -z "$(git -C "$ROOT" status --porcelain)" ] || die "the working tree has changes (see --draft)"

    if ! grep -qE "^## \[$version\] - [0-9]{4}-[0-9]{2}-[0-9]{2}\$" "$ROOT/CHANGELOG.md"; then
        die "CHANGELOG.md has no date for version $version (see --draft)"
    fi
}

write_changes() {
    awk -v heading="## [$version]" '
        index($0, "## [") == 1 { inside = (index($0, heading) == 1) }
        inside' "$ROOT/CHANGELOG.md" >"$OUT/CHANGES-$version.md"
    [ -s "$OUT/CHANGES-$version.md" ] || die "CHANGELOG.md has no section for version $version"
}

make_release() {
    rm -rf "$OUT"
    mkdir -p "$OUT"
    make_source_archive "$OUT/$PROJECT-$version.tar.gz"
    make_vendor_archive "$OUT/$PROJECT-$version-vendor.tar.gz"
    write_changes
    (cd "$OUT" && sha256sum "$PROJECT"-* CHANGES-* >SHA256SUMS)
    find "$OUT" -type f | sort
}

# build_from_archives DIR: the object is made in a folder of that name.
build_from_archives() {
    local dir=$1 nginx
    nginx=$(pinned "" default)

    say "building in ${dir#"$WORKDIR"/}"
    unpack_nginx_source "$nginx"
    mkdir -p "$dir"
    cp -R "$ROOT/nginx-src/$nginx" "$dir/nginx"
    tar -xzf "$OUT/$PROJECT-$version.tar.gz" -C "$dir"
    tar -xzf "$OUT/$PROJECT-$version-vendor.tar.gz" -C "$dir/$PROJECT-$version"
    (
        cd "$dir/$PROJECT-$version"
        packaging/vendored-crates.sh config
        cd "$dir/nginx"
        PATH=$(dirname "$(real_cargo)"):$PATH
        export CARGO_HOME=$dir/cargo
        unset RUSTFLAGS CFLAGS
        logged "$TARGET/log/reproduce-configure.log" ./configure --with-compat \
            --with-cc-opt="-O2 -g -ffile-prefix-map=$PWD=/nginx" --add-dynamic-module="$dir/$PROJECT-$version"
        logged "$TARGET/log/reproduce-make.log" make -j2 modules
    )
}

check_reproducible() {
    local first=$WORKDIR/a second=$WORKDIR/another/folder/of/a/longer/name object=nginx/objs/$MODULE_NAME.so

    build_from_archives "$first"
    build_from_archives "$second"
    cmp "$first/$object" "$second/$object" || die "the objects of two builds differ"
    (cd "$first/${object%/*}" && sha256sum "${object##*/}")
}

main() {
    parse_arguments "$@"
    version=$(module_version)
    check_versions
    [ "$draft" = yes ] || check_tree
    require_build_tools
    take_build_lock
    make_workdir
    make_release

    if [ "$reproduce" = yes ]; then
        check_reproducible
    fi
}

main "$@"
