# What scripts/test.sh does with packages: makes them, and uses them in a private root (tests/packages).
# shellcheck shell=bash disable=SC2154 # RUN, LOGS and PORT_BASE are set by test.sh

run_package_steps() {
    local version
    version=$(pinned "" default)

    step "specs name what is linked" "$LOGS/bundled" check_bundled_crates
    step "specs for each distribution" "$LOGS/specs" check_specs
    run_deb_steps
    run_rpm_steps nginx-mod el9 "$version"
    run_rpm_steps nginx-module el9 "$version" --nginx.org
}

# --- Debian's

run_deb_steps() {
    local log=$LOGS/package-deb

    is_debian || return 0
    step "package-deb.sh" "$log" scripts/package-deb.sh
    step "lintian" "$LOGS/lintian" run_lintian "$log"
    step "the DEB installed" "$LOGS/deb" \
        check_installed tests/packages/deb.sh "$(made_by "$log" '.*/libnginx-mod-http-combined-upstreams_[^/]*\.deb')"
}

# This package is in no archive, so no bug asks for it.
run_lintian() {
    local files
    mapfile -t files < <(made_by "$1" '.*\.deb')
    lintian --allow-root --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs "${files[@]}"
}

# --- RPM

# run_rpm_steps PREFIX DIST NGINX-VERSION [OPTION]
run_rpm_steps() {
    local name=$1-combined-upstreams dist=$2 version=$3 log=$LOGS/package-rpm-$1 package
    shift 3

    step "package-rpm.sh${*:+ $*} $dist $version" "$log" scripts/package-rpm.sh "$@" "$dist" "$version"
    package=$(made_by "$log" ".*/$name-[0-9][^/]*64\.rpm")
    step "rpmlint $name" "$LOGS/rpmlint-$name" run_rpmlint "$log"
    step "what $name requires, provides and holds" "$LOGS/query-$name" check_queries "$package" "$version"
    step "the RPM $name installed" "$LOGS/rpm-$name" check_installed_rpm "$package" "$version"
}

# They parse for each distribution, whose names are in the release, and nginx.org's epoch where it has one.
check_specs() {
    local dist release

    for dist in el8 el9 el10 amzn2023 fc44; do
        release=$(query_spec nginx-mod "$dist")
        [ "$release" = "(none):$(module_version)-1.$dist" ]
        release=$(query_spec nginx-module "$dist")

        case $dist in
            el*) [ "$release" = "1:1.2.3+$(module_version)-1.$dist.ngx" ] ;;
            *) [ "$release" = "(none):1.2.3+$(module_version)-1.$dist.ngx" ] ;;
        esac
    done
}

query_spec() {
    local macros
    mapfile -t macros < <(dist_macros "$2")

    rpmspec --load packaging/rpm/macros "${macros[@]}" --define "standin_nginx_version 1.2.3" \
        --define "nginx_version 1.2.3" --query --srpm --queryformat '%{epoch}:%{version}-%{release}' \
        "packaging/rpm/$1-combined-upstreams.spec"
}

# rpm makes a database in the home of whoever asks it.
run_rpmlint() {
    local files
    mapfile -t files < <(made_by "$1" '.*\.rpm')
    HOME=$RUN rpmlint --strict --config packaging/rpm/rpmlint.toml "${files[@]}" packaging/rpm/*.spec
}

check_installed_rpm() {
    local nginx
    nginx=$("$ROOT/scripts/build.sh" --nginx-only "$2")
    check_unpacked "$1" "$nginx"
    check_installed tests/packages/rpm.sh "$1" "$nginx" "$2"
}

# What rpm2cpio unpacks is loaded by the nginx that it was built for.
check_unpacked() {
    local dir=$RUN/unpacked object
    rm -rf "$dir"
    mkdir "$dir"
    (cd "$dir" && HOME=$RUN rpm2cpio "$1" | cpio --extract --make-directories --quiet)

    for object in "$dir"/usr/lib64/nginx/modules/*.so; do
        check_module_loads "$2" "$object"
    done
}

check_queries() {
    local package=$1 version=$2 query

    for query in requires provides list; do
        echo "--- $query"
        rpm --dbpath "$RUN/rpmdb" --query --package "--$query" "$package" | tee "$RUN/$query"
    done

    rpm --dbpath "$RUN/rpmdb" --query --package --list "${package/upstreams-/upstreams-debuginfo-}" |
        grep -E '/ngx_http_combined_upstreams_module\.so.*\.debug$'

    diff <(list_bundled) <(grep -F 'bundled(' "$RUN/provides" | sort)
    grep -x '/usr/lib64/nginx/modules/ngx_http_combined_upstreams_module.so' "$RUN/list"
    grep -E '^/usr/share/licenses/.*/LICENSE$' "$RUN/list"
    grep -E '^/usr/share/licenses/.*/regex-[^/]*/LICENSE-MIT$' "$RUN/list"
    expect_only_c_library "$RUN/requires"

    case ${package##*/} in
        nginx-mod-*)
            grep -x "nginx(abi) = $version" "$RUN/requires"
            grep -x /usr/share/nginx/modules/mod-combined-upstreams.conf "$RUN/list"
            ;;
        nginx-module-*)
            grep -x "nginx-r$version" "$RUN/requires"
            grep -x "nginx-module-combined-upstreams-r$(module_version)" "$RUN/provides"
            grep -x /usr/lib64/nginx/modules/ngx_http_combined_upstreams_module-debug.so "$RUN/list"
            ;;
    esac
}

# Whatever else it would need might not be on the machine that it is installed on.
expect_only_c_library() {
    local other
    other=$(grep -E '\.so' "$1" | grep -vE '^(lib(c|m|gcc_s)\.so|ld-linux)' || true)

    if [ -n "$other" ]; then
        echo "it needs: $other"
        return 1
    fi
}

# The specs cannot compute this list on every distribution, so they hold it.
check_bundled_crates() {
    local spec

    for spec in packaging/rpm/*.spec; do
        diff <(list_bundled) <(sed -n 's/^Provides: *\(bundled(.*\)/\1/p' "$spec" | sort)
    done
}

list_bundled() {
    packaging/vendored-crates.sh list | sed -E 's/^([^ ]+) ([^ ]+).*/bundled(crate(\1)) = \2/' | sort
}

# --- both

# made_by LOG PATTERN: the paths in a log of a packaging script that match.
made_by() {
    grep -xE "$2" "$1" || true
}

# check_installed SCRIPT ARGUMENT...
check_installed() {
    if ! can_have_private_root; then
        echo "ok 1 # skip only root can install in a private root"
        return
    fi

    PORT_BASE=$PORT_BASE in_private_root "$ROOT/$1" "${@:2}"
}
