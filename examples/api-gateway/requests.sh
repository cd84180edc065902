# The requests to try, and what they have to show: request WHAT STATUS BODY PATH CURL-ARGUMENT...
# PATH is a pattern for the X-Path header of the response. Read by scripts/run.sh.
# shellcheck shell=bash

request "the third provider, with its own name and key" 200 "gamma.example got the key of gamma" "alpha -> beta -> gamma" /v1/chat
request "a POST too" 200 "gamma.example got the key of gamma" "alpha -> beta -> gamma" /v1/chat --data '{}'
request "all are out of quota: the last answer, as it came" 429 "gamma: too many requests" "alpha -> beta -> gamma" /busy
