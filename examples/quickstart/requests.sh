# The requests to try, and what they have to show: request WHAT STATUS BODY PATH CURL-ARGUMENT...
# PATH is a pattern for the X-Path header of the response. Read by scripts/run.sh.
# shellcheck shell=bash

request "two groups fail, the third one answers" 200 "hello from b01" "u01 -> u02 -> b01" /
request "from a random group on, backup last; a POST too" 200 "hello from b01" "u0[12] -> u0[12] -> b01" /us1 --data x
request "no group is good: the last answer, as it came" 503 "sorry from u02" "u01 -> u02" /hopeless
request "one upstream of all good servers, no upstrand" 200 "hello from b01" "" /flat
