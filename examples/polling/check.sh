# Counts what a poll costs when no cluster has a task. Read by scripts/run.sh --check.
# shellcheck shell=bash disable=SC2154 # port and prefix are set there

POLLS=20
CLUSTERS=3

curl --silent --max-time 60 --output /dev/null "http://127.0.0.1:$port/idle/[1-$POLLS]"
asked=$(grep -c ' /idle/' "$prefix/logs/asked.log")
expect "$POLLS polls ask one server of each cluster, not all seven servers: $asked requests" \
    [ "$asked" -eq $((POLLS * CLUSTERS)) ]
