#!/usr/bin/env bash
# Installs the Debian package on the system's nginx, uses it, upgrades, removes and purges it. In a private root only.
#
# Usage: PORT_BASE=N tests/packages/deb.sh DEB
set -euo pipefail

# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"

DEB=$1
NAME=libnginx-mod-http-combined-upstreams
OBJECT=/usr/lib/nginx/modules/ngx_http_combined_upstreams_module.so
CONF=/usr/share/nginx/modules-available/mod-http-combined-upstreams.conf
LINK=/etc/nginx/modules-enabled/50-mod-http-combined-upstreams.conf

export DEBIAN_FRONTEND=noninteractive

# Where another program of a package would start services.
printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
chmod +x /usr/sbin/policy-rc.d

list_system >/tmp/before

echo "--- install"
dpkg --install "$DEB"
[ -f "$OBJECT" ] || fail "no $OBJECT"
[ "$(cat "$CONF")" = "load_module modules/ngx_http_combined_upstreams_module.so;" ] || fail "$(cat "$CONF")"
[ "$(readlink "$LINK")" = "$CONF" ] || fail "no link $LINK"
dpkg --verify "$NAME"

echo "--- use"
add_site
expect_failover

echo "--- upgrade: what the administrator disabled stays so"
rm "$LINK"
dpkg --install "$DEB"
expect_absent "$LINK"
expect_refused 'unknown directive "upstrand"' nginx -t
ln -s "$CONF" "$LINK"
nginx -t

echo "--- remove, install again"
dpkg --remove "$NAME"
expect_absent "$OBJECT" "$LINK"
expect_refused 'unknown directive "upstrand"' nginx -t
dpkg --install "$DEB"
nginx -t

echo "--- purge"
remove_site
dpkg --purge "$NAME"
nginx -t
list_system >/tmp/after
diff /tmp/before /tmp/after
