# The requests to try, and what they have to show: request WHAT STATUS BODY PATH CURL-ARGUMENT...
# Read by scripts/run.sh.
# shellcheck shell=bash

request "no cookie: the servers take turns" 200 "hello from server 1" "" /
request "the next one" 200 "hello from server 2" "" /
request "the cookie of server 2" 200 "hello from server 2" "" / --cookie rt=2
request "again, and it stays there" 200 "hello from server 2" "" / --cookie rt=2
request "the cookie of server 1" 200 "hello from server 1" "" / --cookie rt=1
request "that of server 3, which is down: another one, which sets its own cookie" 200 "hello from server 1" "" / --cookie rt=3
