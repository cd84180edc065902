# The requests to try, and what they have to show: request WHAT STATUS BODY PATH CURL-ARGUMENT...
# PATH is a pattern for the X-Path header of the response. Read by scripts/run.sh.
# shellcheck shell=bash

request "a URI of edge 1, the one that is asked: it fetches it" 200 "from an origin" "origin" /3
request "one of edge 2" 200 "from an origin" "edge2" /1
request "one of edge 3" 200 "from an origin" "edge3" /2
