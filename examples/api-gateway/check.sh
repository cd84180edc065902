# A stream and a WebSocket, both from the third provider. Read by scripts/run.sh --check.
# shellcheck shell=bash disable=SC2154 # port and prefix are set there

times=$(curl --silent --max-time 60 --output "$prefix/events" --dump-header "$prefix/headers" \
    --write-out '%{time_starttransfer} %{time_total}' "http://127.0.0.1:$port/stream")

expect "a stream comes whole" cmp "$prefix/events" "$prefix/html/events.txt"
expect "after two hops" grep -q '^X-Path: alpha -> beta -> gamma' "$prefix/headers"
expect "and as it is made: first byte and last byte after $times seconds" \
    awk -v times="$times" 'BEGIN { split(times, t, " "); exit !(t[2] - t[1] > 0.5) }'

exec {live}<>"/dev/tcp/127.0.0.1/$port"
printf 'GET /live HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n' >&"$live"
answer=$(timeout 60 cat <&"$live" | tr -d '\r')
exec {live}>&-

is_of_gamma() {
    [[ $answer == "HTTP/1.1 101 Switching Protocols"*"X-Path: alpha -> beta -> gamma"*"hello of gamma" ]]
}

expect "a WebSocket after two hops: $(head -n 1 <<<"$answer")" is_of_gamma
