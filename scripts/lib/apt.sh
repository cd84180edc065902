# Single files from another suite of the machine's own Debian package source, with lists of our own
# under target/apt: the machine's lists and packages are left alone.
# shellcheck shell=bash

apt_private() {
    local dir=$1
    shift

    apt-get -qq \
        -o Dir::Etc::SourceList=/dev/null \
        -o Dir::Etc::SourceParts="$dir/sources" \
        -o Dir::State::Lists="$dir/lists" \
        -o Dir::Cache="$dir/cache" \
        -o APT::Sandbox::User="$(id -un)" \
        -o Acquire::Languages=none \
        -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false \
        "$@"
}

# Prints the machine's package source entries with another suite and type (deb or deb-src). Only entries of
# the release itself are used, not those of its updates. This is for entries of several lines (deb822).
derived_apt_sources() {
    local suite=$1 type=$2

    apt_source_files '*.sources' | sed '/^#/d' |
        awk -v codename="$(debian_codename)" -v suite="$suite" -v type="$type" '
            BEGIN { RS = ""; ORS = "\n\n" }
            $0 ~ "Suites:[^\n]*[ \t]" codename "([ \t\n]|$)" {
                sub(/Types:[^\n]*/, "Types: " type)
                sub(/Suites:[^\n]*/, "Suites: " suite)
                sub(/Components:[^\n]*/, "Components: main")
                print
            }'
}

# The same for entries of one line each: deb [options] URI suite components
derived_apt_lines() {
    local suite=$1 type=$2 entry='((\[[^]]*\][[:space:]]+)?[^[:space:]]+)'

    apt_source_files '*.list' |
        sed -n -E "s/^deb[[:space:]]+${entry}[[:space:]]+$(debian_codename)[[:space:]].*/$type \1 $suite main/p"
}

# Prints the content of the machine's apt source files with such a name, an empty line after each.
apt_source_files() {
    local file

    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
        # shellcheck disable=SC2254
        case $file in
            $1) [ ! -f "$file" ] || { cat "$file" && echo; } ;;
        esac
    done
}

debian_codename() {
    # shellcheck source=/dev/null
    (. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
}

# Sets APT_DIR to a folder with fresh package lists of that suite.
prepare_apt_lists() {
    local suite=$1 type=$2

    has_command apt-get || die "suite $suite of Debian is needed here, but this machine has no apt-get"

    APT_DIR=$TARGET/apt/$suite-$type
    mkdir -p "$APT_DIR"/sources "$APT_DIR"/lists/partial "$APT_DIR"/cache/archives/partial
    derived_apt_sources "$suite" "$type" >"$APT_DIR/sources/derived.sources"
    derived_apt_lines "$suite" "$type" >"$APT_DIR/sources/derived.list"

    if [ ! -s "$APT_DIR/sources/derived.sources" ] && [ ! -s "$APT_DIR/sources/derived.list" ]; then
        die "no source for Debian's suite $suite can be derived from this machine's apt sources"
    fi

    apt_private "$APT_DIR" update >"$APT_DIR/update.log" 2>&1 ||
        die "cannot read the package lists of Debian's suite $suite (see $APT_DIR/update.log)"
}

# fetch_deb DIR FILE: the binary package with that file name (name_version_arch.deb). Lists: deb.
fetch_deb() {
    local dir=$1 file=$2 name version rest
    IFS=_ read -r name version rest <<<"$file"

    (cd "$dir" && apt_private "$APT_DIR" download "$name=${version//%3a/:}") >"$APT_DIR/$name.log" 2>&1 || true

    [ -f "$dir/$file" ] || die "the package source does not have $file (see $APT_DIR/$name.log)"
}

# fetch_any_deb DIR NAME: the binary package in the version that the suite has. Lists: deb.
fetch_any_deb() {
    local dir=$1 name=$2

    (cd "$dir" && apt_private "$APT_DIR" download "$name") >"$APT_DIR/$name.log" 2>&1 ||
        die "the package source does not have $name (see $APT_DIR/$name.log)"
}

# fetch_orig_tarball DIR PACKAGE FILE: a source package's upstream tarball. Lists: deb-src. The other parts
# of the source package are not needed, and a mirror may lack them: that makes apt-get fail, so only
# the file counts.
fetch_orig_tarball() {
    local dir=$1 package=$2 file=$3

    (cd "$dir" && apt_private "$APT_DIR" source --download-only "$package") >"$APT_DIR/$package.log" 2>&1 || true

    [ -f "$dir/$file" ] || die "the package source does not have $file (see $APT_DIR/$package.log)"
}
