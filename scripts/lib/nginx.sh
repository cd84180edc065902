# Gets nginx in the versions of nginx-src/versions.toml, and builds it.
#
# After `prepare_nginx KEY` these are set:
#   NGINX_KEY          name of the build: 1.28.3-debug, 1.30.6, stock
#   NGINX_SOURCE_DIR   nginx's source folder (of headers only, for Debian's packages)
#   NGINX_BUILD_DIR    what ./configure made: ngx_auto_config.h, Makefile
#   NGINX_BINARY       the nginx to run
# shellcheck shell=bash disable=SC2034 # variables set for the scripts

# What every nginx from source is built with: all stock http modules that need no further library.
NGINX_CONFIGURE_ARGS=(
    --with-compat
    --with-threads
    --with-file-aio
    --with-pcre
    --with-stream
    --with-stream_ssl_module
    --with-stream_ssl_preread_module
    --with-stream_realip_module
    --with-http_ssl_module
    --with-http_v2_module
    --with-http_addition_module
    --with-http_auth_request_module
    --with-http_dav_module
    --with-http_flv_module
    --with-http_gunzip_module
    --with-http_gzip_static_module
    --with-http_mp4_module
    --with-http_random_index_module
    --with-http_realip_module
    --with-http_secure_link_module
    --with-http_slice_module
    --with-http_stub_status_module
    --with-http_sub_module
)

# Newer compilers find more to warn about than the older versions knew of.
NGINX_CC_OPT='-O2 -g -Wno-error'

# Added to those for one build.
EXTRA_CONFIGURE_ARGS=()

# prepare_nginx VERSION FLAVOUR, with FLAVOUR debug, release or the name of another variant
prepare_nginx() {
    local version=$1 flavour=$2

    if [ "$version" = stock ]; then
        prepare_stock_nginx
        return
    fi

    require_pinned_version "$version"

    case $(pinned "$version" from) in
        crate | debian-source) prepare_nginx_from_source "$version" "$flavour" ;;
        debian-package) prepare_nginx_from_package "$version" ;;
        *) die "nginx $version: unknown origin in nginx-src/versions.toml" ;;
    esac
}

# --- from source

prepare_nginx_from_source() {
    local version=$1 flavour=$2 build args stamp

    unpack_nginx_source "$version"

    build=$TARGET/nginx/$version-$flavour
    NGINX_KEY=$version-$flavour
    NGINX_SOURCE_DIR=$ROOT/nginx-src/$version
    NGINX_BUILD_DIR=$build/objs
    NGINX_BINARY=$NGINX_BUILD_DIR/nginx

    mapfile -t args < <(configure_args_of "$version" "$flavour")
    args+=("--prefix=$build/prefix" "--builddir=$NGINX_BUILD_DIR")
    stamp=$(printf '%s\n' "$(pinned "$version" sha256)" "${args[@]}")

    if is_stamped "$build" "$stamp"; then
        return
    fi

    say "building nginx $version ($flavour)"
    rm -rf "$build"
    mkdir -p "$build"/prefix/logs
    (
        cd "$NGINX_SOURCE_DIR" || exit
        logged "$build/configure.log" ./configure "${args[@]}"
        logged "$build/make.log" make -j2 -f "$NGINX_BUILD_DIR/Makefile"
    )
    write_stamp "$build" "$stamp"
}

# Prints the arguments for a flavour of a version, one a line. Of an argument given twice nginx takes the last.
configure_args_of() {
    local version=$1 flavour=$2

    printf '%s\n' "${NGINX_CONFIGURE_ARGS[@]}" "--with-cc-opt=$NGINX_CC_OPT"

    # Not in every version, and like HTTP/2 not among the few of --no-default-args.
    if [[ " ${NGINX_CONFIGURE_ARGS[*]} " == *" --with-http_v2_module "* ]] &&
        grep -q with-http_v3_module "$NGINX_SOURCE_DIR/auto/options"; then
        printf '%s\n' --with-http_v3_module
    fi

    if [ "$flavour" = debug ]; then
        printf '%s\n' --with-debug
    fi

    if [ "${#EXTRA_CONFIGURE_ARGS[@]}" -gt 0 ]; then
        printf '%s\n' "${EXTRA_CONFIGURE_ARGS[@]}"
    fi
}

# The source is unpacked once, after its checksum was verified.
unpack_nginx_source() {
    local version=$1 dir=$ROOT/nginx-src/$1 archive file sha256
    file=$(pinned "$version" file)
    sha256=$(pinned "$version" sha256)

    if is_stamped "$dir" "$sha256"; then
        return
    fi

    archive=$WORKDIR/$file
    fetch_nginx_archive "$version" "$archive"
    check_sha256 "$archive" "$sha256"

    mkdir "$WORKDIR/$version"
    case $file in
        # nginx lies in a folder of the crate; its script lost the name that tarballs give it
        *.crate) tar -xzf "$archive" -C "$WORKDIR/$version" --strip-components=2 --wildcards '*/nginx/*' ;;
        *) tar -xzf "$archive" -C "$WORKDIR/$version" --strip-components=1 ;;
    esac
    [ -x "$WORKDIR/$version/configure" ] || ln -s auto/configure "$WORKDIR/$version/configure"
    write_stamp "$WORKDIR/$version" "$sha256"

    rm -rf "$dir"
    mv "$WORKDIR/$version" "$dir"
}

fetch_nginx_archive() {
    local version=$1 archive=$2 local_archive=$ROOT/nginx-src/nginx-$1.tar.gz

    if [ -f "$local_archive" ]; then
        cp "$local_archive" "$archive"
        return
    fi

    case $(pinned "$version" from) in
        crate)
            fetch_crate "$(pinned "$version" crate)" "$(pinned "$version" crate_version)" "$archive"
            ;;
        debian-source)
            say "fetching the source of nginx $version"
            prepare_apt_lists "$(pinned "$version" suite)" deb-src
            fetch_orig_tarball "$WORKDIR" nginx "${archive##*/}"
            ;;
    esac
}

# Copies a crate's archive from cargo's cache, fetching it into there first if need be.
fetch_crate() {
    local crate=$1 version=$2 archive=$3 cached

    cached=$(cached_crate "${archive##*/}")

    if [ -z "$cached" ]; then
        say "fetching the crate $crate $version"
        mkdir -p "$WORKDIR/fetch/src"
        touch "$WORKDIR/fetch/src/lib.rs"
        printf '%s\n' '[package]' 'name = "fetch"' 'edition = "2024"' '[workspace]' '[dependencies]' \
            "$crate = \"=$version\"" >"$WORKDIR/fetch/Cargo.toml"
        logged "$TARGET/log/fetch-crate.log" \
            cargo fetch --manifest-path "$WORKDIR/fetch/Cargo.toml"
        cached=$(cached_crate "${archive##*/}")
    fi

    [ -n "$cached" ] || die "cargo fetched $crate $version, but its cache has no ${archive##*/}"
    cp "$cached" "$archive"
}

cached_crate() {
    find "${CARGO_HOME:-$HOME/.cargo}/registry/cache" -name "$1" -print -quit 2>/dev/null || true
}

# --- from Debian's packages of another suite

prepare_nginx_from_package() {
    local version=$1 dir=$TARGET/nginx/$1 stamp
    stamp=$(pinned_table "$version.sha256")

    NGINX_KEY=$version
    NGINX_SOURCE_DIR=$dir/src
    NGINX_BUILD_DIR=$dir/objs
    NGINX_BINARY=$dir/nginx

    if is_stamped "$dir" "$stamp"; then
        return
    fi

    say "fetching nginx $version and its libraries"
    fetch_nginx_packages "$version"

    rm -rf "$dir"
    mkdir -p "$dir"
    mv "$WORKDIR/root" "$dir/root"
    configure_headers "$dir/root/usr/share/nginx/src" "$dir"
    write_nginx_wrapper "$dir"
    write_stamp "$dir" "$stamp"
}

fetch_nginx_packages() {
    local version=$1 file sha256 library
    prepare_apt_lists "$(pinned "$version" suite)" deb
    mkdir "$WORKDIR/debs" "$WORKDIR/root"

    while read -r file sha256; do
        fetch_deb "$WORKDIR/debs" "$file"
        check_sha256 "$WORKDIR/debs/$file" "$sha256"
    done < <(pinned_table "$version.sha256")

    for library in $(pinned "$version" libraries); do
        fetch_any_deb "$WORKDIR/debs" "$library"
    done

    for file in "$WORKDIR"/debs/*.deb; do
        dpkg -x "$file" "$WORKDIR/root"
    done
}

# That nginx needs newer libraries than the machine may have: it is started by the dynamic loader that it
# came with. --argv0 gives nginx this script as its own name, so that a binary upgrade (signal USR2, which
# executes argv[0] again) comes through here too.
write_nginx_wrapper() {
    local dir=$1 loader libraries
    loader=$(find "$dir/root" -name 'ld-linux*.so.*' -print -quit)
    libraries=$(dirname "$(find "$dir/root" -name 'libc.so.*' -print -quit)")

    cat >"$dir/nginx" <<EOF
#!/bin/sh
exec "$loader" --library-path "$libraries" --argv0 "\$0" "$dir/root/usr/sbin/nginx" "\$@"
EOF
    chmod +x "$dir/nginx"
}

# --- the system's own

prepare_stock_nginx() {
    local headers dir=$TARGET/nginx/stock stamp

    NGINX_KEY=stock
    NGINX_SOURCE_DIR=$dir/src
    NGINX_BUILD_DIR=$dir/objs
    NGINX_BINARY=$(PATH=$PATH:/usr/sbin command -v nginx || true)

    [ -n "$NGINX_BINARY" ] || die "this system has no nginx installed: see scripts/setup.sh test"
    headers=$(stock_headers)
    [ -n "$headers" ] || die "the headers of the system's nginx are missing: install nginx-dev (Debian) or nginx-mod-devel (RHEL)"

    stamp="$("$NGINX_BINARY" -V 2>&1) $(cksum <"$headers/src/core/nginx.h")"
    if is_stamped "$dir" "$stamp"; then
        return
    fi

    say "configuring the headers of the system's nginx"
    rm -rf "$dir"
    mkdir -p "$dir"
    configure_headers "$headers" "$dir"
    write_stamp "$dir" "$stamp"
}

# nginx-dev's folder on Debian, nginx-mod-devel's on RHEL, Fedora and Amazon Linux.
stock_headers() {
    local dir

    for dir in /usr/share/nginx/src /usr/src/nginx-[0-9]*; do
        if [ -x "$dir/configure" ]; then
            printf '%s\n' "$dir"
            return
        fi
    done
}

# configure_headers SOURCE DIR: copies SOURCE to DIR/src and configures it to DIR/objs, as its packager did.
configure_headers() {
    local dir=$2 args

    cp -R "$1" "$dir/src"

    if [ -f "$dir/src/conf_flags" ]; then
        # shellcheck source=/dev/null
        args=$(. "$dir/src/conf_flags" && printf '%s\n' "${NGX_CONF_FLAGS[@]}")
    else
        args=$("$NGINX_BINARY" -V 2>&1 | sed -n 's/^configure arguments: //p' | xargs printf '%s\n' |
            grep -E '^--with' | grep -vE '^--with-(cc|ld)-opt=|=dynamic$')
    fi

    mapfile -t args <<<"$args"
    (cd "$dir/src" && logged "$dir/configure.log" ./configure --builddir="$dir/objs" "${args[@]}")
}

# --- stamps say what a folder was made from

is_stamped() {
    [ -f "$1/.stamp" ] && [ "$(cat "$1/.stamp")" = "$2" ]
}

write_stamp() {
    printf '%s\n' "$2" >"$1/.stamp"
}
