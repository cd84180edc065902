# What scripts make packages and releases from: the archives of the source and of the crates that it needs.
# shellcheck shell=bash disable=SC2034 # variables set for the scripts

PROJECT="nginx-combined-upstreams"

# What the module is built on. Crates that none of these needs are only named in the vendor archive.
PACKAGED_PLATFORMS=(x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu)

# What cargo itself gives the files of a crate.
DATE_OF_CRATES=1153704088

module_version() {
    sed -n 's/^version = "\(.*\)"/\1/p' "$ROOT/Cargo.toml" | head -n 1
}

# When the sources last changed, for the dates in archives and packages. Outside of git: the day in the changelog
# of the Debian package.
source_date_epoch() {
    git -C "$ROOT" log -1 --format=%ct 2>/dev/null ||
        date -d "$(sed -n 's/^ -- .*>  //p' "$ROOT/packaging/debian/changelog" | head -n 1)" +%s
}

# make_source_archive FILE: everything that git knows or would take up, as it is now.
make_source_archive() {
    local file=$1

    list_sources | tar_reproducibly "$file" "$(source_date_epoch)" -C "$ROOT" --null --no-recursion -T - \
        --transform "s,^,$PROJECT-$(module_version)/,S"
}

list_sources() {
    if [ -e "$ROOT/.git" ]; then
        comm -z -23 <(git -C "$ROOT" ls-files -z --cached --others --exclude-standard | sort -zu) \
            <(git -C "$ROOT" ls-files -z --deleted | sort -zu)
    else
        (cd "$ROOT" && find . -type f -not -path './target/*' -printf '%P\0')
    fi
}

# make_vendor_archive FILE: the crates of Cargo.lock in a folder vendor/, as `cargo vendor` lays them out. Of those
# that are not built for a package (they are for tests, or for other systems) only the manifest is kept: cargo asks
# for it, and they are the largest ones. Made once for a Cargo.lock.
make_vendor_archive() {
    local file=$1 cached
    cached=$TARGET/packages/vendor/$(cat "$ROOT/Cargo.lock" "$ROOT/Cargo.toml" "$LIB/packaging.sh" | sha256sum |
        cut -c 1-16).tar.gz

    if [ ! -f "$cached" ]; then
        say "gathering the crates"
        gather_crates "$WORKDIR/vendor"
        mkdir -p "${cached%/*}"
        tar_reproducibly "$cached.new" "$DATE_OF_CRATES" -C "$WORKDIR" vendor
        mv "$cached.new" "$cached"
    fi

    cp "$cached" "$file"
}

gather_crates() {
    local dir=$1 needed=$WORKDIR/needed-crates crate

    logged "$TARGET/log/cargo-vendor.log" \
        cargo vendor --locked --versioned-dirs --manifest-path "$ROOT/Cargo.toml" "$dir"
    list_needed_crates >"$needed"

    for crate in "$dir"/*; do
        if ! grep -qxF "${crate##*/}" "$needed"; then
            keep_only_manifest "$crate"
        fi

        remove_windows_binaries "$crate"
    done
}

# Prints NAME-VERSION of each crate that is compiled for a package.
list_needed_crates() {
    local platform

    for platform in "${PACKAGED_PLATFORMS[@]}"; do
        cargo tree --locked --manifest-path "$ROOT/Cargo.toml" --package "$PROJECT" --edges normal,build \
            --target "$platform" --prefix none --format '{p}'
    done | sed -n -E 's/^([^ ]+) v([^ ]+).*/\1-\2/p' | sort -u
}

# A crate without content: its checksum, which Cargo.lock names, and no file to check.
keep_only_manifest() {
    local crate=$1 package
    package=$(sed -E 's/.*"package":"([0-9a-f]*)".*/\1/' "$crate/.cargo-checksum.json")

    find "$crate" -mindepth 1 -maxdepth 1 -not -name Cargo.toml -exec rm -rf {} +
    mkdir -p "$crate/src"
    : >"$crate/src/lib.rs"
    printf '{"files":{},"package":"%s"}\n' "$package" >"$crate/.cargo-checksum.json"
}

# A source package holds no programs, and these few are for tests on Windows.
remove_windows_binaries() {
    find "$1" -name '*.dll' -delete
    sed -i -E -e 's/"[^"]*\.dll":"[0-9a-f]*",?//g' -e 's/,\}/}/' "$1/.cargo-checksum.json"
}

# tar_reproducibly FILE DATE ARGUMENT...: the same content gives the same file. DATE is in seconds since 1970.
tar_reproducibly() {
    local file=$1 date=$2
    shift 2

    tar --create --sort=name --owner=0 --group=0 --numeric-owner --mode='u+rw,go=u-w' --format=gnu \
        --mtime="@$date" "$@" | gzip --no-name -9 >"$file"
}

# Prints arguments for rpmbuild: the macros that a system of that name has (el9, amzn2023, fc44).
dist_macros() {
    local dist=$1

    printf '%s\n' --define "dist .$dist"

    case $dist in
        el*) printf '%s\n' --define "rhel ${dist#el}" ;;
        fc*) printf '%s\n' --define "fedora ${dist#fc}" ;;
        amzn*) printf '%s\n' --define "amzn ${dist#amzn}" ;;
    esac
}

# Prints the path of cargo itself where the one in the PATH is rustup's, which finds it by the user's home.
real_cargo() {
    if has_command rustup; then
        rustup which cargo
    else
        command -v cargo
    fi
}
