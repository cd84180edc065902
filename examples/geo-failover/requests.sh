# The requests to try, in this order, and what they have to show: request WHAT STATUS BODY PATH CURL-ARGUMENT...
# PATH is a pattern for the X-Path header of the response. Read by scripts/run.sh.
# shellcheck shell=bash

request "eu refuses, so nothing was sent there: a POST goes on" 200 "POST, hello from us" "eu -> us" / --data x
request "eu is left out now" 200 "GET, hello from us" "us" /
request "us got this POST and failed: it is not repeated" 503 "We will be back soon." "us -> <intercepted>" /orders --data x
request "us is left out too: the far cluster" 200 "GET, hello from ap" "ap" /orders/1
request "nobody is left" 503 "We will be back soon." "ap -> <intercepted>" /closed
