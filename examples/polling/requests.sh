# The requests to try, and what they have to show: request WHAT STATUS BODY PATH CURL-ARGUMENT...
# PATH is a pattern for the X-Path header of the response. Read by scripts/run.sh.
# shellcheck shell=bash

request "two clusters have no tasks" 200 "task of blue" "red -> green -> blue" /task
request "the next poll begins with the next cluster" 200 "task of blue" "green -> blue" /task
request "a poll by POST" 200 "task of blue" "blue" /task --data worker=7
request "nobody has a task: the last answer, as it came" 204 "" "red -> green -> blue" /idle
