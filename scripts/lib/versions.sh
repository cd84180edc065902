# Reads nginx-src/versions.toml: tables, and `key = "value"` lines in them or before the first one.
# shellcheck shell=bash

VERSIONS_FILE=${NGINX_VERSIONS_FILE:-$ROOT/nginx-src/versions.toml}

# Prints "key value" for each line of a table, named as in the file without quotes: 1.28.3.sha256
pinned_table() {
    awk -v table="$1" '
        BEGIN { inside = (table == "") }
        /^[[:space:]]*\[/ {
            name = $0
            gsub(/[][" \t]/, "", name)
            inside = (name == table)
            next
        }
        inside && /=/ && !/^[[:space:]]*#/ {
            key = value = $0
            sub(/[[:space:]]*=.*/, "", key)
            sub(/^[^=]*=[[:space:]]*/, "", value)
            gsub(/"/, "", key)
            gsub(/"/, "", value)
            print key, value
        }
    ' "$VERSIONS_FILE"
}

pinned() {
    pinned_table "$1" | awk -v key="$2" '$1 == key { sub(/^[^ ]* /, ""); print; exit }'
}

pinned_versions() {
    sed -n 's/^\["\([0-9.]*\)"\]$/\1/p' "$VERSIONS_FILE"
}

require_pinned_version() {
    if [ -z "$(pinned "$1" from)" ]; then
        die "nginx $1 is not in nginx-src/versions.toml, which has: $(pinned_versions | xargs)"
    fi
}
