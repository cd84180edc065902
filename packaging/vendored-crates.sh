#!/bin/sh
# For the builds of packages: crates from the vendor archive instead of a registry, and what has to be told of them.
# Run in the source folder, where the vendor archive was unpacked.
#
# Usage: packaging/vendored-crates.sh config
#        packaging/vendored-crates.sh list
#        packaging/vendored-crates.sh licenses DIR
#
# config        makes cargo take all crates from vendor/ (writes .cargo/config.toml)
# list          prints "name version license" of each crate that is linked into the module, sorted
# licenses DIR  copies their license files to DIR/name-version/, and this list to DIR/LIST
set -eu

CARGO=${CARGO:-cargo}

write_config() {
    mkdir -p .cargo
    cat >.cargo/config.toml <<END
[source.crates-io]
replace-with = "vendored"

[source.vendored]
directory = "vendor"

[net]
offline = true
END
}

# Neither those of build scripts nor procedural macros end in the module.
list_linked() {
    "$CARGO" tree --locked --offline --package nginx-combined-upstreams --edges normal,no-proc-macro \
        --prefix none --format '{p} {l}' |
        sed -e '/ (\/.*)/d' -e 's/ (\*)$//' -e 's/ v/ /' | sort -u
}

copy_licenses() {
    mkdir -p "$1"
    list_linked >"$1/LIST"

    while read -r name version _; do
        mkdir -p "$1/$name-$version"
        find "vendor/$name-$version" -maxdepth 1 -type f \
            \( -iname '*license*' -o -iname '*copying*' -o -iname 'copyright*' -o -iname 'notice*' \) \
            -exec cp {} "$1/$name-$version/" \;
    done <"$1/LIST"
}

case ${1:-} in
    config) write_config ;;
    list) list_linked ;;
    licenses) copy_licenses "$2" ;;
    *)
        sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
esac
