# Free ports for servers of a test run, below those that the kernel hands out by itself.
# shellcheck shell=bash disable=SC2034 # variables set for the scripts

PORTS_PER_BLOCK=20
FIRST_PORT=20000
LAST_PORT=31980

# Sets PORT_BASE to the first of PORTS_PER_BLOCK free ports. A lock on them that lasts until this script ends
# keeps all other runs of this user, in whatever folder, away from them.
reserve_ports() {
    local base locks=/tmp/combined-upstreams-ports-$UID

    mkdir -p "$locks"

    for ((base = FIRST_PORT; base <= LAST_PORT; base += PORTS_PER_BLOCK)); do
        exec {PORTS_LOCK}>"$locks/$base"

        if flock --nonblock "$PORTS_LOCK" && ports_are_free "$base"; then
            PORT_BASE=$base
            return
        fi

        exec {PORTS_LOCK}>&-
    done

    die "no $PORTS_PER_BLOCK free ports in a row"
}

ports_are_free() {
    local port

    for ((port = $1; port < $1 + PORTS_PER_BLOCK; port++)); do
        if port_is_used "$port"; then
            return 1
        fi
    done
}

port_is_used() {
    (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}
