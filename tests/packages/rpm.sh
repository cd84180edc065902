#!/usr/bin/env bash
# Installs an RPM package of the module on an nginx, uses it, upgrades and erases it. In a private root only.
#
# Usage: PORT_BASE=N tests/packages/rpm.sh RPM NGINX-BINARY NGINX-VERSION
#
# rpm gets a database of its own here. What the package requires is brought by two small packages: "nginx", with the
# binary that the module was built for and a configuration in the distribution's manner, and "machine", which only
# says which libraries this machine has.
set -euo pipefail

# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"

RPM=$1
BINARY=$2
VERSION=$3
OBJECT=/usr/lib64/nginx/modules/ngx_http_combined_upstreams_module.so
LOAD_FILE=/usr/share/nginx/modules/mod-combined-upstreams.conf

NAME=$(rpm --query --package --queryformat '%{name}' "$RPM")
WORK=$(mktemp -d)

# make_package NAME VERSION FILES TAG...: a package of what lies in WORK/NAME.
make_package() {
    local name=$1 version=$2 files=$3
    shift 3

    cat >"$WORK/$name.spec" <<END
Name: $name
Version: $version
Release: 1
Summary: For a test
License: BSD-2-Clause
AutoReqProv: no
$(printf '%s\n' "$@")

%description
For a test.

%install
mkdir -p %{buildroot}
cp -R $WORK/$name/. %{buildroot}

%files
$files
END
    mkdir -p "$WORK/$name"
    rpmbuild -bb --quiet --define "_topdir $WORK/top" --define "_rpmfilename %{name}-%{version}.rpm" "$WORK/$name.spec"
}

make_machine_package() {
    local library provides=()

    for library in /lib/*-linux-gnu/{libc.so.6,libgcc_s.so.1,libm.so.6} /lib/*-linux-gnu/ld-linux*.so.*; do
        while read -r provided; do
            provides+=("Provides: $provided")
        done < <(printf '%s\n' "$(readlink -f "$library")" | /usr/lib/rpm/find-provides)
    done

    make_package machine 1 '' "${provides[@]}" 'Provides: /bin/sh' 'Provides: rtld(GNU_HASH)'
}

# make_nginx_package VERSION
make_nginx_package() {
    local prefix=$WORK/nginx
    rm -rf "$prefix"
    mkdir -p "$prefix/usr/sbin" "$prefix/etc/nginx/conf.d" "$prefix/var/log/nginx" "$prefix/usr/lib64/nginx/modules" \
        "$prefix/usr/share/nginx/modules"
    cp "$BINARY" "$prefix/usr/sbin/nginx"

    cat >"$prefix/etc/nginx/nginx.conf" <<END
pid /run/nginx.pid;
error_log /var/log/nginx/error.log info;
include /usr/share/nginx/modules/*.conf;
events {
}
http {
    access_log off;
    client_body_temp_path /tmp/nginx-body;
    proxy_temp_path /tmp/nginx-proxy;
    fastcgi_temp_path /tmp/nginx-fastcgi;
    uwsgi_temp_path /tmp/nginx-uwsgi;
    scgi_temp_path /tmp/nginx-scgi;
    include /etc/nginx/conf.d/*.conf;
}
END
    make_package nginx "$1" '/*' "Provides: nginx(abi) = $1" "Provides: nginx-r$1"
}

# Debian's rpm warns of itself wherever dpkg is.
rpm() {
    command rpm "$@" 2> >(grep -vE 'RPM should not be used directly|However assuming you know' >&2)
}

# The binary was built for other folders.
nginx() {
    /usr/sbin/nginx -p /etc/nginx/ -c nginx.conf -e /var/log/nginx/error.log "$@"
}

is_nginx_org() {
    [ "$NAME" = nginx-module-combined-upstreams ]
}

# What the user of nginx.org's package is told to write.
add_load_line() {
    ln -sfn /usr/lib64/nginx/modules /etc/nginx/modules
    sed -i "1i load_module modules/${OBJECT##*/};" /etc/nginx/nginx.conf
}

# Every system that uses RPM has the folder of licenses.
rm -rf /etc/nginx /usr/share/nginx
mkdir -p /usr/share/licenses
export HOME=$WORK
echo "%_dbpath $WORK/database" >"$WORK/.rpmmacros"
rpm --initdb
make_machine_package
make_nginx_package "$VERSION"
rpm --install "$WORK/top/RPMS/machine-1.rpm"

echo "--- without its nginx, or with another one"
expect_refused "is needed by $NAME" rpm --install "$RPM"
make_nginx_package 1.99.9
rpm --install "$WORK/top/RPMS/nginx-1.99.9.rpm"
expect_refused "$VERSION is needed by $NAME" rpm --install "$RPM"
rpm --erase nginx
make_nginx_package "$VERSION"
rpm --install "$WORK/top/RPMS/nginx-$VERSION.rpm"
list_system >"$WORK/before"

echo "--- install"
rpm --install "$RPM" | tee "$WORK/output"
rpm --verify "$NAME"

if is_nginx_org; then
    grep -F "load_module modules/${OBJECT##*/};" "$WORK/output"
    expect_absent "$LOAD_FILE"
    cp /etc/nginx/nginx.conf "$WORK/nginx.conf"
    add_load_line
else
    [ ! -s "$WORK/output" ] || fail "a scriptlet speaks"
    [ "$(cat "$LOAD_FILE")" = "load_module \"$OBJECT\";" ] || fail "$(cat "$LOAD_FILE")"
fi

echo "--- use"
add_site
expect_failover

if is_nginx_org; then
    echo "--- use, the object for debugging"
    sed -i 's/_module\.so;/_module-debug.so;/' /etc/nginx/nginx.conf
    expect_failover
fi

echo "--- upgrade"
rpm --upgrade --replacepkgs "$RPM" | tee "$WORK/output"
[ ! -s "$WORK/output" ] || fail "the text of an installation at an upgrade"
nginx -t

echo "--- nginx cannot be upgraded without it"
make_nginx_package 1.99.9
expect_refused "$VERSION is needed by (installed) $NAME" rpm --upgrade "$WORK/top/RPMS/nginx-1.99.9.rpm"

echo "--- erase"
remove_site
if is_nginx_org; then
    rm /etc/nginx/modules
    cp "$WORK/nginx.conf" /etc/nginx/nginx.conf
fi
rpm --erase "$NAME"
list_system >"$WORK/after"
diff "$WORK/before" "$WORK/after"
