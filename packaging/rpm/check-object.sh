#!/bin/sh
# For %check of the specs: this nginx loads this object, with the directives of the module.
#
# Usage: packaging/rpm/check-object.sh NGINX OBJECT
set -eu

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

cat >"$dir/nginx.conf" <<END
load_module $2;
pid $dir/pid;
events {
}
http {
    access_log off;
    client_body_temp_path $dir/body;
    proxy_temp_path $dir/proxy;
    fastcgi_temp_path $dir/fastcgi;
    uwsgi_temp_path $dir/uwsgi;
    scgi_temp_path $dir/scgi;
    upstream a {
        server 127.0.0.1:8080;
    }
    upstrand b {
        upstream a;
        next_upstream_statuses 5xx;
    }
}
END

"$1" -t -e stderr -p "$dir" -c "$dir/nginx.conf"
