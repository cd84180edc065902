# Shared by the tests of installed packages. They change the system that they run in: only for a private root.
# shellcheck shell=bash

PORT=${PORT_BASE:?}
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

fail() {
    echo "not as it should be: $*"
    exit 1
}

expect_absent() {
    local file

    for file in "$@"; do
        if [ -e "$file" ] || [ -L "$file" ]; then
            fail "there is $file"
        fi
    done
}

# expect_refused TEXT COMMAND...: it fails, and says this.
expect_refused() {
    local text=$1 output
    shift

    if output=$("$@" 2>&1); then
        fail "succeeded: $*"
    fi

    printf '%s\n' "$output"
    [[ $output == *"$text"* ]] || fail "without '$text': $*"
}

# Prints every file and link of the system that a package could have made.
list_system() {
    find /etc /usr /var -xdev -path /var/lib/dpkg/triggers -prune -o -path /var/log -prune -o -path /var/cache -prune -o \
        -print | grep -v '^/var/lib/dpkg/[^/]*$' | sort
}

add_site() {
    sed -e "s/PORT0/$PORT/" -e "s/PORT1/$((PORT + 1))/" -e "s/PORT2/$((PORT + 2))/" \
        "$HERE/site.conf" >/etc/nginx/conf.d/package-test.conf
}

remove_site() {
    rm /etc/nginx/conf.d/package-test.conf
}

# The system's nginx, by its own configuration: it starts, and answers from the second upstream.
expect_failover() {
    local answer
    nginx -t
    nginx
    answer=$(curl --silent --show-error --fail --include --max-time 20 "http://127.0.0.1:$PORT/" | tr -d '\r')
    printf '%s\n' "$answer"
    grep -x 'X-Path: package_bad -> package_good' <<<"$answer" && grep -x good <<<"$answer"
    stop_nginx
}

stop_nginx() {
    local pid
    pid=$(cat "$(pid_file)")
    kill -QUIT "$pid"

    while kill -0 "$pid" 2>/dev/null; do
        sleep 0.05
    done
}

pid_file() {
    sed -n -E 's/^ *pid +(.*);.*/\1/p' /etc/nginx/nginx.conf
}
