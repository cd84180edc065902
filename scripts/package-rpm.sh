#!/usr/bin/env bash
# Makes the RPM packages of the module, source and binary, in target/packages/rpm/DIST (DIST-nginx.org for those).
#
# Usage: scripts/package-rpm.sh [--nginx.org] [--source] [DIST] [NGINX-VERSION]
#
# DIST           el8, el9, el10, fc44, amzn2023 or the like: what goes into the release (default: this machine's,
#                or el9)
# NGINX-VERSION  one of nginx-src/versions.toml (default: the one named there)
# --nginx.org    the package for the nginx of nginx.org's own packages; default: for the distribution's nginx
# --source       the source package only
#
# rpmbuild works in a private top folder, with the crates of a vendor archive and without a network. On Fedora, RHEL
# and Amazon Linux, with nginx-mod-devel, the distribution's macros are used, and its nginx: NGINX-VERSION does not
# count there. Elsewhere packaging/rpm/macros stands in for them, and the package has no build requirements: such a
# package shows that the spec is right, and fits an nginx of that version on a system like this one.
# The lines of standard output are the paths of what was made.
set -euo pipefail

# shellcheck source=lib/all.sh
. "$(dirname "$0")/lib/all.sh"

dist=
version=
spec=nginx-mod-combined-upstreams
what=-ba

parse_arguments() {
    while [ $# -gt 0 ]; do
        case $1 in
            --nginx.org) spec=nginx-module-combined-upstreams ;;
            --source) what=-bs ;;
            --help) print_help && exit ;;
            -*) die "unknown option $1 (see --help)" ;;
            [0-9]*) version=$1 ;;
            *) dist=$1 ;;
        esac
        shift
    done

    dist=${dist:-$(machine_dist)}
    version=${version:-$(pinned "" default)}
}

machine_dist() {
    local found
    found=$(rpm --eval '%{?dist}')
    printf '%s\n' "${found:-.el9}" | sed 's/^\.//'
}

has_distribution_macros() {
    [ -n "$(rpm --eval '%{?_nginx_abiversion}')" ]
}

# Sets OPTIONS, for rpmbuild. Neither the user's nor this machine's settings of folders have a part in it.
set_options() {
    mapfile -t OPTIONS < <(dist_macros "$dist")
    OPTIONS+=(--define "_topdir $OUT" --define "nginx_version $version" --define "_smp_build_ncpus $(nproc)")

    if ! has_distribution_macros; then
        prepare_nginx "$version" debug
        OPTIONS+=(
            --nodeps --define "_dbpath $OUT/database" --load "$ROOT/packaging/rpm/macros"
            --define "standin_nginx_version $version"
            --define "standin_nginx_source $NGINX_SOURCE_DIR"
            --define "standin_nginx_binary $NGINX_BINARY"
        )
    fi
}

make_sources() {
    local archive
    archive=$OUT/SOURCES/$PROJECT-$(module_version)

    mkdir -p "$OUT/SOURCES" "$OUT/SPECS"
    make_source_archive "$archive.tar.gz"
    make_vendor_archive "$archive-vendor.tar.gz"
    cp "$ROOT/packaging/rpm/$spec.spec" "$OUT/SPECS"

    if [ "$spec" = nginx-module-combined-upstreams ]; then
        make_nginx_archive
    fi
}

make_nginx_archive() {
    require_pinned_version "$version"
    unpack_nginx_source "$version"
    tar_reproducibly "$OUT/SOURCES/nginx-$version.tar.gz" "$DATE_OF_CRATES" -C "$ROOT/nginx-src" \
        --exclude .stamp --transform "s,^$version,nginx-$version,S" "$version"
}

build() {
    logged "$OUT/build.log" env -u RUSTFLAGS -u CARGO_HOME \
        PATH="$(dirname "$(real_cargo)"):$PATH" LC_ALL=C.UTF-8 SOURCE_DATE_EPOCH="$(source_date_epoch)" \
        rpmbuild "$what" "${OPTIONS[@]}" "$OUT/SPECS/$spec.spec"
}

main() {
    parse_arguments "$@"
    has_command rpmbuild || die "rpmbuild is needed; run scripts/setup.sh package"
    require_rust
    take_build_lock
    make_workdir

    OUT=$TARGET/packages/rpm/$dist
    [ "$spec" = nginx-mod-combined-upstreams ] || OUT+=-nginx.org
    rm -rf "$OUT"
    mkdir -p "$OUT"
    set_options
    make_sources
    build
    find "$OUT/SRPMS" "$OUT/RPMS" -name '*.rpm' | sort
}

main "$@"
